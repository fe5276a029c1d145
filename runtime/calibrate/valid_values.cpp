// SPDX-License-Identifier: Apache-2.0
#include "runtime/calibrate/valid_values.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <string_view>

namespace stowage::runtime {

namespace {

// Argument `index` holds indices into dimension `dimension` of argument `of` (kByArgument: the
// dimension is the integer argument `dimension`; kProduct: into the last two dimensions as one;
// kNumber: below the integer argument `of`; kNone: zero, as a mask that may choose no more elements
// than another argument has; kPosition: the n-th element of the list indexes
// dimension n).
enum class Rule : uint8_t { kDimension, kByArgument, kProduct, kNumber, kPosition, kNone };
struct IndexArgument {
  std::string_view op;
  int8_t index;
  int8_t of;
  Rule rule = Rule::kDimension;
  int8_t dimension = 0;
};

constexpr IndexArgument kIndexArguments[] = {
    {"aten.embedding.default", 1, 0},
    {"aten.embedding_dense_backward.default", 1, 2, Rule::kNumber},
    {"aten._embedding_bag.default", 1, 0},
    {"aten.nll_loss_forward.default", 1, 0, Rule::kDimension, 1},
    {"aten.nll_loss_backward.default", 2, 1, Rule::kDimension, 1},
    {"aten.nll_loss2d_forward.default", 1, 0, Rule::kDimension, 1},
    {"aten.nll_loss2d_backward.default", 2, 1, Rule::kDimension, 1},
    {"aten.gather.default", 2, 0, Rule::kByArgument, 1},
    {"aten.scatter.src", 2, 0, Rule::kByArgument, 1},
    {"aten.scatter.value", 2, 0, Rule::kByArgument, 1},
    {"aten.scatter_.src", 2, 0, Rule::kByArgument, 1},
    {"aten.scatter_.value", 2, 0, Rule::kByArgument, 1},
    {"aten.scatter_add.default", 2, 0, Rule::kByArgument, 1},
    {"aten.scatter_add_.default", 2, 0, Rule::kByArgument, 1},
    {"aten.index_select.default", 2, 0, Rule::kByArgument, 1},
    {"aten.index_add.default", 2, 0, Rule::kByArgument, 1},
    {"aten.index_add_.default", 2, 0, Rule::kByArgument, 1},
    {"aten.index.Tensor", 1, 0, Rule::kPosition},
    {"aten.index_put.default", 1, 0, Rule::kPosition},
    {"aten.index_put_.default", 1, 0, Rule::kPosition},
    {"aten._index_put_impl_.default", 1, 0, Rule::kPosition},
    {"aten._unsafe_index.Tensor", 1, 0, Rule::kPosition},
    {"aten._unsafe_index_put.default", 1, 0, Rule::kPosition},
    {"aten.masked_scatter.default", 1, 0, Rule::kNone},
    {"aten.masked_scatter_.default", 1, 0, Rule::kNone},
    {"aten.max_pool2d_with_indices_backward.default", 7, 1, Rule::kProduct},
};

const ir::TensorType* typeOf(const ir::Graph& graph, const ir::Node& node, int8_t argument) {
  const auto position = static_cast<size_t>(argument);
  if (position >= node.args.size()) return nullptr;
  const auto* value = std::get_if<ir::ValueArg>(&node.args[position]);
  return value != nullptr && value->value.isValid() ? &graph.value(value->value).type : nullptr;
}

int64_t integerOf(const ir::Node& node, int64_t argument) {
  const auto position = static_cast<size_t>(argument);
  if (position >= node.args.size()) return 0;
  const auto* number = std::get_if<int64_t>(&node.args[position]);
  return number != nullptr ? *number : 0;
}

int64_t sizeOf(const ir::TensorType& type, int64_t dimension) {
  const auto rank = static_cast<int64_t>(type.sizes.size());
  if (rank == 0) return 1;
  // A class dimension that an unbatched operand does not have is its only one.
  if (dimension >= rank) dimension = rank - 1;
  if (dimension < 0) dimension += rank;
  return dimension < 0 ? 1 : type.sizes[static_cast<size_t>(dimension)];
}

int64_t boundOf(const ir::Graph& graph, const ir::Node& node, const IndexArgument& row,
                int64_t position) {
  if (row.rule == Rule::kNumber) return integerOf(node, row.of);
  const ir::TensorType* type = typeOf(graph, node, row.of);
  if (type == nullptr) return 1;
  switch (row.rule) {
    case Rule::kByArgument:
      return sizeOf(*type, integerOf(node, row.dimension));
    case Rule::kProduct:
      return sizeOf(*type, -1) * sizeOf(*type, -2);
    case Rule::kPosition:
      return sizeOf(*type, position);
    case Rule::kNone:
      return 1;
    default:
      return sizeOf(*type, row.dimension);
  }
}

// Position of the value in an argument: 0 for the argument itself; -1 if it is not there.
int64_t findIn(const ir::Argument& argument, ir::ValueId value) {
  if (const auto* single = std::get_if<ir::ValueArg>(&argument)) {
    return single->value == value ? 0 : -1;
  }
  if (const auto* list = std::get_if<ir::ValueList>(&argument)) {
    for (size_t i = 0; i < list->size(); ++i) {
      if ((*list)[i].value == value) return static_cast<int64_t>(i);
    }
  }
  return -1;
}

template <typename Number, typename Draw>
void fill(llvm::MutableArrayRef<uint8_t> bytes, Draw draw) {
  for (size_t i = 0; i + sizeof(Number) <= bytes.size(); i += sizeof(Number)) {
    const Number number = draw();
    std::memcpy(bytes.data() + i, &number, sizeof(Number));
  }
}

}  // namespace

std::optional<int64_t> findIntegerBound(const ir::Graph& graph, ir::NodeId id, ir::ValueId value) {
  const ir::Node& node = graph.node(id);
  for (const IndexArgument& row : kIndexArguments) {
    const auto index = static_cast<size_t>(row.index);
    if (row.op != node.op || index >= node.args.size()) continue;
    const int64_t position = findIn(node.args[index], value);
    if (position >= 0) return boundOf(graph, node, row, position);
  }
  return std::nullopt;
}

void fillValidValues(ir::DType dtype, IntegerRange integers, uint64_t seed,
                     llvm::MutableArrayRef<uint8_t> bytes) {
  std::minstd_rand engine(static_cast<uint32_t>(seed * 2654435761U + 1));
  const auto real = [&] { return 0.1 + 0.9 * static_cast<double>(engine() & 0xffff) / 0x10000; };
  const auto integer = [&] {
    return integers.begin +
           static_cast<int64_t>(engine()) % std::max<int64_t>(integers.end - integers.begin, 1);
  };
  // The upper half of a float's bits is a bfloat16; halves and 8-bit floats take patterns of small
  // positive numbers.
  switch (dtype) {
    case ir::DType::kF64:
    case ir::DType::kC128:
      return fill<double>(bytes, real);
    case ir::DType::kF32:
    case ir::DType::kC64:
      return fill<float>(bytes, [&] { return static_cast<float>(real()); });
    case ir::DType::kBF16:
      return fill<uint16_t>(bytes, [&] {
        return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(real())) >> 16);
      });
    case ir::DType::kF16:
      return fill<uint16_t>(bytes,
                            [&] { return static_cast<uint16_t>(0x3400 + engine() % 0x800); });
    case ir::DType::kI64:
    case ir::DType::kU64:
      return fill<int64_t>(bytes, integer);
    case ir::DType::kI32:
      return fill<int32_t>(bytes, [&] { return static_cast<int32_t>(integer()); });
    case ir::DType::kI16:
      return fill<int16_t>(bytes, [&] { return static_cast<int16_t>(integer()); });
    case ir::DType::kF8E4M3:
    case ir::DType::kF8E5M2:
      return fill<uint8_t>(bytes, [&] { return static_cast<uint8_t>(0x30 + engine() % 8); });
    case ir::DType::kI8:
    case ir::DType::kU8:
      return fill<uint8_t>(bytes, [&] { return static_cast<uint8_t>(engine() % 2); });
    case ir::DType::kBool:
      return fill<uint8_t>(bytes, [&] { return static_cast<uint8_t>(integer() % 2); });
  }
}

}  // namespace stowage::runtime
