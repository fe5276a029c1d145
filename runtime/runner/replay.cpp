// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner/replay.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/executor/run_accesses.h"
#include "runtime/torch/bound_tensors.h"
#include "runtime/torch/op_call.h"
#include "runtime/torch/result_check.h"
#include "runtime/torch/torch_boundary.h"
#include "runtime/torch/torch_types.h"

namespace stowage::runtime {

struct Replay::State {
  const ir::Graph& graph;
  c10::Device device;
  BoundTensors tensors;
  std::vector<OpCall> calls;                        // by node
  std::vector<at::Tensor> holders;                  // by storage: what owns its bytes
  std::vector<std::vector<ir::StorageId>> dead;     // by node: storages not used afterwards
  std::optional<std::vector<ScalarValue>> pending;  // step scalars of deferred updates

  State(const ir::Graph& replayed, c10::Device where, BoundTensors made)
      : graph(replayed),
        device(where),
        tensors(std::move(made)),
        holders(replayed.storages().size()),
        dead(replayed.nodes().size()) {}

  bool staysAfterStep(size_t storage) const {
    const ir::Storage& own = graph.storages()[storage];
    return own.persistent || own.output || own.role == ir::Role::kInput;
  }

  void hold(ir::StorageId storage, at::Tensor tensor, void* address) {
    tensors.bind(storage, address);
    holders[storage.index()] = std::move(tensor);
  }

  void findDead() {
    std::vector<int64_t> last(graph.storages().size(), -1);
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      for (const ir::Access& access : graph.accesses(ir::NodeId(n))) {
        last[access.storage.index()] = static_cast<int64_t>(n);
      }
    }
    for (size_t i = 0; i < last.size(); ++i) {
      if (last[i] >= 0 && !staysAfterStep(i)) {
        dead[static_cast<size_t>(last[i])].push_back(ir::StorageId(i));
      }
    }
  }

  // Memory of its own for everything that is there before a node makes it.
  ir::Error makeLasting() {
    for (size_t i = 0; i < graph.storages().size(); ++i) {
      const ir::Storage& storage = graph.storages()[i];
      if (!storage.persistent && storage.role != ir::Role::kInput) continue;
      if (ir::Error error = makeBytes(ir::StorageId(i))) return error;
    }
    return ir::success();
  }

  ir::Error makeBytes(ir::StorageId storage) {
    return callTorch("allocating '" + graph.storage(storage).name + "'", [&] {
      const ir::Storage& info = graph.storage(storage);
      const c10::Device home = info.home == ir::Space::kHost ? c10::Device(c10::kCPU) : device;
      at::Tensor bytes = at::empty({info.bytes.value()}, at::device(home).dtype(at::kByte));
      void* address = bytes.data_ptr();
      hold(storage, std::move(bytes), address);
    });
  }

  // What a node fills that no node made: the call that made it (empty_like) was dropped.
  ir::Error makeFilled(ir::NodeId node) {
    const std::vector<ir::StorageId> fresh = freshResults(graph, node);
    for (const ir::Access& access : graph.accesses(node)) {
      const ir::StorageId storage = access.storage;
      const bool isMade = std::find(fresh.begin(), fresh.end(), storage) != fresh.end();
      if (isMade || !access.writes() || holders[storage.index()].defined()) continue;
      if (ir::Error error = makeBytes(storage)) return error;
    }
    return ir::success();
  }

  ir::Error runNode(ir::NodeId node, llvm::ArrayRef<ScalarValue> scalars) {
    if (ir::Error error = makeFilled(node)) return error;
    std::vector<c10::IValue> stack;
    const OpCall& call = calls[node.index()];
    if (ir::Error error = callTorch(graph.describeNode(node), [&] {
          const at::AutoDispatchBelowADInplaceOrView below;
          stack = makeStack(call, scalars);
          call.op.callBoxed(stack);
        })) {
      return error;
    }
    return takeResults(node, stack);
  }

  bool isDeferred(size_t n) const { return graph.nodes()[n].phase == ir::Phase::kDeferred; }

  ir::Error runAndDrop(size_t n, llvm::ArrayRef<ScalarValue> scalars) {
    if (ir::Error error = runNode(ir::NodeId(n), scalars)) return error;
    for (const ir::StorageId storage : dead[n]) hold(storage, at::Tensor(), nullptr);
    return ir::success();
  }

  // An update of the step before, if there is one that has not run.
  ir::Error runPending(size_t n) { return pending ? runAndDrop(n, *pending) : ir::success(); }

