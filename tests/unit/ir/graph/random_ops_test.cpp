// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/random_ops.h"

#include <gtest/gtest.h>

namespace stowage::ir {
namespace {

Node makeNode(std::string op, std::vector<Argument> args) {
  Node node;
  node.op = std::move(op);
  node.args = std::move(args);
  return node;
}

TEST(RandomOps, AttentionWithoutDropoutDrawsNothing) {
  const ValueArg x{ValueId(0)};
  const std::string flash = "aten._scaled_dot_product_flash_attention.default";
  EXPECT_FALSE(drawsRandomNumbers(makeNode(flash, {x, x, x, 0.0, true})));
  EXPECT_TRUE(drawsRandomNumbers(makeNode(flash, {x, x, x, 0.1, true})));
  EXPECT_TRUE(drawsRandomNumbers(makeNode(flash, {x, x, x}))) << "not said";
  const std::string efficient = "aten._scaled_dot_product_efficient_attention.default";
  EXPECT_FALSE(drawsRandomNumbers(makeNode(efficient, {x, x, x, NoneArg(), true, 0.0, true})));
  EXPECT_TRUE(drawsRandomNumbers(makeNode(efficient, {x, x, x, NoneArg(), true, 0.5, true})));
}

TEST(RandomOps, OtherOpsGoByTheTable) {
  const ValueArg x{ValueId(0)};
  EXPECT_TRUE(drawsRandomNumbers(makeNode("aten.bernoulli.p", {x, 0.0, NoneArg()})));
  EXPECT_FALSE(drawsRandomNumbers(makeNode("aten.mm.default", {x, x})));
}

}  // namespace
}  // namespace stowage::ir
