// SPDX-License-Identifier: Apache-2.0
#include "planner/search/flow_choice.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <utility>

#include "planner/search/known_plan.h"

namespace stowage::planner {

namespace {
constexpr int kRounds = 4;
constexpr int64_t kUncertainPart = 256;          // of an estimate
constexpr size_t kSmall = 500;                   // nodes below which chains of any length may pay
constexpr int64_t kUncertainPartWhenSmall = 64;  // few nodes in a slot, so what is in it matters
constexpr int64_t kUncertainSlotsWhenSmall = 2;

// Points at which chains of recomputes end: dense, and less so.
constexpr int32_t kCuts[] = {16, 32, 8};
constexpr size_t kCutsOfFew = 2;

// Bytes by node that the program knows of: those of `loads` without the gaps that are given up.
std::vector<int64_t> findKnownLoads(const GapTable& table, const std::vector<int64_t>& loads,
                                    const Actions& actions, const Actions& fixed) {
  const size_t nodes = loads.size();
  std::vector<int64_t> changes(2 * nodes + 1, 0);
  for (size_t g = 0; g < actions.size(); ++g) {
    if (actions[g] == ir::GapAction::kKeep || actions[g] == fixed[g]) continue;
    const Gap& gap = table.gaps()[g];
    const int64_t bytes = table.bytes(gap.storage);
    changes[static_cast<size_t>(gap.begin) + 1] -= bytes;
    changes[static_cast<size_t>(gap.end)] += bytes;
  }
  std::vector<int64_t> known = loads;
  int64_t sum = 0;
  for (size_t i = 0; i < 2 * nodes; ++i) known[i % nodes] += sum += changes[i];
  return known;
}

struct NodeBytes {
  const std::vector<int64_t>& real;
  const std::vector<int64_t>& known;  // of these the program knows
};

// Where bytes are too many: what the program did not know of is added to what it takes the node to
// have. Of a slot whose fullest node has no row that node is watched next time.
void noteExcess(const StepSlots& slots, const NodeBytes& bytes, int64_t target,
                std::vector<int64_t>& watched, std::vector<int64_t>& loads) {
  const auto& [real, known] = bytes;
  const auto at = [](int64_t node) { return static_cast<size_t>(node); };
  std::vector<bool> hasRow(real.size(), false);
  for (const int64_t node : slots.widest) hasRow[at(node)] = true;
  for (const int64_t node : watched) hasRow[at(node)] = true;
  std::vector<int64_t> fullest = slots.widest;  // by slot
  for (size_t i = 0; i < real.size(); ++i) {
    if (real[i] <= target) continue;
    const int64_t excess = real[i] - target;
    loads[i] += hasRow[i] ? excess : std::clamp<int64_t>(real[i] - known[i], 0, excess);
    int64_t& other = fullest[at(slots.slotOf[i])];
    if (real[i] > real[at(other)]) other = static_cast<int64_t>(i);
  }
  for (const int64_t node : fullest) {
    if (!hasRow[at(node)]) watched.push_back(node);
  }
}
}  // namespace

FlowChooser::FlowChooser(const GapTable& table, FixedActions fixed, std::vector<int64_t> loads)
    : table_(&table),
      fixed_(std::move(fixed)),
      loads_(std::move(loads)),
      costs_(findRecomputeCosts(table)) {
  findRecomputable();
}

void FlowChooser::findRecomputable() {
  for (const int32_t cuts : kCuts) {
    std::vector<bool> may = chooseRecomputable(*table_, costs_, cuts);
    const bool isKnown =
        llvm::any_of(recomputable_, [&](const Recomputable& known) { return known.may == may; });
    if (!isKnown) recomputable_.push_back({.cuts = cuts, .may = std::move(may)});
  }
  mayRecompute_.assign(costs_.size(), false);
  for (size_t g = 0; g < costs_.size(); ++g) {
    const bool isSmall = table_->nodeCount() < kSmall;
    mayRecompute_[g] =
        isSmall ? costs_[g].has_value()
                : llvm::any_of(recomputable_, [&](const Recomputable& one) { return one.may[g]; });
  }
}

std::vector<FlowRule> FlowChooser::rules(bool all) const {
  std::vector<FlowRule> rules;
  const size_t count = std::min(all ? recomputable_.size() : kCutsOfFew, recomputable_.size());
  for (size_t i = 0; i < count; ++i) rules.push_back({.cuts = recomputable_[i].cuts});
  if (!all) return rules;
  rules.push_back({.cuts = 0});
  rules.push_back({.cuts = kCuts[0], .offload = false});
  return rules;
}

FlowChoices FlowChooser::makeChoices(bool offload, std::vector<bool> mayRecompute) const {
  FlowChoices choices{.mayHost = std::vector<bool>(costs_.size(), false),
                      .mayRecompute = std::move(mayRecompute)};
  for (size_t g = 0; g < choices.mayHost.size(); ++g) {
    const Gap& gap = table_->gaps()[g];
    choices.mayHost[g] = offload && gap.live && gap.mayHost && !fixed_.isFixed[g];
    choices.mayRecompute[g] = choices.mayRecompute[g] && !fixed_.isFixed[g];
  }
  return choices;
}

Choice FlowChooser::choose(const FlowRule& rule, int64_t slowest) const {
  const auto allowed =
      llvm::find_if(recomputable_, [&](const Recomputable& one) { return one.cuts == rule.cuts; });
  const FlowChoices choices = makeChoices(
      rule.offload,
      allowed != recomputable_.end() ? allowed->may : std::vector<bool>(costs_.size(), false));
  Choice best;
  std::vector<int64_t> loads = loads_;
  std::vector<int64_t> watched;
  Actions before;
  for (int round = 0; round < kRounds; ++round) {
    FlowAnswer answer = chooseByFlow(*table_, costs_, choices,
                                     {.budget = rule.target,
                                      .loads = loads,
                                      .watched = watched,
                                      .fixed = &fixed_.actions,
                                      .lost = rule.lost,
                                      .before = before.empty() ? nullptr : &before});
    if (!answer.fits || answer.time >= slowest) break;
    const std::vector<int64_t> real = computeNodeLoads(*table_, answer.actions);
    if (real.empty()) break;
    const int64_t bytes = *std::max_element(real.begin(), real.end());
    before = answer.actions;
    if (best.actions.empty() || bytes < best.bytes)
      best = {std::move(answer.actions), bytes, answer.waits};
    if (bytes <= rule.target) break;
    const std::vector<int64_t> known = findKnownLoads(*table_, loads_, before, fixed_.actions);
    noteExcess(answer.slots, {real, known}, rule.target, watched, loads);
  }
  return best;
}

std::optional<int64_t> FlowChooser::estimate(int64_t budget) const {
  const FlowAnswer answer =
      chooseByFlow(*table_, costs_, makeChoices(/*offload=*/true, mayRecompute_),
                   {.budget = budget, .loads = loads_, .fixed = &fixed_.actions, .settles = false});
  if (!answer.fits) return std::nullopt;
  if (table_->nodeCount() >= kSmall) return answer.time - answer.time / kUncertainPart;
  return answer.time - answer.time / kUncertainPartWhenSmall -
         kUncertainSlotsWhenSmall * answer.slotTime;
}

}  // namespace stowage::planner
