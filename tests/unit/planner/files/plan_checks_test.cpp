// SPDX-License-Identifier: Apache-2.0
//
// Whether the ops of this machine fit the temporaries that a plan has for them.
#include "planner/files/plan_checks.h"

#include <gtest/gtest.h>

#include "ir/text/parser.h"
#include "tests/support/or_fail.h"

namespace stowage::planner {
namespace {

/// `count` nodes that each make a tensor.
ir::Graph makeGraph(size_t count) {
  std::string text = "graph @g version=1 {\n";
  for (size_t i = 0; i < count; ++i) {
    text += "  %v" + std::to_string(i) + " : f32[1] = test.op" + std::to_string(i) + ".default()\n";
  }
  return tests::orFail(ir::parseGraph(text + "}\n"));
}

void addLaunch(PlanFile& plan, size_t node, int64_t temporary, int recompute = 0) {
  ir::Command command;
  command.node = ir::NodeId(node);
  command.recompute = recompute;
  command.temp.bytes = Bytes(temporary);
  plan.schedule.commands.push_back(command);
}
ir::NodeCosts needs(const std::vector<int64_t>& temporaries) {
  ir::NodeCosts costs;
  for (const int64_t bytes : temporaries) costs.nodes.push_back({.temporary = Bytes(bytes)});
  return costs;
}

// The temporaries of the worked step (planner/README.md): node 2 has 8 units of 64 B. A machine on
// which it needs no more runs the plan; one on which it needs a byte more does not.
TEST(PlanChecks, TheWorkedStepHasRoomForTheTemporariesOfItsWideNode) {
  const ir::Graph graph = makeGraph(5);
  PlanFile plan;
  for (size_t node = 0; node < 5; ++node) addLaunch(plan, node, node == 2 ? 512 : 0);
  plan.schedule.commands.push_back({.kind = ir::CommandKind::kCopy});
  EXPECT_EQ(countGrownOps(plan, needs({0, 0, 512, 0, 0})), 0U);
  EXPECT_EQ(ir::describe(checkPlanTemporaries(plan, graph, needs({0, 0, 100, 0, 0}))), "");

  const ir::PlanError error =
      ir::takePayload(checkPlanTemporaries(plan, graph, needs({0, 0, 513, 0, 0})));
  EXPECT_EQ(error.code(), ir::ErrorCode::kViolation);
  EXPECT_EQ(error.text().rfind("V17: 1 ops need more temporary memory", 0), 0U) << error.text();
  EXPECT_EQ(error.notes(),
            std::vector<std::string>{"test.op2.default (forward): needs 513 B, has 512 B"});
}

// The original of node 0 has room, its first recompute has not. Node 1 lacks it twice.
TEST(PlanChecks, AnOpCountsOnceWhicheverOfItsLaunchesLacksRoom) {
  PlanFile plan;
  addLaunch(plan, 0, 10);
  addLaunch(plan, 1, 4);
  addLaunch(plan, 0, 9, /*recompute=*/1);
  addLaunch(plan, 1, 4, /*recompute=*/1);
  EXPECT_EQ(countGrownOps(plan, needs({10, 4})), 1U);
  EXPECT_EQ(countGrownOps(plan, needs({9, 4})), 0U);
  EXPECT_EQ(countGrownOps(plan, needs({10, 5})), 2U);
}

// Ten ops need 1 to 10 B and have none. The largest eight are named.
TEST(PlanChecks, TheEightLargestOpsAreNamed) {
  const ir::Graph graph = makeGraph(10);
  PlanFile plan;
  for (size_t node = 0; node < 10; ++node) addLaunch(plan, node, 0);
  const ir::PlanError error =
      ir::takePayload(checkPlanTemporaries(plan, graph, needs({1, 2, 3, 4, 5, 6, 7, 8, 9, 10})));
  ASSERT_EQ(error.notes().size(), 9U);
  EXPECT_EQ(error.notes().front(), "test.op9.default (forward): needs 10 B, has 0 B");
  EXPECT_EQ(error.notes()[7], "test.op2.default (forward): needs 3 B, has 0 B");
  EXPECT_EQ(error.notes().back(), "and 2 more");
}

}  // namespace
}  // namespace stowage::planner
