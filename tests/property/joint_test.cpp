// SPDX-License-Identifier: Apache-2.0
//
// Choosing copies and recomputes together is worth more than either alone, and is chosen storage by
// storage, not block by block: a step of equal blocks in which each makes one activation that is
// cheap to recompute and one that is dear, over a link that has time for some of the dear ones.
#include <gtest/gtest.h>

#include <set>

#include "planner/plan.h"
#include "tests/support/small_step.h"

namespace stowage::planner {
namespace {

using ir::Role;

constexpr int kBlocks = 6;

/// Forward: block b makes a_b (cheap) and d_b (dear) from what came before; backward reads both, in
/// reverse order. Item 0 is a weight.
tests::SmallStep makeBlocks() {
  tests::SmallStep step{.items = {{Role::kParameter, 1}}};
  for (int b = 0; b < kBlocks; ++b) {
    step.items.push_back({Role::kActivation, 4});
    step.items.push_back({Role::kActivation, 4});
  }
  for (int b = 0; b < kBlocks; ++b) {
    const int cheap = 1 + 2 * b;
    const int dear = cheap + 1;
    step.nodes.push_back({.op = "aten.mm.default", .time = 6, .reads = {0}, .results = {dear}});
    step.nodes.push_back({.op = "aten.mm.default", .time = 1, .reads = {0}, .results = {cheap}});
  }
  for (int b = kBlocks; b-- > 0;) {
    step.nodes.push_back({.op = "test.grad.default", .time = 6, .reads = {1 + 2 * b, 2 + 2 * b}});
  }
  step.nodes.push_back({.op = "aten.add_.Tensor", .time = 1, .reads = {0}, .updates = {0}});
  return step;
}

class Joint : public testing::Test {
 protected:
  Joint() : step_(makeBlocks()), graph_(tests::toGraph(step_)), target_(tests::smallTarget()) {}

  PlanResult planWith(bool offload, bool recompute) {
    Problem problem = tests::toProblem(step_, graph_, target_);
    problem.allowed.offload = offload;
    problem.allowed.recompute = recompute;
    return llvm::cantFail(planner::plan(problem, Bytes(17 * tests::kUnitBytes)));
  }
  static int64_t timeOf(const PlanResult& result) { return result.timetable.stepTime.value(); }

  tests::SmallStep step_;
  ir::Graph graph_;
  ir::Target target_;
};

TEST_F(Joint, IsFasterThanCopiesAloneAndThanRecomputesAlone) {
  const int64_t joint = timeOf(planWith(true, true));
  const int64_t copies = timeOf(planWith(true, false));
  const int64_t recomputes = timeOf(planWith(false, true));
  EXPECT_LT(joint, copies);
  EXPECT_LT(joint, recomputes);
}

TEST_F(Joint, DecisionsInsideOneBlockDiffer) {
  const PlanResult result = planWith(true, true);
  std::set<int> sent;
  std::set<int> madeAgain;
  for (const ir::DecisionRow& row : result.timetable.decisions.rows) {
    const int item = static_cast<int>(row.storage.index());
    if (item == 0) continue;
    (row.action == ir::GapAction::kHost ? sent : madeAgain).insert((item - 1) / 2);
  }
  int both = 0;
  for (const int block : sent) both += madeAgain.count(block) > 0 ? 1 : 0;
  EXPECT_GT(both, 0);
}

}  // namespace
}  // namespace stowage::planner
