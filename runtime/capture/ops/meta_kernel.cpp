// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/ops/meta_kernel.h"

#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/List.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/stack.h>
#include <c10/core/TensorImpl.h>
#include <llvm/ADT/SmallVector.h>

#include <utility>

#include "runtime/capture/ops/encode_argument.h"
#include "runtime/capture/ops/op_facts.h"

namespace stowage::runtime {
namespace {

/// The arguments of one call and their stand-ins on the meta device.
class StandIns {
 public:
  at::Tensor standInFor(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    for (const auto& [original, standIn] : tensors_) {
      if (original.is_same(tensor)) return standIn;
    }
    at::Tensor made = make(tensor);
    tensors_.emplace_back(tensor, made);
    return made;
  }

  /// What `result` is in terms of the arguments.
  OutputTensor explain(const at::Tensor& result) {
    OutputTensor output;
    if (!result.defined()) return output;
    output.shape = shapeOf(result);
    for (const auto& [original, standIn] : tensors_) {
      if (!standIn.is_same(result)) continue;
      output.kind = hasChangedShape(original, standIn) ? OutputTensor::Kind::kView
                                                       : OutputTensor::Kind::kArgument;
      output.base = original;
      return output;
    }
    const c10::StorageImpl* storage = result.storage().unsafeGetStorageImpl();
    for (const auto& [original, standIn] : storages_) {
      if (standIn.unsafeGetStorageImpl() != storage) continue;
      output.kind = OutputTensor::Kind::kView;
      output.base = original;
      return output;
    }
    output.kind = OutputTensor::Kind::kFresh;
    output.storageGroup = groupOf(storage);
    output.storageBytes = static_cast<int64_t>(storage->nbytes());
    return output;
  }

  bool anyArgumentChangedShape() const {
    for (const auto& [original, standIn] : tensors_) {
      if (hasChangedShape(original, standIn)) return true;
    }
    return false;
  }

 private:
  static bool hasChangedShape(const at::Tensor& original, const at::Tensor& standIn) {
    return original.sizes() != standIn.sizes() || original.strides() != standIn.strides();
  }

  at::Tensor make(const at::Tensor& tensor) {
    // A number is its own: kernels written in Python take it for one on the CPU alone.
    if (isWrappedNumber(tensor) && !isFake(tensor)) return tensor;
    at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
        storageFor(tensor), c10::DispatchKeySet(c10::DispatchKey::Meta), tensor.dtype());
    c10::TensorImpl* impl = made.unsafeGetTensorImpl();
    impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
    if (isWrappedNumber(tensor)) impl->set_wrapped_number(true);
    made._set_conj(tensor.is_conj());
    made._set_neg(tensor.is_neg());
    return made;
  }

  c10::Storage storageFor(const at::Tensor& tensor) {
    for (const auto& [original, standIn] : storages_) {
      if (original.storage().unsafeGetStorageImpl() == tensor.storage().unsafeGetStorageImpl()) {
        return standIn;
      }
    }
    c10::Storage made(c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), tensor.storage().nbytes(),
        c10::DataPtr(nullptr, c10::Device(c10::kMeta)), nullptr, false));
    storages_.emplace_back(tensor, made);
    return made;
  }

  int32_t groupOf(const c10::StorageImpl* storage) {
    for (size_t i = 0; i < freshStorages_.size(); ++i) {
      if (freshStorages_[i] == storage) return static_cast<int32_t>(i);
    }
    freshStorages_.push_back(storage);
    return static_cast<int32_t>(freshStorages_.size()) - 1;
  }

  llvm::SmallVector<std::pair<at::Tensor, at::Tensor>, 8> tensors_;
  llvm::SmallVector<std::pair<at::Tensor, c10::Storage>, 8> storages_;
  llvm::SmallVector<const c10::StorageImpl*, 2> freshStorages_;
};

c10::IValue standInForList(const c10::IValue& value, StandIns& standIns) {
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector())
      list.push_back(standIns.standInFor(tensor));
    return list;
  }
  c10::List<std::optional<at::Tensor>> list;
  for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
    list.push_back(tensor ? std::make_optional(standIns.standInFor(*tensor)) : std::nullopt);
  }
  return list;
}

c10::IValue standInForArgument(const c10::IValue& value, const c10::Argument& argument,
                               bool isFactory, StandIns& standIns) {
  if (value.isTensor()) return standIns.standInFor(value.toTensor());
  if (value.isTensorList() || value.isOptionalTensorList()) return standInForList(value, standIns);
  if (value.isDevice()) return c10::Device(c10::kMeta);
  if (argument.name() == "device" && value.isNone() && isFactory) return c10::Device(c10::kMeta);
  if (argument.name() == "pin_memory") return c10::IValue();
  return value;
}

