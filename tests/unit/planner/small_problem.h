// SPDX-License-Identifier: Apache-2.0
//
// A small step with what a unit test needs to ask the planner about it: graph, target, problem and
// gaps. And the worked step's plan, for tests of what follows from it.
#ifndef STOWAGE_TESTS_UNIT_PLANNER_SMALL_PROBLEM_H_
#define STOWAGE_TESTS_UNIT_PLANNER_SMALL_PROBLEM_H_

#include <utility>
#include <vector>

#include "planner/problem/gaps.h"
#include "tests/support/small_step.h"
#include "tests/support/worked_step.h"

namespace stowage::tests {

/// Its parts point to each other, so it stays where it is made.
struct SmallProblem {
  explicit SmallProblem(const SmallStep& step, planner::Allowed allowed = {},
                        ir::Target machine = smallTarget())
      : graph(toGraph(step)),
        target(std::move(machine)),
        problem(allowing(toProblem(step, graph, target), allowed)),
        table(problem) {}
  SmallProblem(const SmallProblem&) = delete;
  SmallProblem& operator=(const SmallProblem&) = delete;

  const ir::Graph graph;
  const ir::Target target;
  const planner::Problem problem;
  const planner::GapTable table;

 private:
  static planner::Problem allowing(planner::Problem problem, planner::Allowed allowed) {
    problem.allowed = allowed;
    return problem;
  }
};

/// The gaps of the worked step, and its plan: `a` is offloaded in [1,4).
struct WorkedPlan {
  const WorkedStep step;
  const planner::GapTable table = planner::GapTable(step.problem());
  const std::vector<ir::GapAction> actions = {ir::GapAction::kKeep, ir::GapAction::kHost,
                                              ir::GapAction::kKeep};
};

/// Small whole numbers as the planner counts them.
inline constexpr int64_t units(int64_t count) { return count * kUnitBytes; }
inline constexpr int64_t us(int64_t count) { return count * kUnitTime; }

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_UNIT_PLANNER_SMALL_PROBLEM_H_
