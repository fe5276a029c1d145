// SPDX-License-Identifier: Apache-2.0
#include "planner/problem/recompute_costs.h"

#include <algorithm>

namespace stowage::planner {

namespace {

constexpr size_t kMostChain = 32;  // storages recomputed for one gap

class CostFinder {
 public:
  CostFinder(const GapTable& table, int64_t at) : table_(table), at_(at) {}

  bool add(ir::StorageId storage, size_t touch) {
    const int32_t begin = table_.chainBegin(storage, touch);
    if (begin < 0 || made_.size() >= kMostChain) return false;
    made_.push_back(storage);
    const auto& touches = table_.problem().lives[storage.index()].touches;
    for (auto k = static_cast<size_t>(begin); k <= touch; ++k) {
      if (!touches[k].writes) continue;
      const auto node = static_cast<size_t>(touches[k].position);
      if (llvm::is_contained(nodes_, node)) continue;
      nodes_.push_back(node);
      cost.time += Nanoseconds(table_.nodeTime(node));
      if (!addInputs(storage, node)) return false;
    }
    return true;
  }

  RecomputeCost cost;

 private:
  bool addInputs(ir::StorageId target, size_t node) {
    for (const ir::Access& access : table_.recomputeAccesses(node)) {
      if (!access.reads() || access.storage == target || table_.isHostOnly(access.storage))
        continue;
      if (llvm::is_contained(made_, access.storage)) continue;
      const auto& touches = table_.problem().lives[access.storage.index()].touches;
      size_t next = 0;  // first touch at or after the place of the recompute
      while (next < touches.size() && touches[next].position < at_) ++next;
      if (next == 0 || touches[next - 1].version != access.readVersion) return false;
      const bool isDead = next == touches.size() || touches[next].whole;
      const bool wraps =
          next == touches.size() && table_.problem().graph.storage(access.storage).persistent;
      const bool isGone = isDead && !wraps;
      if (!isGone) cost.open.push_back(table_.gapIndex(access.storage, next - 1));
      if (isGone && !addDeadInput(access.storage, next - 1, target)) return false;
    }
    return true;
  }

  bool addDeadInput(ir::StorageId storage, size_t touch, ir::StorageId target) {
    if (table_.recomputesDeadInput(storage, touch, target)) return add(storage, touch);
    cost.bytes -= Bytes(table_.bytes(storage));
    cost.extended.push_back(table_.gapIndex(storage, touch));
    made_.push_back(storage);
    return cost.bytes > Bytes(0);
  }

  const GapTable& table_;
  int64_t at_;
  llvm::SmallVector<ir::StorageId, 4> made_;
  llvm::SmallVector<size_t, 4> nodes_;
};

}  // namespace

std::optional<RecomputeCost> findRecomputeCost(const GapTable& table, size_t gapIndex, int64_t at) {
  const Gap& gap = table.gaps()[gapIndex];
  if (!gap.mayRecompute || !gap.live) return std::nullopt;
  const size_t touch = gapIndex - table.gapIndex(gap.storage, 0);
  CostFinder finder(table, at);
  finder.cost.bytes = Bytes(table.bytes(gap.storage));
  if (!finder.add(gap.storage, touch)) return std::nullopt;
  return finder.cost;
}

}  // namespace stowage::planner
