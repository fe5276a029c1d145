// SPDX-License-Identifier: Apache-2.0
#include "planner/search/flow_choice.h"

#include <algorithm>
#include <utility>

#include "planner/search/known_plan.h"

namespace stowage::planner {

namespace {
constexpr int kRounds = 4;
constexpr int64_t kUncertainPart = 128;  // of an estimate
constexpr int64_t kUncertainSlots = 2;
}  // namespace

FlowChooser::FlowChooser(const GapTable& table, FixedActions fixed, std::vector<int64_t> loads)
    : table_(&table),
      fixed_(std::move(fixed)),
      loads_(std::move(loads)),
      costs_(findRecomputeCosts(table)) {}

FlowChoices FlowChooser::makeChoices(bool offload, std::vector<bool> mayRecompute) const {
  FlowChoices choices{.mayHost = std::vector<bool>(mayRecompute.size(), false),
                      .mayRecompute = std::move(mayRecompute)};
  for (size_t g = 0; g < choices.mayHost.size(); ++g) {
    const Gap& gap = table_->gaps()[g];
    choices.mayHost[g] = offload && gap.live && gap.mayHost && !fixed_.isFixed[g];
    choices.mayRecompute[g] = choices.mayRecompute[g] && !fixed_.isFixed[g];
  }
  return choices;
}

Choice FlowChooser::choose(const FlowRule& rule, int64_t slowest) const {
  std::vector<bool> mayRecompute(table_->gaps().size(), false);
  if (rule.cuts > 0) mayRecompute = chooseRecomputable(*table_, costs_, rule.cuts);
  const FlowChoices choices = makeChoices(rule.offload, std::move(mayRecompute));
  Choice best;
  std::vector<int64_t> loads = loads_;
  Actions before;
  for (int round = 0; round < kRounds; ++round) {
    FlowAnswer answer = chooseByFlow(*table_, costs_, choices,
                                     {.budget = rule.target,
                                      .loads = loads,
                                      .fixed = &fixed_.actions,
                                      .before = before.empty() ? nullptr : &before});
    if (!answer.fits || answer.time >= slowest) break;
    const std::vector<int64_t> real = computeNodeLoads(*table_, answer.actions);
    if (real.empty()) break;
    const int64_t bytes = *std::max_element(real.begin(), real.end());
    before = answer.actions;
    if (best.actions.empty() || bytes < best.bytes) best = {std::move(answer.actions), bytes};
    if (bytes <= rule.target) break;
    for (size_t i = 0; i < real.size(); ++i) {
      loads[i] += std::max<int64_t>(0, real[i] - rule.target);
    }
  }
  return best;
}

std::optional<int64_t> FlowChooser::estimate(int64_t budget) const {
  std::vector<bool> mayRecompute(costs_.size());
  for (size_t g = 0; g < costs_.size(); ++g) mayRecompute[g] = costs_[g].has_value();
  const FlowAnswer answer =
      chooseByFlow(*table_, costs_, makeChoices(/*offload=*/true, std::move(mayRecompute)),
                   {.budget = budget, .loads = loads_, .fixed = &fixed_.actions, .settles = false});
  if (!answer.fits) return std::nullopt;
  return answer.time - answer.time / kUncertainPart - kUncertainSlots * answer.slotTime;
}

}  // namespace stowage::planner
