// SPDX-License-Identifier: Apache-2.0
//
// Which operand's bytes a result may land on: one that looks exactly like it (rule V21), an element
// type of the same size not being enough.
#include "planner/problem/in_place_operands.h"

#include <gtest/gtest.h>

#include "ir/text/parser.h"

namespace stowage::planner {
namespace {

/// The name of the operand's storage, or "" for none.
std::string candidate(const std::string& exponent, int which) {
  const std::string text = R"IR(
graph @pow version=1 {
  input %x "x" : f32[4,2]
forward "":
  %base "base" : f32[4,2] = aten.neg.default(%x)
  %made "made" : )IR" + exponent +
                           R"IR( = aten.test.default(%x)
  %power "power" output : f32[4,2] = aten.pow.Tensor_Tensor(%base, %made)
}
)IR";
  const ir::Graph graph = llvm::cantFail(ir::parseGraph(text));
  const ir::StorageId storage = inPlaceCandidate(graph, ir::NodeId(2), which);
  return storage.isValid() ? graph.storage(storage).name : "";
}

TEST(InPlaceOperands, WantsAnOperandThatLooksLikeTheResult) {
  EXPECT_EQ(candidate("f32[4,2]", 0), "base");
  EXPECT_EQ(candidate("f32[4,2]", 1), "made");
  EXPECT_EQ(candidate("i32[4,2]", 1), "");
  EXPECT_EQ(candidate("f32[2,4]", 1), "");
  EXPECT_EQ(candidate("f32[4,2] strides=[1,4]", 1), "");
}

}  // namespace
}  // namespace stowage::planner
