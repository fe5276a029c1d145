// SPDX-License-Identifier: Apache-2.0
//
// Plans of steps with micro-batches: by-layer order is found, it is what makes small budgets fast,
// and steps that cannot use it are planned as before.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "ir/schedule/fingerprint.h"
#include "ir/verify/verify.h"
#include "passes/normalise/order_by_layer.h"
#include "passes/plan_step.h"
#include "passes/planned_file.h"
#include "planner/targets/roofline.h"
#include "tests/support/step_builder.h"

namespace stowage::passes {
namespace {

/// Four layers of 256 KiB; a micro-batch has eight rows. SGD without momentum.
ir::Graph makeStep(int64_t microBatches, double dropout = 0) {
  constexpr int64_t kWidth = 256, kRows = 8, kLayers = 4;
  tests::StepBuilder builder({.name = "micro"});
  const ir::ScalarId lr = builder.scalar("lr", -0.001);
  std::vector<tests::Var> weights;
  for (int64_t i = 0; i < kLayers; ++i) {
    weights.push_back(builder.parameter("layers." + std::to_string(i), {kWidth, kWidth}));
  }
  for (int64_t batch = 0; batch < microBatches; ++batch) {
    const std::string suffix = "." + std::to_string(batch);
    tests::Var x = builder.asVar(builder.input("x" + suffix, ir::DType::kF32, {kRows, kWidth}));
    for (const tests::Var& weight : weights) {
      x = builder.pointwise("relu", builder.linear(x, weight, std::nullopt));
      if (dropout > 0) x = builder.dropout(x, dropout);
    }
    const ir::ValueId target = builder.input("target" + suffix, ir::DType::kI64, {kRows});
    builder.backward(builder.crossEntropy(x, target, "loss" + suffix));
  }
  builder.updateSgd(lr, 0, 0);
  return std::move(builder).finish();
}

class ByLayer : public testing::Test {
 protected:
  ir::Expected<PlannedStep> plan(const ir::Graph& graph, Bytes budget, std::vector<Order> orders) {
    ir::CostTable costs = planner::rooflineCosts(graph, target_);
    // A weight takes 100 us.
    for (ir::LinkRate* link : {&costs.links.deviceToHost, &costs.links.hostToDevice}) {
      link->bandwidth = BytesPerSecond(int64_t{2500} << 20);
    }
    return planStep(graph, target_, costs,
                    {.budget = budget,
                     .allowed = {.recompute = false},
                     .orders = std::move(orders),
                     .rowBlocks = {}});
  }
  PlannedStep planAll(const ir::Graph& graph, Bytes budget) {
    return llvm::cantFail(plan(graph, budget, PlanStepOptions().orders));
  }

  ir::Target target_ = llvm::cantFail(planner::findTargetProfile("cpu"));
};

constexpr Bytes kEnough(int64_t{1} << 30);
// Weights and gradients are 2 MiB: half of them travel.
constexpr Bytes kSmallBudget(int64_t{1} << 20);

TEST_F(ByLayer, IsFasterInASmallBudget) {
  const ir::Graph graph = makeStep(3);
  const PlannedStep step = planAll(graph, kSmallBudget);
  EXPECT_EQ(step.order, Order::kByLayer);
  EXPECT_EQ(step.boundScope, "program,hoisted,by-layer");
  EXPECT_EQ(ir::describe(ir::verifyOrError({.graph = step.graph,
                                            .schedule = step.schedule,
                                            .target = target_,
                                            .budget = kSmallBudget})),
            "");
  const PlannedStep before =
      llvm::cantFail(plan(graph, kSmallBudget, {Order::kProgram, Order::kHoisted}));
  EXPECT_EQ(before.boundScope, "program,hoisted");
  EXPECT_LT(10 * step.schedule.predicted.stepTime.value(),
            9 * before.schedule.predicted.stepTime.value());
}

TEST_F(ByLayer, ThePlanFindsItsGraphAgain) {
  const ir::Graph graph = makeStep(3);
  const PlannedStep step = planAll(graph, kSmallBudget);
  const planner::PlanFile file = makePlanFile(step, target_, {.budget = kSmallBudget});
  ir::Expected<ArrangedGraph> found = arrangeForPlan(graph, file, "here");
  ASSERT_TRUE(static_cast<bool>(found)) << ir::describe(found.takeError());
  EXPECT_EQ(found->order, Order::kByLayer);
  EXPECT_EQ(ir::fingerprint(found->graph), ir::fingerprint(step.graph));
}

TEST_F(ByLayer, IsNotAskedWhereItChangesNothing) {
  EXPECT_EQ(planAll(makeStep(1), kEnough).boundScope, "program,hoisted");
  EXPECT_EQ(planAll(makeStep(2), kEnough).boundScope, "program,hoisted,by-layer");
}

// Dropout draws in the order of the program, so forward runs batch by batch. Backward draws
// nothing.
TEST_F(ByLayer, WithDropoutOnlyBackwardGoesByLayer) {
  const ir::Graph graph = makeStep(3, 0.1);
  PassState state{.graph = graph};
  const PassReport report = llvm::cantFail(OrderByLayer().run(state));
  EXPECT_TRUE(report.changed);
  std::vector<std::string> draws;
  for (const ir::Graph* each : {&graph, static_cast<const ir::Graph*>(&state.graph)}) {
    std::string order;
    for (const ir::Node& node : each->nodes()) {
      if (node.op == "aten.native_dropout.default") {
        order += each->value(node.results[0]).name + " ";
      }
    }
    draws.push_back(order);
  }
  EXPECT_EQ(draws[0], draws[1]);
}

TEST_F(ByLayer, OrdersAreFoundByTheirNames) {
  for (const Order order : kAllOrders) EXPECT_EQ(findOrder(orderName(order)), order);
  EXPECT_EQ(findOrder("layer"), std::nullopt);
}

}  // namespace
}  // namespace stowage::passes
