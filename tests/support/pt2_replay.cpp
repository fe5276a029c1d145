// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pt2_replay.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <utility>

#include "runtime/capture/pt2_arguments.h"
#include "runtime/op_call.h"
#include "runtime/torch_boundary.h"
#include "runtime/torch_types.h"

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

Pt2Replay::Pt2Replay(const runtime::Pt2Program& program, const runtime::Pt2Graph& draft)
    : program_(program),
      draft_(draft),
      calls_(makeCallGraph()),
      tensors_(program.tensors.size()),
      implOf_(draft.graph.storages().size(), nullptr) {}

ir::Graph Pt2Replay::makeCallGraph() const {
  ir::GraphBuilder builder("calls");
  for (const runtime::Pt2Tensor& tensor : program_.tensors) {
    const ir::StorageId storage =
        builder.addStorage({.name = tensor.name, .bytes = tensor.type.extentBytes()});
    builder.addValue({.name = tensor.name, .storage = storage, .type = tensor.type});
  }
  runtime::Pt2Ops ops;
  for (const runtime::Pt2Node& source : program_.nodes) {
    const runtime::Pt2Op& op = **ops.lookUp(source.target);
    builder.addNode({.op = op.name(),
                     .args = llvm::cantFail(runtime::convertPt2Arguments(
                         source.inputs, op.facts->schema(),
                         [](int32_t tensor) { return ir::ValueId(tensor); }))});
  }
  return std::move(builder).finish();
}

void Pt2Replay::setInput(size_t position, at::Tensor tensor) {
  tensors_[static_cast<size_t>(program_.inputs[position].tensor)] = std::move(tensor);
}

ir::Error Pt2Replay::runStep() {
  const at::NoGradGuard noGrad;
  storageOf_.clear();
  implOf_.assign(implOf_.size(), nullptr);
  std::vector<at::Tensor> inputs(tensors_.size());
  for (const runtime::Pt2Input& input : program_.inputs) {
    if (input.tensor < 0) continue;
    inputs[static_cast<size_t>(input.tensor)] = tensors_[static_cast<size_t>(input.tensor)];
  }
  tensors_ = std::move(inputs);
  for (const runtime::Pt2Input& input : program_.inputs) {
    if (input.tensor < 0) continue;
    if (ir::Error error = check(input.tensor)) return error;
  }
  for (size_t i = 0; i < program_.nodes.size(); ++i) {
    if (ir::Error error = runNode(i)) return error;
  }
  return ir::success();
}

ir::Error Pt2Replay::runNode(size_t position) {
  auto call = runtime::prepareCall(
      calls_, ir::NodeId(position), calls_.nodes()[position].op,
      [&](ir::ValueId value) { return tensors_[value.index()]; });
  if (!call) return call.takeError();
  std::vector<c10::IValue> stack = runtime::makeStack(*call, {});
  if (ir::Error error = runtime::callTorch(runtime::describePt2Node(program_, position),
                                           [&] { call->op.callBoxed(&stack); })) {
    return error;
  }
  std::vector<int32_t> wanted;
  for (const runtime::Pt2Value& output : program_.nodes[position].outputs) {
    if (const auto* list = std::get_if<runtime::Pt2TensorList>(&output)) {
      for (const runtime::Pt2TensorRef& tensor : *list) wanted.push_back(tensor.tensor);
    } else if (const auto* tensor = std::get_if<runtime::Pt2TensorRef>(&output)) {
      wanted.push_back(tensor->tensor);
    } else if (std::holds_alternative<ir::NoneArg>(output)) {
      wanted.push_back(-1);
    }
  }
  std::vector<at::Tensor> results;
  runtime::forEachResult(stack, [&](const at::Tensor& tensor) { results.push_back(tensor); });
  if (results.size() != wanted.size()) {
    return ir::makeError(ir::ErrorCode::kViolation,
                         runtime::describePt2Node(program_, position) + " returned " +
                             std::to_string(results.size()) + " tensors, expected " +
                             std::to_string(wanted.size()));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < 0) continue;
    tensors_[static_cast<size_t>(wanted[i])] = results[i];
    if (ir::Error error = check(wanted[i])) return error;
  }
  return ir::success();
}

ir::Error Pt2Replay::check(int32_t tensor) {
  const auto index = static_cast<size_t>(tensor);
  const auto differs = [&](const std::string& how) {
    return ir::makeError(ir::ErrorCode::kViolation,
                         "tensor '" + program_.tensors[index].name + "' " + how);
  };
  const ir::Value& value = draft_.graph.value(draft_.valueOf[index]);
  const at::Tensor& real = tensors_[index];
  if (!real.defined()) return differs("is undefined");
  if (typeOf(real) != value.type) return differs("has another type than imported");
  const void* impl = real.storage().unsafeGetStorageImpl();
  const auto [known, isNew] = storageOf_.try_emplace(impl, value.storage);
  const void*& imported = implOf_[value.storage.index()];
  if (known->second != value.storage) return differs("shares a storage that it should not");
  if (!isNew && imported != impl) return differs("has a storage of its own");
  if (isNew && imported != nullptr) return differs("has a storage of its own");
  imported = impl;
  return ir::success();
}

const at::Tensor& Pt2Replay::output(size_t position) const {
  return tensors_[static_cast<size_t>(program_.outputs[position].tensor)];
}

}  // namespace stowage::tests
