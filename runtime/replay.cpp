// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/bound_tensors.h"
#include "runtime/op_call.h"
#include "runtime/result_check.h"
#include "runtime/run_accesses.h"
#include "runtime/torch_boundary.h"

namespace stowage::runtime {

struct Replay::State {
  const ir::Graph& graph;
  BoundTensors tensors;
  std::vector<OpCall> calls;                     // by node
  std::vector<at::Tensor> holders;               // by storage: what owns its bytes
  std::vector<std::vector<ir::StorageId>> dead;  // by node: storages not used afterwards

  State(const ir::Graph& replayed, BoundTensors made)
      : graph(replayed),
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
      at::Tensor bytes =
          at::empty({graph.storage(storage).bytes.value()}, at::TensorOptions().dtype(at::kByte));
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
    return ir::makeError(ir::ErrorCode::kInternal, graph.describeNode(node) + ": result " + wrong);
  }

  llvm::MutableArrayRef<uint8_t> bytesOf(ir::StorageId storage) {
    const at::Tensor& holder = holders[storage.index()];
    if (!holder.defined()) return {};
    return {static_cast<uint8_t*>(holder.storage().mutable_data()),
            static_cast<size_t>(graph.storage(storage).bytes.value())};
  }
};

ir::Expected<std::unique_ptr<Replay>> Replay::make(const ir::Graph& graph) {
  auto tensors = BoundTensors::make(graph, c10::Device(c10::DeviceType::CPU));
  if (!tensors) return tensors.takeError();
  auto state = std::make_unique<State>(graph, std::move(*tensors));
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
    const auto place = bytes(input.storage);
    if (place.size() != input.bytes.size()) {
      return ir::makeError(ir::ErrorCode::kInvalidArgument,
                           "input '" + state_->graph.storage(input.storage).name + "' has " +
                               std::to_string(input.bytes.size()) + " bytes, expected " +
                               std::to_string(place.size()));
    }
    std::copy(input.bytes.begin(), input.bytes.end(), place.begin());
  }
  for (size_t n = 0; n < state_->calls.size(); ++n) {
    if (ir::Error error = state_->runNode(ir::NodeId(n), scalars)) return error;
    for (const ir::StorageId storage : state_->dead[n]) {
      state_->hold(storage, at::Tensor(), nullptr);
    }
  }
  return ir::success();
}

llvm::MutableArrayRef<uint8_t> Replay::bytes(ir::StorageId storage) {
  return state_->bytesOf(storage);
}

}  // namespace stowage::runtime
