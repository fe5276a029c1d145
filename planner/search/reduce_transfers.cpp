// SPDX-License-Identifier: Apache-2.0
#include "planner/search/reduce_transfers.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "planner/evaluate/load_tree.h"

namespace stowage::planner {

namespace {

using ir::GapAction;
using Batch = std::vector<size_t>;  // gaps, most worth giving back first

class TransferReducer {
 public:
  TransferReducer(const GapTable& table, const FixedActions& fixed, KnownPlan plan,
                  const TransferGoal& goal)
      : table_(table), plan_(std::move(plan)), goal_(goal), left_(goal.evaluations) {
    for (size_t g = 0; g < plan_.actions.size(); ++g) {
      if (plan_.actions[g] != GapAction::kKeep && !fixed.isFixed[g]) given_.push_back(g);
    }
    std::sort(given_.begin(), given_.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  }

  KnownPlan run() {
    // Addresses need more than the bytes do, so a batch that fills the bytes may be too much.
    target_ = goal_.peak;
    for (Batch batch = pick(); !batch.empty() && left_ > 0; batch = pick()) {
      const int64_t excess = attempt(batch);
      if (excess <= 0 && given_.size() > 0) continue;
      const int64_t lower = target_ - std::max(excess, int64_t{1});
      const bool mayHelp = excess != kSlower && shrinks_++ < kMostShrinks && lower > 0;
      if (!mayHelp) {
        halve(batch);
        break;
      }
      target_ = lower;
    }
    return std::move(plan_);
  }

 private:
  static constexpr int kMostShrinks = 4;
  static constexpr int64_t kSlower = INT64_MAX;

  // Recomputes cost compute time, so they go first; then the bytes.
  std::tuple<int, int64_t, size_t> rank(size_t g) const {
    const bool isHost = plan_.actions[g] == GapAction::kHost;
    return {isHost ? 1 : 0, -table_.bytes(table_.gaps()[g].storage), g};
  }

  // All that fit below the target together, by the loads at the nodes.
  Batch pick() {
    const std::vector<int64_t> loads = computeNodeLoads(table_, plan_.actions);
    if (loads.empty()) return {};
    LoadTree tree(loads);
    Batch batch;
    for (const size_t g : given_) {
      const Gap& gap = table_.gaps()[g];
      const int64_t bytes = table_.bytes(gap.storage);
      if (tree.highest(gap.begin + 1, gap.end) + bytes > target_) continue;
      tree.add(gap.begin + 1, gap.end, bytes);
      batch.push_back(g);
    }
    return batch;
  }

  // Keeps the batch if that does; else says by how many bytes it is too much, or that it is slower.
  int64_t attempt(const Batch& batch) {
    --left_;
    Actions actions = plan_.actions;
    for (const size_t g : batch) actions[g] = GapAction::kKeep;
    Tried tried = tryActions(table_, std::move(actions), target_,
                             {.peak = goal_.peak, .time = plan_.time + 1});
    if (tried.isTooSlow) return kSlower;
    if (tried.peak > goal_.peak) return tried.peak - goal_.peak;
    std::optional<KnownPlan>& next = tried.plan;
    if (!next || next->hostPeak > goal_.hostPeak) return kSlower;
    if (next->hostPeak < goal_.leastHost) return kSlower;
    const bool isInTime = goal_.sameTime ? next->time == plan_.time : next->time <= plan_.time;
    if (!isInTime || next->moved > plan_.moved) return kSlower;
    plan_ = std::move(*next);
    const auto isKept = [&](size_t g) { return plan_.actions[g] == GapAction::kKeep; };
    given_.erase(std::remove_if(given_.begin(), given_.end(), isKept), given_.end());
    return 0;
  }

  void halve(const Batch& batch) {
    if (batch.size() < 2) return;
    const auto middle = batch.begin() + static_cast<int64_t>(batch.size() / 2);
    for (const Batch& half : {Batch(batch.begin(), middle), Batch(middle, batch.end())}) {
      if (left_ <= 0) return;
      if (attempt(half) > 0) halve(half);
    }
  }

  const GapTable& table_;
  KnownPlan plan_;
  const TransferGoal& goal_;
  int left_;         // evaluations
  int shrinks_ = 0;  // of the target
  int64_t target_ = 0;
  Batch given_;  // what the plan gives up and might keep
};

}  // namespace

KnownPlan reduceTransfers(const GapTable& table, const FixedActions& fixed, KnownPlan plan,
                          const TransferGoal& goal) {
  return TransferReducer(table, fixed, std::move(plan), goal).run();
}

}  // namespace stowage::planner
