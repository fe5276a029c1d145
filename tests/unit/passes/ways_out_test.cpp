// SPDX-License-Identifier: Apache-2.0
//
// What an infeasible error offers: each number that it says works.
#include "passes/ways_out.h"

#include <gtest/gtest.h>

#include "ir/text/parser.h"
#include "planner/targets/roofline.h"
#include "tests/support/or_fail.h"

namespace stowage::passes {
namespace {

// Logits of 4 MiB, and of 4 MiB each what the loss makes of them: three of them at once.
constexpr const char* kLoss = R"ir(
graph @head version=1 device="cpu" target="cpu" recipe="" producer="" steps=0 {
  scalar #lr : f64 = -0.1
  input %x "x" : f32[256,8]
  input %t "t" : i64[256]
  parameter %w "head.weight" : f32[4096,8]
  view %wt of %w : f32[8,4096] strides=[1,8]
forward "head":
  %z "head/logits" : f32[256,4096] = aten.mm.default(%x, %wt)
  %p : f32[256,4096] = aten._log_softmax.default(%z, 1, false)
  %l "loss" output : f32[], %n : f32[] = aten.nll_loss_forward.default(%p, %t, none, 1, -100)
  %o : f32[] = aten.ones_like.default(%l, none, none, none, none, memory_format(contiguous))
backward "head":
  %g : f32[256,4096] = aten.nll_loss_backward.default(%o, %p, %t, none, 1, -100, %n)
  %d : f32[256,4096] = aten._log_softmax_backward_data.default(%g, %p, 1, dtype(f32))
  view %dt of %d : f32[4096,256] strides=[1,4096]
  %dw "grad(head.weight)" gradient : f32[4096,8] = aten.mm.default(%dt, %x)
optimizer "":
  aten.add_.Tensor(inout %w, %dw, #lr)
}
)ir";

constexpr int64_t kMiB = int64_t{1} << 20;

class WaysOut : public testing::Test {
 protected:
  ir::PlanError refuse(const PlanStepOptions& options) {
    ir::Expected<PlannedStep> planned = planStep(graph_, target_, costs_, options);
    EXPECT_FALSE(static_cast<bool>(planned));
    if (planned) return ir::PlanError(ir::ErrorCode::kInternal, "planned");
    return tests::orFail(addWaysOut({.graph = graph_,
                                     .target = target_,
                                     .costs = costs_,
                                     .options = options,
                                     .variations = tests::orFail(findVariations(graph_, options))},
                                    ir::takePayload(planned.takeError())));
  }

  const ir::Graph graph_ = tests::orFail(ir::parseGraph(kLoss));
  const ir::Target target_ = *planner::findTargetProfile("cpu");
  const ir::CostTable costs_ = planner::rooflineCosts(graph_, target_);
};

TEST_F(WaysOut, TheErrorCountsWhatIsAlikeAtThePeak) {
  const ir::PlanError error = refuse({.budget = Bytes(7 * kMiB), .rowBlocks = {}});
  ASSERT_TRUE(error.infeasible());
  ASSERT_FALSE(error.infeasible()->groups.empty());
  const std::string words = "3 of f32 [256,4096], 4.00 MiB each: 1 activation, 2 gradients";
  EXPECT_EQ(ir::describeGroup(error.infeasible()->groups[0]), words);
  EXPECT_NE(error.text().find("the most there: " + words), std::string::npos) << error.text();
}

TEST_F(WaysOut, RowBlocksThatWereNotAllowedAreNamedAndFit) {
  const ir::PlanError error = refuse({.budget = Bytes(7 * kMiB), .rowBlocks = {}});
  const std::vector<ir::Infeasible::WayOut>& ways = error.infeasible()->ways;
  ASSERT_FALSE(ways.empty());
  EXPECT_EQ(ways[0].change, "allow row-blocks");
  EXPECT_TRUE(ways[0].fits);
  // Half the rows in each tensor of the loss.
  EXPECT_EQ(ways.back().change, "half the batch of 256 (two micro-batches)");
  EXPECT_TRUE(ways.back().isAtLeast);
  EXPECT_LT(ways.back().smallestBudget, Bytes(7 * kMiB));
}

TEST_F(WaysOut, WhatDoesNotFitEitherSaysTheBudgetThatWorks) {
  const ir::PlanError error = refuse({.budget = Bytes(kMiB), .rowBlocks = {}});
  ASSERT_FALSE(error.infeasible()->ways.empty());
  const ir::Infeasible::WayOut& way = error.infeasible()->ways[0];
  EXPECT_EQ(way.change, "allow row-blocks");
  EXPECT_FALSE(way.fits);
  EXPECT_LT(way.smallestBudget, error.infeasible()->smallestBudget);
  ir::Expected<PlannedStep> planned =
      planStep(graph_, target_, costs_, {.budget = way.smallestBudget});
  EXPECT_TRUE(static_cast<bool>(planned));
}

TEST_F(WaysOut, WhatIsAllowedAlreadyIsNoWayOut) {
  EXPECT_TRUE(tests::orFail(findVariations(graph_, {})).empty());
  PlanStepOptions options{.allowed = {.offload = false}, .limits = {.host = Bytes(kMiB)}};
  const std::vector<Variation> variations = tests::orFail(findVariations(graph_, options));
  ASSERT_EQ(variations.size(), 4U);
  EXPECT_EQ(variations[0].change, "allow offload");
  EXPECT_EQ(variations[1].change, "no limit of the host");
  EXPECT_EQ(variations[2].change, "a disk");
  EXPECT_EQ(variations[3].change, "allow offload and no limit of the host");
  options = {.allowed = {.disk = true}, .limits = {.host = Bytes(kMiB), .disk = Bytes(kMiB)}};
  const std::vector<Variation> larger = tests::orFail(findVariations(graph_, options));
  ASSERT_EQ(larger.size(), 2U);
  EXPECT_EQ(larger[0].change, "no limit of the host");
  EXPECT_EQ(larger[1].change, "a disk");
}

}  // namespace
}  // namespace stowage::passes
