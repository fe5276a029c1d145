// SPDX-License-Identifier: Apache-2.0
//
// The table itself. Rows are kept in order of name; the order is checked when this file is
// compiled.
#include "ir/op_table.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace stowage::ir {

namespace {

constexpr Repeatable kYes = Repeatable::kYes;

constexpr OpInfo pointwise(const char* op, int8_t takeOver = -1, int8_t takeOver2 = -1) {
  return {.op = op,
          .repeatable = kYes,
          .cloneable = true,
          .takeOverOperand = takeOver,
          .takeOverOperand2 = takeOver2,
          .known = true};
}
constexpr OpInfo pure(const char* op, CostKind cost = CostKind::kBytes) {
  return {.op = op, .repeatable = kYes, .cloneable = true, .cost = cost, .known = true};
}

constexpr OpInfo kRows[] = {
    pointwise("aten.add.Tensor", 0, 1),
    pure("aten.add_.Tensor"),
    pure("aten.addmm.default", CostKind::kMatmul),
    pointwise("aten.gelu.default", 0),
    pure("aten.mm.default", CostKind::kMatmul),
    pointwise("aten.mul.Tensor", 0, 1),
    {.op = "aten.native_dropout.default",
     .repeatable = kYes,
     .cloneable = true,
     .random = true,
     .known = true},
    pointwise("aten.relu.default", 0),
    pure("aten.relu_.default"),
    pointwise("aten.silu.default", 0),
    pure("aten.sum.default"),
};

constexpr bool isOrderedByName() {
  for (size_t i = 1; i < std::size(kRows); ++i) {
    if (!(std::string_view(kRows[i - 1].op) < std::string_view(kRows[i].op))) return false;
  }
  return true;
}
static_assert(isOrderedByName(), "rows must be in order of name, each name once");

constexpr OpInfo kUnknown{};

}  // namespace

const OpInfo& lookUpOp(llvm::StringRef op) {
  const OpInfo* row = std::lower_bound(
      std::begin(kRows), std::end(kRows), op,
      [](const OpInfo& candidate, llvm::StringRef name) { return candidate.op < name; });
  return row != std::end(kRows) && row->op == op ? *row : kUnknown;
}

int opTableVersion() { return 1; }

OpTableView allOps() { return {.begin_ = std::begin(kRows), .end_ = std::end(kRows)}; }

}  // namespace stowage::ir
