// SPDX-License-Identifier: Apache-2.0
//
// What shrinks when a batch is halved: what follows from inputs, not weights and their gradients.
#include "planner/bound/half_batch.h"

#include <gtest/gtest.h>

#include "ir/text/parser.h"
#include "planner/targets/roofline.h"
#include "tests/support/or_fail.h"

namespace stowage::planner {
namespace {

std::string stepOf(const std::string& input) {
  return R"ir(
graph @half version=1 device="cpu" target="cpu" recipe="" producer="" steps=0 {
  )ir" + input +
         R"ir(
  parameter %w "w" : f32[256,64]
  view %wt of %w : f32[64,256] strides=[1,64]
forward "head":
  %a : f32[32,256] = aten.mm.default(%x, %wt)
  view %at of %a : f32[256,32] strides=[1,256]
  %b : f32[256,32] = aten.mul.Tensor(%at, %at)
  %l "loss" output : f32[] = aten.sum.default(%b, none)
}
)ir";
}

std::optional<HalfBatch> halfOf(const ir::Graph& graph) {
  const ir::Target target = *findTargetProfile("cpu");
  const ir::CostTable costs = rooflineCosts(graph, target);
  return findHalfBatch(tests::orFail(makeProblem(graph, target, costs)));
}

// The product needs x of 8 KiB, w of 64 KiB and a of 32 KiB; with half the batch 4, 64 and 16.
TEST(HalfBatch, ShrinksWhatFollowsFromInputs) {
  const ir::Graph graph = tests::orFail(ir::parseGraph(stepOf("input %x \"x\" : f32[32,64]")));
  const std::optional<HalfBatch> half = halfOf(graph);
  ASSERT_TRUE(half);
  EXPECT_EQ(half->batch, 32);
  EXPECT_EQ(half->least, Bytes((4 + 64 + 16) * 1024));
}

TEST(HalfBatch, InputsMustShareABatchThatCanBeHalved) {
  EXPECT_FALSE(halfOf(tests::orFail(
      ir::parseGraph(stepOf("input %x \"x\" : f32[32,64]\n  input %y \"y\" : f32[7]")))));
}

}  // namespace
}  // namespace stowage::planner
