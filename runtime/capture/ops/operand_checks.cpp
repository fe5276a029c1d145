// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/ops/operand_checks.h"

#include <algorithm>
#include <optional>
#include <string>

#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/capture/ops/call_results.h"
#include "runtime/capture/ops/op_facts.h"
#include "runtime/torch/torch_types.h"

namespace stowage::runtime {
namespace {

std::optional<size_t> positionOf(const c10::FunctionSchema& schema, std::string_view name) {
  const auto& arguments = schema.arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() == name) return i;
  }
  return std::nullopt;
}

const OpFacts& factsOf(std::string_view op) {
  thread_local OpFactsTable table;
  ir::Expected<c10::OperatorHandle> handle = findOperator({op.data(), op.size()});
  TORCH_CHECK(handle, "libtorch has no op ", op);
  return table.lookUp(*handle);
}

/// Anything of the right kind: no result's size depends on it.
c10::IValue someValue(const c10::Argument& argument) {
  if (argument.default_value()) return *argument.default_value();
  switch (argument.type()->kind()) {
    case c10::TypeKind::FloatType:
      return 1.0;
    case c10::TypeKind::BoolType:
      return false;
    case c10::TypeKind::TensorType:
      return at::Tensor();
    case c10::TypeKind::OptionalType:
      return {};
    default:
      return int64_t{0};
  }
}

}  // namespace

bool Operands::has(std::string_view name) const {
  const std::optional<size_t> position = positionOf(call_.op.schema(), name);
  return position && call_.hasTensor(*position);
}

const c10::IValue& Operands::at(std::string_view name) const {
  const std::optional<size_t> position = positionOf(call_.op.schema(), name);
  TORCH_INTERNAL_ASSERT(position, call_.op.name, " has no argument ", name);
  return call_.args[*position];
}

at::Tensor Operands::tensor(std::string_view name) const {
  return has(name) ? at(name).toTensor() : at::Tensor();
}

void Operands::checkSizes(std::string_view name, at::IntArrayRef expected) const {
  if (!has(name)) return;
  const at::Tensor found = tensor(name);
  TORCH_CHECK(found.sizes() == expected, "found ", name, " of sizes ", found.sizes(), ", expected ",
              expected);
}

void Operands::checkRow(std::string_view name, int64_t elements) const {
  if (!has(name)) return;
  const at::Tensor found = tensor(name);
  TORCH_CHECK(found.numel() == elements, "found ", name, " of sizes ", found.sizes(), ", expected ",
              elements, " elements");
  checkContiguous(name);
}

void Operands::checkContiguous(std::string_view name) const {
  if (!has(name)) return;
  TORCH_CHECK(tensor(name).is_contiguous(), "found ", name, " with strides ",
              tensor(name).strides(), ", expected it contiguous");
}

void Operands::checkNotExpanded(std::string_view name) const {
  if (!has(name)) return;
  const at::Tensor found = tensor(name);
  for (int64_t dim = 0; dim < found.dim(); ++dim) {
    TORCH_CHECK(found.size(dim) < 2 || found.stride(dim) != 0, "found ", name,
                " with the same elements all along dimension ", dim, ", expected a place for each");
  }
}

void Operands::checkDimensions(std::string_view name, int64_t least, int64_t most) const {
  if (!has(name)) return;
  const int64_t found = tensor(name).dim();
  TORCH_CHECK(found >= least && found <= most, "found ", name, " with ", found,
              " dimensions, expected ", least, least == most ? "" : " to " + std::to_string(most));
}

void Operands::checkListLength(std::string_view name, int64_t length) const {
  const auto found = static_cast<int64_t>(at(name).toIntVector().size());
  TORCH_CHECK(found == length, "found ", found, " numbers in ", name, ", expected ", length);
}

Outputs outputsOf(const TracedCall& beside, std::string_view op,
                  const std::vector<c10::IValue>& args) {
  return findOutputs(
      {.op = factsOf(op), .args = args, .target = beside.target, .device = beside.device});
}

void checkSaved(const TracedCall& backward, std::string_view forward,
                std::initializer_list<SavedOperand> saved,
                std::initializer_list<std::pair<std::string_view, std::string_view>> renamed) {
  const Operands operands(backward);
  std::vector<c10::IValue> args;
  for (const c10::Argument& argument : factsOf(forward).schema().arguments()) {
    std::string_view name = argument.name();
    for (const auto& [of, in] : renamed) {
      if (of == name) name = in;
    }
    const std::optional<size_t> position = positionOf(backward.op.schema(), name);
    args.push_back(position ? backward.args[*position] : someValue(argument));
  }
  const Outputs outputs = outputsOf(backward, forward, args);
  for (const SavedOperand& one : saved) {
    if (!operands.has(one.argument)) continue;
    const OutputTensor& expected = outputs[one.result].tensors[0];
    const TensorShape shape =
        expected.kind == OutputTensor::Kind::kArgument ? shapeOf(expected.base) : expected.shape;
    operands.checkSizes(one.argument, shape.sizes);
    const c10::ScalarType type = operands.tensor(one.argument).scalar_type();
    TORCH_CHECK(type == shape.dtype, "found ", one.argument, " of type ", type, ", expected ",
                shape.dtype);
    if (one.layout == SavedOperand::Layout::kContiguous) operands.checkContiguous(one.argument);
  }
}

}  // namespace stowage::runtime
