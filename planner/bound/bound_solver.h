// SPDX-License-Identifier: Apache-2.0
//
// Lower bounds of one problem for many budgets: picks the peaks once, asks each (peak_bound.h).
#ifndef STOWAGE_PLANNER_BOUND_BOUND_SOLVER_H_
#define STOWAGE_PLANNER_BOUND_BOUND_SOLVER_H_

#include <vector>

#include "planner/bound/lower_bound.h"
#include "planner/bound/peak_bound.h"
#include "planner/problem/gaps.h"

namespace stowage::planner {

class BoundSolver {
 public:
  explicit BoundSolver(const GapTable& table);

  /// Nanoseconds of a step, at least.
  int64_t bound(int64_t budget) const;
  /// No schedule needs fewer bytes.
  int64_t smallestBudget() const { return smallestBudget_; }
  ir::NodeId widestNode() const { return widestNode_; }

 private:
  void findLoads();
  int64_t boundaryTime() const;
  std::vector<int64_t> choosePeaks() const;
  Peak makePeak(int64_t node) const;
  void addItem(const Gap& gap, size_t touch, Peak& peak, std::vector<int32_t>& makers) const;
  double ownRecomputeTime(ir::StorageId storage, size_t begin, size_t touch) const;

  const GapTable* table_;
  PeakFrame frame_;
  int64_t computeTime_ = 0;
  int64_t hostTime_ = 0;  // of nodes on the host, one after the other
  int64_t linkTime_ = 0;  // of collectives, likewise
  int64_t boundaryTime_ = 0;
  std::vector<int64_t> workingSets_;
  std::vector<int64_t> loads_;  // working set and all gaps over the node
  std::vector<Peak> peaks_;     // highest first
  int64_t smallestBudget_ = 0;
  ir::NodeId widestNode_;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_BOUND_BOUND_SOLVER_H_
