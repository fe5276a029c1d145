// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/graph/graph_replay.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/Allocator.h>

#include <utility>

#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/torch/op_call.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {

at::Tensor bytesTensor(const c10::Storage& storage) {
  TensorShape shape{.sizes = {}, .strides = {1}, .offset = 0, .dtype = c10::kByte};
  shape.sizes.push_back(static_cast<int64_t>(storage.nbytes()));
  return makeTensor(storage, shape);
}

c10::Storage allocateOnCpu(int64_t bytes) {
  return c10::Storage(c10::Storage::use_byte_size_t(), static_cast<size_t>(bytes),
                      c10::GetAllocator(c10::kCPU));
}

GraphReplay::GraphReplay(const ir::Graph& graph) : graph_(graph), bytes_(graph.storages().size()) {}

void GraphReplay::bind(ir::StorageId storage, c10::Storage bytes) {
  bytes_[storage.index()] = std::move(bytes);
}

bool GraphReplay::isBound(ir::StorageId storage) const {
  return static_cast<bool>(bytes_[storage.index()]);
}

void GraphReplay::release(ir::StorageId storage) { bytes_[storage.index()] = c10::Storage(); }

at::Tensor GraphReplay::bytesOf(ir::StorageId storage) const {
  return bytesTensor(bytes_[storage.index()]);
}

/// Storages that nothing made yet (`empty`, which is never run) get memory when they are first
/// used.
at::Tensor GraphReplay::tensorOf(ir::ValueId value) {
  const ir::StorageId storage = graph_.value(value).storage;
  if (!isBound(storage)) bind(storage, allocateOnCpu(graph_.storage(storage).bytes.value()));
  return makeTensor(bytes_[storage.index()], shapeOf(graph_.value(value).type));
}

ir::Error GraphReplay::takeResults(ir::NodeId node, const std::vector<at::Tensor>& results) {
  const auto& expected = graph_.node(node).results;
  for (size_t i = 0; i < expected.size() && i < results.size(); ++i) {
    if (!expected[i].isValid()) continue;
    const ir::Value& value = graph_.value(expected[i]);
    if (isBound(value.storage)) continue;
    if (!results[i].defined() || results[i].storage_offset() != value.type.offset ||
        static_cast<int64_t>(results[i].storage().nbytes()) <
            graph_.storage(value.storage).bytes.value()) {
      return ir::makeError(ir::ErrorCode::kInternal,
                           graph_.describeNode(node) + " gave another result than recorded");
    }
    bind(value.storage, results[i].storage());
  }
  return ir::success();
}

ir::Error GraphReplay::run(ir::NodeId node, llvm::ArrayRef<ScalarValue> scalars) {
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  ir::Expected<OpCall> call = prepareCall(graph_, node, CallForm::kAsCaptured,
                                          [&](ir::ValueId value) { return tensorOf(value); });
  if (!call) return call.takeError();
  std::vector<c10::IValue> stack = makeStack(*call, scalars);
  if (ir::Error error = callTorch(graph_.describeNode(node), [&] { call->op.callBoxed(stack); })) {
    return error;
  }
  std::vector<at::Tensor> results;
  forEachResult(stack, [&](const at::Tensor& result) { results.push_back(result); });
  return takeResults(node, results);
}

}  // namespace stowage::runtime
