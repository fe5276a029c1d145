// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pt2_replay.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <cstdint>
#include <utility>

#include "runtime/torch/op_call.h"
#include "runtime/torch/torch_boundary.h"
#include "runtime/torch/torch_types.h"

namespace stowage::tests {
namespace {

ir::TensorType typeOf(const at::Tensor& tensor) {
  ir::TensorType type;
  type.dtype = *runtime::toDType(tensor.scalar_type());
  type.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  type.strides.assign(tensor.strides().begin(), tensor.strides().end());
  type.offset = tensor.storage_offset();
  return type;
}

}  // namespace

Pt2Replay::Pt2Replay(const runtime::Pt2Graph& draft)
    : draft_(draft),
      tensors_(draft.calls.values().size()),
      implOf_(draft.calls.storages().size(), nullptr) {}

void Pt2Replay::setInput(size_t position, at::Tensor tensor) {
  tensors_[draft_.inputs[position].index()] = std::move(tensor);
}

ir::Error Pt2Replay::runStep() {
  const at::AutoDispatchBelowADInplaceOrView below;
  storageOf_.clear();
  implOf_.assign(implOf_.size(), nullptr);
  std::vector<at::Tensor> inputs(tensors_.size());
  for (const ir::ValueId input : draft_.inputs) {
    if (input.isValid()) inputs[input.index()] = tensors_[input.index()];
  }
  tensors_ = std::move(inputs);
  for (const ir::ValueId input : draft_.inputs) {
    if (!input.isValid()) continue;
    if (ir::Error error = check(input)) return error;
  }
  for (size_t i = 0; i < draft_.calls.nodes().size(); ++i) {
    if (ir::Error error = runNode(ir::NodeId(i))) return error;
  }
  return ir::success();
}

ir::Error Pt2Replay::runNode(ir::NodeId node) {
  auto call = runtime::prepareCall(draft_.calls, node, runtime::CallForm::kAsCaptured,
                                   [&](ir::ValueId value) { return tensors_[value.index()]; });
  if (!call) return call.takeError();
  std::vector<c10::IValue> stack = runtime::makeStack(*call, {});
  const std::string name = draft_.calls.describeNode(node);
  if (ir::Error error = runtime::callTorch(name, [&] { call->op.callBoxed(&stack); })) return error;
  const auto& wanted = draft_.calls.node(node).results;
  std::vector<at::Tensor> results;
  runtime::forEachResult(stack, [&](const at::Tensor& tensor) { results.push_back(tensor); });
  if (results.size() != wanted.size()) {
    return ir::makeError(ir::ErrorCode::kViolation,
                         name + " returned " + std::to_string(results.size()) +
                             " tensors, expected " + std::to_string(wanted.size()));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i].isValid()) continue;
    tensors_[wanted[i].index()] = results[i];
    if (ir::Error error = check(wanted[i])) return error;
  }
  return ir::success();
}

ir::Error Pt2Replay::check(ir::ValueId id) {
  const ir::Value& value = draft_.calls.value(id);
  const auto differs = [&](const std::string& how) {
    return ir::makeError(ir::ErrorCode::kViolation, "tensor '" + value.name + "' " + how);
  };
  const at::Tensor& real = tensors_[id.index()];
  if (!real.defined()) return differs("is undefined");
  if (typeOf(real) != value.type) return differs("has another type than imported");
  const void* impl = real.storage().unsafeGetStorageImpl();
  const auto [known, isNew] = storageOf_.try_emplace(impl, value.storage);
  const void*& imported = implOf_[value.storage.index()];
  if (known->second != value.storage) return differs("shares a storage that it should not");
  if (isNew ? imported != nullptr : imported != impl) return differs("has a storage of its own");
  imported = impl;
  return ir::success();
}

const at::Tensor& Pt2Replay::output(size_t position) const {
  return tensors_[draft_.outputs[position].index()];
}

}  // namespace stowage::tests
