// SPDX-License-Identifier: Apache-2.0
//
// What makes a planning problem: costs by node, accesses by storage, and questions that are refused
// because they make no sense.
#include "planner/problem/problem.h"

#include <gtest/gtest.h>

#include "tests/support/worked_step.h"

namespace stowage::planner {
namespace {

/// A row per distinct call.
ir::CostTable costTable(const tests::WorkedStep& step) {
  const ir::NodeCosts& costs = step.problem().costs;
  ir::CostTable table{.links = costs.links};
  for (size_t i = costs.nodes.size(); i-- > 0;) {
    table.bySignature[ir::nodeSignature(step.graph(), ir::NodeId(i))] = costs.nodes[i];
  }
  return table;
}

/// The message, "" for none.
std::string refusal(const ir::Graph& graph, const ir::CostTable& costs, std::vector<Pin> pins) {
  const ir::Target target = tests::smallTarget();
  ir::Expected<Problem> problem = makeProblem(graph, target, costs, {}, {}, std::move(pins));
  if (problem) return "";
  const ir::PlanError error = ir::takePayload(problem.takeError());
  EXPECT_EQ(error.code(), ir::ErrorCode::kInvalidArgument);
  return error.text();
}

TEST(Problem, FindsCostsByNodeAndAccessesByStorage) {
  const tests::WorkedStep step;
  const Problem problem = llvm::cantFail(makeProblem(step.graph(), step.target(), costTable(step)));
  ASSERT_EQ(problem.costs.nodes.size(), 5U);
  EXPECT_EQ(problem.costs.time(ir::NodeId(1)), step.us(10));
  EXPECT_EQ(problem.costs.time(ir::NodeId(3)), step.us(8));
  EXPECT_EQ(problem.costs.nodes[2].temporary, step.units(8));
  // Node 0 writes `a` whole; nodes 1 and 4 read what it wrote.
  const std::vector<ir::Touch>& touches = problem.lives[step.a().index()].touches;
  ASSERT_EQ(touches.size(), 3U);
  EXPECT_TRUE(touches[0].position == 0 && touches[0].whole && !touches[0].reads);
  EXPECT_TRUE(touches[1].position == 1 && touches[1].reads && !touches[1].writes);
  EXPECT_TRUE(touches[2].position == 4 && touches[2].version == 1);
}

TEST(Problem, RefusesCostsThatNoMachineHas) {
  const tests::WorkedStep step;
  ir::CostTable costs = costTable(step);
  costs.bySignature[ir::nodeSignature(step.graph(), ir::NodeId(2))].temporary = Bytes(-1);
  EXPECT_NE(refusal(step.graph(), costs, {}).find("negative cost for n2"), std::string::npos);
  costs = costTable(step);
  costs.links.hostToDevice.bandwidth = BytesPerSecond(0);
  EXPECT_NE(refusal(step.graph(), costs, {}).find("bandwidth 0 B/s"), std::string::npos);
  costs = costTable(step);
  costs.bySignature.erase(ir::nodeSignature(step.graph(), ir::NodeId(3)));
  EXPECT_NE(refusal(step.graph(), costs, {}), "") << "node 3 has no cost";
}

TEST(Problem, APinMustNameAStorage) {
  const tests::WorkedStep step;
  const ir::CostTable costs = costTable(step);
  EXPECT_EQ(refusal(step.graph(), costs, {{.pattern = "s?"}}), "");
  EXPECT_EQ(refusal(step.graph(), costs, {{.pattern = "s0"}, {.pattern = "layers.*"}}),
            "found no storage that matches the pin 'layers.*'; expected names such as "
            "'s0' (activation)");
  EXPECT_EQ(describePin({.pattern = "layers.0.*", .action = ir::GapAction::kHost}),
            "layers.0.*=host");
}

TEST(Problem, AGlobMatchesTheWholeName) {
  EXPECT_TRUE(matchesGlob("layers.*.weight", "layers.10.attention.weight"));
  EXPECT_TRUE(matchesGlob("layers.?.weight", "layers.1.weight"));
  EXPECT_FALSE(matchesGlob("layers.?.weight", "layers.10.weight"));
  EXPECT_FALSE(matchesGlob("layers.1", "layers.10"));
  EXPECT_TRUE(matchesGlob("*10", "layers.1010")) << "the star grows when a shorter one fails";
  EXPECT_TRUE(matchesGlob("**", ""));
  EXPECT_FALSE(matchesGlob("?", ""));
}

}  // namespace
}  // namespace stowage::planner
