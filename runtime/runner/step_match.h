// SPDX-License-Identifier: Apache-2.0
//
// The step as captured and the graph that a plan is about are one step, but passes drop and add
// things, so ids differ. Names of storages and of step scalars are kept by all passes; this finds
// the one by the other.
#ifndef STOWAGE_RUNTIME_RUNNER_STEP_MATCH_H_
#define STOWAGE_RUNTIME_RUNNER_STEP_MATCH_H_

#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"

namespace stowage::runtime {

class StepMatch {
 public:
  /// Errors: kPlanMismatch with a note per input, persistent storage and step scalar of `planned`
  /// that the captured step does not have.
  static ir::Expected<StepMatch> make(const ir::Graph& captured, const ir::Graph& planned);

  /// Invalid when the planned graph has no such storage: nothing in the step needs it.
  ir::StorageId plannedOf(ir::StorageId captured) const { return planned_[captured.index()]; }
  /// Invalid for storages that a pass made, which are never persistent.
  ir::StorageId capturedOf(ir::StorageId planned) const { return captured_[planned.index()]; }
  /// By step scalar of the planned graph: which one of the captured step it is.
  const std::vector<ir::ScalarId>& scalars() const { return scalars_; }

 private:
  std::vector<ir::StorageId> planned_;   // by captured storage
  std::vector<ir::StorageId> captured_;  // by planned storage
  std::vector<ir::ScalarId> scalars_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RUNNER_STEP_MATCH_H_
