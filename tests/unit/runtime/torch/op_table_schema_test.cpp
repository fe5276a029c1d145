// SPDX-License-Identifier: Apache-2.0
//
// The rows of the op table against libtorch's own register of ops: names exist, operands are where
// the table says, and what core tags as drawing random numbers is marked so. A misspelt row would
// otherwise be an unknown op, silently.

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "ir/graph/op_table.h"
#include "ir/graph/row_ops.h"

namespace stowage::ir {
namespace {

// "aten.add.Tensor" -> {"aten::add", "Tensor"}
c10::OperatorName operatorName(const std::string& op) {
  const size_t first = op.find('.');
  const size_t last = op.rfind('.');
  const std::string overload = op.substr(last + 1);
  return {op.substr(0, first) + "::" + op.substr(first + 1, last - first - 1),
          overload == "default" ? "" : overload};
}

std::optional<c10::OperatorHandle> find(const std::string& op) {
  return c10::Dispatcher::singleton().findSchema(operatorName(op));
}

bool isAten(const OpInfo& row) { return std::string(row.op).rfind("aten.", 0) == 0; }

bool isTensor(const c10::Argument& argument) {
  return argument.type()->kind() == c10::TypeKind::TensorType;
}

TEST(OpTableSchema, EveryRowNamesAnOp) {
  for (const OpInfo& row : allOps()) {
    if (!isAten(row)) continue;
    EXPECT_TRUE(find(row.op).has_value()) << row.op;
  }
  EXPECT_FALSE(find("aten.no_such_op.default").has_value());
}

TEST(OpTableSchema, InPlaceReuseNamesTensorOperandsOfOpsThatMakeTheirResult) {
  for (const OpInfo& row : allOps()) {
    if (row.inPlaceOperand < 0) continue;
    const c10::FunctionSchema& schema = find(row.op)->schema();
    for (const int8_t operand : {row.inPlaceOperand, row.inPlaceOperand2}) {
      if (operand < 0) continue;
      ASSERT_LT(static_cast<size_t>(operand), schema.arguments().size()) << row.op;
      EXPECT_TRUE(isTensor(schema.arguments()[static_cast<size_t>(operand)])) << row.op;
    }
    EXPECT_FALSE(schema.is_mutable()) << row.op;
    ASSERT_EQ(schema.returns().size(), 1u) << row.op;
    EXPECT_EQ(schema.returns()[0].alias_info(), nullptr) << row.op;
  }
}

// A recompute passes the original's arguments to the replay form, place by place.
TEST(OpTableSchema, ReplayFormsTakeTheSameArgumentsAndLetTheWrittenOnesBeUndefined) {
  for (const OpInfo& row : allOps()) {
    if (row.replayForm[0] == '\0') continue;
    const auto& from = find(row.op)->schema().arguments();
    const auto& to = find(row.replayForm)->schema().arguments();
    ASSERT_EQ(from.size(), to.size()) << row.op;
    for (size_t i = 0; i < from.size(); ++i) {
      const bool isStatistic = from[i].name() == "running_mean" || from[i].name() == "running_var";
      const bool isOptional = to[i].type()->kind() == c10::TypeKind::OptionalType;
      EXPECT_TRUE(!isStatistic || isOptional) << row.op << " argument " << i;
    }
  }
}

TEST(OpTableSchema, OpsThatDrawAreMarked) {
  // Tagged for a dropout that the CPU's kernel does not have; and backward kernels, which take seed
  // and offset from their forward kernel.
  const std::set<std::string> kNeverDraw = {
      "aten._cudnn_attention_backward.default",
      "aten._scaled_dot_product_cudnn_attention_backward.default",
      "aten._scaled_dot_product_efficient_attention_backward.default",
      "aten._scaled_dot_product_flash_attention_for_cpu.default"};
  for (const OpInfo& row : allOps()) {
    if (!isAten(row) || kNeverDraw.count(row.op) != 0) continue;
    if (find(row.op)->hasTag(at::Tag::nondeterministic_seeded)) {
      EXPECT_TRUE(row.random) << row.op;
    }
  }
}

// What is called free makes a view, or a tensor without contents.
TEST(OpTableSchema, FreeOpsAliasAnOperandOrMakeNothing) {
  for (const OpInfo& row : allOps()) {
    if (!isAten(row) || row.cost != CostKind::kFree) continue;
    const std::string op = row.op;
    const bool isEmpty = op.find("empty") != std::string::npos;
    const c10::FunctionSchema& schema = find(op)->schema();
    // Aliases although its schema does not say so.
    const bool isUnsafeView = op == "aten._unsafe_view.default";
    const bool aliases = !schema.returns().empty() && schema.returns()[0].alias_info() != nullptr;
    EXPECT_TRUE(isEmpty || isUnsafeView || aliases) << op;
  }
}

TEST(RowOpsSchema, RowsNameOpsThatOnlyMakeResultsAndTheirArguments) {
  for (const RowOp& row : allRowOps()) {
    EXPECT_EQ(&lookUpRowOp(row.op), &row) << row.op;
    EXPECT_TRUE(lookUpOp(row.op).known && !lookUpOp(row.op).random) << row.op;
    ASSERT_TRUE(find(row.op).has_value()) << row.op;
    const c10::FunctionSchema& schema = find(row.op)->schema();
    EXPECT_FALSE(schema.is_mutable()) << row.op;
    if (row.factor >= 0) {
      EXPECT_EQ(schema.arguments()[static_cast<size_t>(row.factor)].name(), "alpha") << row.op;
    } else if (row.exact) {
      for (const c10::Argument& argument : schema.arguments()) {
        EXPECT_NE(argument.name(), "alpha") << row.op;
      }
    }
    EXPECT_EQ(row.dimension >= 0, row.kind == RowKind::kLastDim) << row.op;
    if (row.dimension < 0) continue;
    EXPECT_EQ(schema.arguments()[static_cast<size_t>(row.dimension)].name(), "dim") << row.op;
  }
  EXPECT_EQ(lookUpRowOp("aten.sum.dim_IntList").kind, RowKind::kNone);
}

}  // namespace
}  // namespace stowage::ir