  ir::Error takeResults(ir::NodeId node, const std::vector<c10::IValue>& stack) {
    const auto& results = graph.node(node).results;
    const std::vector<ir::StorageId> fresh = freshResults(graph, node);
    std::string wrong;
    size_t next = 0;
    forEachResult(stack, [&](const at::Tensor& result) {
      const size_t k = next++;
      if (!wrong.empty() || k >= results.size() || !results[k].isValid()) return;
      const ir::Value& value = graph.value(results[k]);
      if (std::find(fresh.begin(), fresh.end(), value.storage) != fresh.end()) {
        if (holders[value.storage.index()].defined() && next > 1 &&
            tensors.address(value.storage) == result.storage().data()) {
          return;  // a second view of what this node made
        }
        hold(value.storage, result, result.storage().mutable_data());
      }
      const auto* base = static_cast<const uint8_t*>(tensors.address(value.storage));
      wrong = findDifference(result, value.type,
                             base + value.type.offset * ir::elementBytes(value.type.dtype));
    });
    if (wrong.empty()) return ir::success();
    return ir::makeError(ir::ErrorCode::kPlanMismatch,
                         graph.describeNode(node) + ": result " + wrong);
  }

  /// uint8, all of the storage, where it is; undefined when it has no bytes now.
  at::Tensor bytesOf(ir::StorageId storage) const {
    const at::Tensor& holder = holders[storage.index()];
    if (!holder.defined()) return {};
    return at::empty({0}, holder.options().dtype(at::kByte))
        .set_(holder.storage(), 0, {graph.storage(storage).bytes.value()}, {1});
  }
};

ir::Expected<std::unique_ptr<Replay>> Replay::make(const ir::Graph& graph) {
  const auto kind = ir::findDeviceKind(graph.provenance().device);
  const c10::Device device = toDevice(kind.value_or(ir::DeviceKind::kCpu));
  auto tensors = BoundTensors::make(graph, device);
  if (!tensors) return tensors.takeError();
  auto state = std::make_unique<State>(graph, device, std::move(*tensors));
  if (ir::Error error = state->makeLasting()) return error;
  state->findDead();
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    auto call = prepareCall(graph, ir::NodeId(n), CallForm::kAsCaptured,
                            [&](ir::ValueId value) { return state->tensors.tensor(value); });
    if (!call) return call.takeError();
    state->calls.push_back(std::move(*call));
  }
  return std::unique_ptr<Replay>(new Replay(std::move(state)));
}

Replay::Replay(std::unique_ptr<State> state) : state_(std::move(state)) {}

Replay::~Replay() = default;

ir::Error Replay::runStep(llvm::ArrayRef<InputBytes> inputs, llvm::ArrayRef<ScalarValue> scalars) {
  for (const InputBytes& input : inputs) {
    if (ir::Error error = write(input.storage, input.bytes)) return error;
  }
  for (size_t n = 0; n < state_->calls.size(); ++n) {
    if (state_->isDeferred(n)) {
      if (ir::Error error = state_->runPending(n)) return error;
    } else if (ir::Error error = state_->runAndDrop(n, scalars)) {
      return error;
    }
  }
  state_->pending = scalars.vec();
  return ir::success();
}

ir::Error Replay::finish() {
  for (size_t n = 0; n < state_->calls.size(); ++n) {
    if (!state_->isDeferred(n)) continue;
    if (ir::Error error = state_->runPending(n)) return error;
  }
  state_->pending.reset();
  return ir::success();
}

ir::Expected<std::vector<uint8_t>> Replay::read(ir::StorageId storage) const {
  std::vector<uint8_t> bytes;
  if (ir::Error error = callTorch("reading '" + state_->graph.storage(storage).name + "'", [&] {
        const at::Tensor there = state_->bytesOf(storage);
        if (!there.defined()) return;
        const at::Tensor here = there.cpu();
        const auto* first = here.const_data_ptr<uint8_t>();
        bytes.assign(first, first + here.numel());
      })) {
    return error;
  }
  return bytes;
}

ir::Error Replay::write(ir::StorageId storage, llvm::ArrayRef<uint8_t> bytes) {
  const ir::Storage& info = state_->graph.storage(storage);
  const auto size = static_cast<int64_t>(bytes.size());
  if (Bytes(size) != info.bytes) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "'" + info.name + "' is given " + std::to_string(size) +
                             " bytes, expected " + std::to_string(info.bytes.value()));
  }
  return callTorch("writing '" + info.name + "'", [&] {
    // copy_ only reads it.
    auto* first =
        const_cast<uint8_t*>(bytes.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    state_->bytesOf(storage).copy_(at::from_blob(first, {size}, at::kByte));
  });
}

}  // namespace stowage::runtime
