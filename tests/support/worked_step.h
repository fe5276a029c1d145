// SPDX-License-Identifier: Apache-2.0
//
// The step that planner/README.md draws, as a graph and a planning problem. Unit tests of the
// planner's sources use it, so that each shows what it does on the same example.
//
//   n0 make writes activation a (8 units); n1 read and n4 last read it; n2 wide needs 8 units of
//   temporaries; n3 other needs nothing. A link moves a unit per microsecond. No op may be
//   recomputed.
#ifndef STOWAGE_TESTS_SUPPORT_WORKED_STEP_H_
#define STOWAGE_TESTS_SUPPORT_WORKED_STEP_H_

#include "ir/graph/graph.h"
#include "ir/schedule/target.h"
#include "planner/problem/gaps.h"
#include "planner/problem/problem.h"
#include "tests/support/small_step.h"

namespace stowage::tests {

/// The step, with `a` of another size and other times of `read` and `other` if need be.
inline SmallStep workedStepWith(int size, int readTime = 10, int otherTime = 8) {
  return {.items = {{ir::Role::kActivation, size}},
          .nodes = {{.op = "test.make.default", .time = 1, .results = {0}},
                    {.op = "test.read.default", .time = readTime, .reads = {0}},
                    {.op = "test.wide.default", .time = 1, .temporary = 8},
                    {.op = "test.other.default", .time = otherTime},
                    {.op = "test.last.default", .time = 1, .reads = {0}}}};
}

class WorkedStep {
 public:
  WorkedStep() = default;
  /// The budget of the example.
  static Bytes budget() { return units(8); }
  static Bytes units(int64_t count) { return Bytes(count * kUnitBytes); }
  static Nanoseconds us(int64_t count) { return Nanoseconds(count * kUnitTime); }

  const ir::Graph& graph() const { return graph_; }
  const ir::Target& target() const { return target_; }
  const planner::Problem& problem() const { return problem_; }
  ir::StorageId a() const { return ir::StorageId(0); }

 private:
  const SmallStep step_ = workedStepWith(8);
  const ir::Graph graph_ = toGraph(step_);
  const ir::Target target_ = smallTarget();
  const planner::Problem problem_ = toProblem(step_, graph_, target_);
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_WORKED_STEP_H_
