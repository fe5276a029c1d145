// SPDX-License-Identifier: Apache-2.0
//
// What explain says about a plan that can be worked out by hand: an activation of 8 units is made
// at the start and read at the end; one node between needs 8 units of its own, and 8 are all.
#include <gtest/gtest.h>

#include "planner/plan.h"
#include "planner/report/explain_plan.h"
#include "tests/support/random_step.h"
#include "tests/support/small_step.h"

namespace stowage::planner {
namespace {

using ir::Role;

class Explain : public testing::Test {
 protected:
  void plan(const char* maker, bool isOnDisk = false) {
    step_ = {.items = {{Role::kActivation, 8}, {Role::kFrozen, 2}},
             .nodes = {{.op = maker, .time = 3, .results = {0}},
                       {.op = "test.wide.default", .time = 2, .temporary = 8},
                       {.op = "test.read.default", .time = 1, .reads = {0, 1}}}};
    graph_ = tests::toGraph(step_);
    target_ = tests::smallTarget();
    Problem problem = tests::toProblem(step_, graph_, target_);
    if (isOnDisk) {
      problem.allowed.disk = true;
      problem.limits.disk = units(100);
      problem.pins = {{"s0", ir::GapAction::kDisk}};
      problem.costs.links.diskRead = problem.costs.links.diskWrite =
          problem.costs.links.hostToDevice;
    }
    const Bytes budget(10 * tests::kUnitBytes);
    ir::Expected<PlanResult> result = planner::plan(problem, budget);
    ASSERT_TRUE(static_cast<bool>(result)) << ir::describe(result.takeError());
    schedule_ = tests::toSchedule(graph_, target_, result->timetable, budget);
    costs_ = problem.costs;
  }
  ExplainInput input() const {
    return {
        .graph = graph_, .schedule = schedule_, .costs = costs_, .alignBytes = target_.alignBytes};
  }
  static Nanoseconds time(int units) { return Nanoseconds(units * tests::kUnitTime); }
  static Bytes units(int count) { return Bytes(count * tests::kUnitBytes); }

  tests::SmallStep step_;
  ir::Graph graph_;
  ir::Target target_;
  ir::Schedule schedule_;
  ir::NodeCosts costs_;
};

// It is not recomputable, so it is copied: out after 3 units, 8 long; in after the wide node.
TEST_F(Explain, SaysWhereComputeWaitsAndForWhat) {
  plan("test.make.default");
  const PlanExplanation explained = explainPlan(input());
  EXPECT_EQ(explained.stepTime, time(3 + 8 + 2 + 8 + 1));
  EXPECT_EQ(explained.waiting, time(16));
  ASSERT_EQ(explained.stalls.size(), 2U);
  EXPECT_EQ(explained.stalls[0].storage, ir::StorageId(0));
  EXPECT_EQ(explained.stalls[0].time, time(8));
  EXPECT_TRUE(explained.stalls[0].isOut);
  EXPECT_FALSE(explained.stalls[1].isOut);
  ASSERT_EQ(explained.copied.size(), 1U);
  EXPECT_EQ(explained.copied[0].kind, "activations");
  EXPECT_EQ(explained.copied[0].storages, 1);
  EXPECT_EQ(explained.copied[0].bytes, units(8));
  EXPECT_EQ(explained.copied[0].atMost, time(16));
  EXPECT_EQ(explained.outBusy, time(8));
  EXPECT_EQ(explained.peakBytes, units(10));
  ASSERT_FALSE(explained.holders.empty());
  EXPECT_EQ(explained.holders[0].bytes, units(8));

  const StorageStory story = llvm::cantFail(explainStorage(input(), "s0"));
  EXPECT_EQ(story.waiting, time(16));
  ASSERT_EQ(story.gaps.size(), 1U);
  EXPECT_EQ(story.gaps[0].action, ir::GapAction::kHost);
  EXPECT_EQ(story.gaps[0].why, "waits");
  EXPECT_EQ(story.gaps[0].copyTime, time(16));
  EXPECT_EQ(story.gaps[0].away, time(2));
}

// Out, to the disk, back from it, in: the prefetch begins when the disk is done, and not before.
TEST_F(Explain, SaysThatAWaitIsForTheDisk) {
  plan("test.make.default", /*isOnDisk=*/true);
  const PlanExplanation explained = explainPlan(input());
  EXPECT_EQ(explained.diskWriteBusy, time(8));
  EXPECT_EQ(explained.diskReadBusy, time(8));
  ASSERT_FALSE(explained.stalls.empty());
  EXPECT_TRUE(explained.stalls[0].isByDisk);
  EXPECT_FALSE(explained.stalls[0].isOut);
  for (size_t i = 1; i < explained.stalls.size(); ++i) EXPECT_FALSE(explained.stalls[i].isByDisk);
  plan("test.make.default");
  const PlanExplanation without = explainPlan(input());
  EXPECT_EQ(without.diskReadBusy, time(0));
  for (const StallPlace& stall : without.stalls) EXPECT_FALSE(stall.isByDisk);
}

// The same plan with a slow launch thread: copies are over before the next op is launched.
TEST_F(Explain, WaitsForTheLaunchThreadAreNoWaitsForBytes) {
  plan("test.make.default");
  EXPECT_EQ(explainPlan(input()).launchWaits, time(0));
  for (ir::OpCost& cost : costs_.nodes) cost.launch = time(20);
  costs_.links.launch = time(5);
  const PlanExplanation explained = explainPlan(input());
  EXPECT_EQ(explained.stepTime, time(3 * 20 + 2 * 5));
  EXPECT_EQ(explained.waiting, time(0));
  EXPECT_EQ(explained.launchWaits, time(70 - 3 - 2 - 1));
}

TEST_F(Explain, SaysWhatARecomputeCosts) {
  plan("aten.mm.default");
  const PlanExplanation explained = explainPlan(input());
  EXPECT_EQ(explained.recomputeTime, time(3));
  EXPECT_EQ(explained.waiting, time(0));
  const StorageStory story = llvm::cantFail(explainStorage(input(), "s0"));
  ASSERT_EQ(story.gaps.size(), 1U);
  EXPECT_EQ(story.gaps[0].action, ir::GapAction::kRecompute);
  EXPECT_EQ(story.gaps[0].why, "cheap");
  EXPECT_EQ(story.gaps[0].recomputeTime, time(3));
}

TEST_F(Explain, SaysWhatIsKeptAndRefusesUnknownNames) {
  plan("aten.mm.default");
  const StorageStory story = llvm::cantFail(explainStorage(input(), "s1"));
  ASSERT_EQ(story.gaps.size(), 1U);
  EXPECT_EQ(story.gaps[0].action, ir::GapAction::kKeep);
  EXPECT_TRUE(story.gaps[0].nextStep);
  EXPECT_EQ(story.gaps[0].copyTime, time(2)) << "never written, so it only comes in";
  ir::Expected<StorageStory> none = explainStorage(input(), "s9");
  ASSERT_FALSE(static_cast<bool>(none));
  EXPECT_EQ(ir::takePayload(none.takeError()).code(), ir::ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace stowage::planner
