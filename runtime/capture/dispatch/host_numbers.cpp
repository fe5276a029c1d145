// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/dispatch/host_numbers.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <llvm/ADT/StringRef.h>

#include <algorithm>
#include <optional>

#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/capture/ops/call_results.h"
#include "runtime/capture/ops/encode_argument.h"
#include "runtime/capture/ops/op_facts.h"

namespace stowage::runtime {
namespace {

thread_local bool hostNumbersOnThread = false;
thread_local bool takeValuesOnThread = false;

bool isHostNumber(const at::Tensor& tensor) {
  return tensor.defined() && tensor.dim() == 0 && tensor.device().is_cpu() && !isFake(tensor);
}

/// A factory of one number on the CPU, from a number or nothing.
bool makesHostNumber(const OpFacts& op, llvm::ArrayRef<c10::IValue> args) {
  const auto& returned = op.schema().returns();
  const bool isOfOne = !args.empty() && args[0].isIntList() && args[0].toIntList().empty();
  return returned.size() == 1 && returned[0].type()->isSubtypeOf(*c10::TensorType::get()) &&
         isOfOne && deviceOfCall(args).is_cpu();
}

/// Ops whose kernels take a number in the place of their later operands.
bool isArithmetic(llvm::StringRef name) {
  constexpr llvm::StringRef kOps[] = {
      "aten.add.Tensor",       "aten.add_.Tensor",     "aten.sub.Tensor", "aten.sub_.Tensor",
      "aten.mul.Tensor",       "aten.mul_.Tensor",     "aten.div.Tensor", "aten.div_.Tensor",
      "aten.addcmul_.default", "aten.addcdiv_.default"};
  return std::find(std::begin(kOps), std::end(kOps), name) != std::end(kOps);
}

/// Is the result of the same type whether `number` is a tensor or a number of the call?
bool keepsType(llvm::ArrayRef<c10::IValue> args, const at::Tensor& number) {
  const bool isInteger = c10::isIntegralType(number.scalar_type(), /*includeBool=*/false);
  bool keeps = false;
  forEachTensor(args, [&](const at::Tensor& tensor) {
    if (isHostNumber(tensor) || !tensor.is_floating_point()) return;
    keeps = keeps || tensor.dim() > 0 || isInteger || tensor.scalar_type() == number.scalar_type();
  });
  return keeps && (isInteger || number.is_floating_point());
}

at::Tensor asWrappedNumber(const at::Tensor& tensor) {
  at::Tensor number = c10::scalar_to_tensor(at::_local_scalar_dense(tensor));
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

std::optional<size_t> positionOfRate(const OpFacts& op) {
  const llvm::StringRef name = op.name;
  if (!name.startswith("aten._fused_") || !name.endswith(".tensor_lr")) return std::nullopt;
  const std::optional<int> position = op.schema().argumentIndexWithName("lr");
  return position ? std::optional(static_cast<size_t>(*position)) : std::nullopt;
}

}  // namespace

void setHostNumbers(bool areHostNumbers, bool takeValues) {
  hostNumbersOnThread = areHostNumbers;
  takeValuesOnThread = takeValues;
}

bool worksOnHostNumbers(const OpFacts& op, llvm::ArrayRef<c10::IValue> args) {
  if (!hostNumbersOnThread) return false;
  bool anyTensor = false, allNumbers = true;
  forEachTensor(args, [&](const at::Tensor& tensor) {
    anyTensor = true;
    allNumbers = allNumbers && isHostNumber(tensor);
  });
  return anyTensor ? allNumbers : makesHostNumber(op, args);
}

bool takesListOfHostNumbers(const OpFacts& op, llvm::ArrayRef<c10::IValue> args) {
  if (!hostNumbersOnThread || !llvm::StringRef(op.name).startswith("aten._foreach_")) return false;
  return std::any_of(args.begin(), args.end(), [](const c10::IValue& value) {
    if (!value.isTensorList()) return false;
    const std::vector<at::Tensor> list = value.toTensorVector();
    return std::any_of(list.begin(), list.end(), isHostNumber);
  });
}

void takeAsNumbers(const OpFacts& op, torch::jit::Stack* stack) {
  if (!hostNumbersOnThread || !isArithmetic(op.name)) return;
  const size_t count = op.schema().arguments().size();
  for (size_t i = 1; i < count; ++i) {
    c10::IValue& value = torch::jit::peek(*stack, i, count);
    if (!value.isTensor() || !isHostNumber(value.toTensor())) continue;
    const at::Tensor& tensor = value.toTensor();
    if (isWrappedNumber(tensor)) continue;
    if (keepsType(llvm::ArrayRef<c10::IValue>(*stack).take_back(count), tensor))
      value = asWrappedNumber(tensor);
  }
}

bool writesHostNumber(const OpFacts& op, llvm::ArrayRef<c10::IValue> args) {
  if (!hostNumbersOnThread) return false;
  if (takeValuesOnThread && op.name == "aten.copy_.default") return false;
  return std::any_of(op.writtenArguments.begin(), op.writtenArguments.end(), [&](uint32_t index) {
    return args[index].isTensor() && isHostNumber(args[index].toTensor());
  });
}

bool takesRateOfHost(const OpFacts& op, llvm::ArrayRef<c10::IValue> args) {
  const std::optional<size_t> rate = positionOfRate(op);
  return rate && isHostNumber(args[*rate].toTensor());
}

void callWithRate(const OpFacts& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  c10::IValue& rate = torch::jit::peek(*stack, *positionOfRate(op), count);
  rate = at::_local_scalar_dense(rate.toTensor()).toDouble();
  const auto withNumber =
      c10::Dispatcher::singleton().findSchemaOrThrow(op.handle.operator_name().name.c_str(), "");
  withNumber.callBoxed(*stack);
}

}  // namespace stowage::runtime
