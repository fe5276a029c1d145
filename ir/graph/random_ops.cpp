// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/random_ops.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <variant>

#include "ir/graph/op_table.h"

namespace stowage::ir {

namespace {

/// Ops whose kernels ask the generator for numbers only if this argument of their schema is not 0.
struct Dropout {
  const char* op;
  size_t probability;
};
constexpr Dropout kDropouts[] = {
    {"aten._efficient_attention_forward.default", 8},
    {"aten._flash_attention_forward.default", 7},
    {"aten._scaled_dot_product_efficient_attention.default", 5},
    {"aten._scaled_dot_product_flash_attention.default", 3},
};

}  // namespace

bool drawsRandomNumbers(const Node& node) {
  if (!lookUpOp(node.op).random) return false;
  const auto* found = std::find_if(std::begin(kDropouts), std::end(kDropouts),
                                   [&](const Dropout& row) { return node.op == row.op; });
  if (found == std::end(kDropouts) || node.args.size() <= found->probability) return true;
  const auto* probability = std::get_if<double>(&node.args[found->probability]);
  return probability == nullptr || *probability != 0;
}

}  // namespace stowage::ir