Output explainReturn(const c10::IValue& value, StandIns& standIns) {
  Output output;
  if (value.isTensor()) {
    output.tensors.push_back(standIns.explain(value.toTensor()));
  } else if (value.isTensorList()) {
    output.isList = true;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      output.tensors.push_back(standIns.explain(tensor));
    }
  } else {
    output.plain = value;
  }
  return output;
}

/// Elementwise ops that are not tagged so.
bool isUntaggedElementwise(llvm::StringRef name) {
  return name == "aten.elu_backward.default" || name == "aten.hardswish_backward.default" ||
         name == "aten.leaky_relu_backward.default" || name == "aten.softplus_backward.default";
}

/// Tagged as elementwise, but their kernels lay the result out by themselves.
bool laysOutByItself(llvm::StringRef name) {
  return name.startswith("aten.clone.") || name.startswith("aten.conj_physical.") ||
         name.startswith("aten.float_power.") || name.startswith("aten.hardtanh.") ||
         name.startswith("aten.masked_fill.") || name.startswith("aten.mvlgamma.") ||
         name.startswith("aten.nan_to_num.") || name.startswith("aten.relu6.") ||
         name.startswith("aten.rrelu.") || name == "aten.pow.Scalar";
}

/// A number that an elementwise kernel takes for an operand without dimensions.
bool isOperand(const c10::Argument& argument) {
  return argument.type()->kind() == c10::TypeKind::NumberType &&
         (argument.name() == "other" || argument.name() == "self");
}

/// Lays out the result of an elementwise op as libtorch's kernels for devices do. `import torch`
/// puts kernels of Python in the place of libtorch's for tensors without data, and where strides
/// are ambiguous (dimensions of one element, operands with gaps), those answer otherwise.
void layOutElementwise(const TracedCall& call, StandIns& standIns, Outputs& outputs) {
  const llvm::StringRef name(call.op.name);
  const bool isElementwise = call.op.handle.hasTag(at::Tag::pointwise)
                                 ? !laysOutByItself(name)
                                 : isUntaggedElementwise(name);
  if (!isElementwise || outputs.size() != 1 || outputs[0].isList || outputs[0].tensors.size() != 1)
    return;
  OutputTensor& made = outputs[0].tensors[0];
  if (made.kind != OutputTensor::Kind::kFresh) return;
  llvm::SmallVector<at::Tensor, 4> operands;
  const auto& arguments = call.op.schema().arguments();
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (call.args[i].isTensor() && call.args[i].toTensor().defined()) {
      operands.push_back(standIns.standInFor(call.args[i].toTensor()).detach());
    } else if (call.args[i].isScalar() && isOperand(arguments[i])) {
      operands.push_back(at::detail::empty_meta({}, c10::kFloat));
    }
  }
  // Their kernels take the operands the other way round.
  if (name == "aten.threshold_backward.default" || name == "aten.leaky_relu_backward.default")
    std::swap(operands[0], operands[1]);
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false).check_all_same_dtype(false).check_all_same_device(false);
  config.declare_static_dtype_and_device(c10::kFloat, c10::kMeta).add_owned_output(at::Tensor());
  for (const at::Tensor& operand : operands) config.add_owned_const_input(operand);
  const at::Tensor laidOut = config.build().output();
  if (laidOut.sizes() != c10::IntArrayRef(made.shape.sizes)) return;
  made.shape.strides.assign(laidOut.strides().begin(), laidOut.strides().end());
}

bool takesTensors(llvm::ArrayRef<c10::IValue> args) {
  for (const c10::IValue& value : args) {
    if (value.isTensor() || value.isTensorList() || value.isOptionalTensorList()) return true;
  }
  return false;
}

}  // namespace

Outputs runMetaKernel(const TracedCall& call) {
  StandIns standIns;
  torch::jit::Stack stack;
  stack.reserve(call.args.size());
  const bool isFactory = !takesTensors(call.args);
  const auto& arguments = call.op.schema().arguments();
  for (size_t i = 0; i < call.args.size(); ++i) {
    stack.push_back(standInForArgument(call.args[i], arguments[i], isFactory, standIns));
  }
  call.op.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  TORCH_CHECK(call.op.changesShape || !standIns.anyArgumentChangedShape(),
              "it resizes an argument (an `out` of another size)");
  Outputs outputs;
  for (const c10::IValue& value : stack) outputs.push_back(explainReturn(value, standIns));
  layOutElementwise(call, standIns, outputs);
  return outputs;
}

}  // namespace stowage::runtime
