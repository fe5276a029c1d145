// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/graph/construction.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/capture/graph/graph_assembly.h"
#include "runtime/capture/graph/graph_replay.h"

namespace stowage::runtime {
namespace {

at::Tensor generatorState() { return at::detail::getDefaultCPUGenerator().get_state(); }

void setGeneratorState(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_state(state);
}

bool sameBytes(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

/// When each node runs: its own position, or right after what it reads is finished.
class ReplayOrder {
 public:
  ReplayOrder(const ir::Graph& graph, const StepTrace& trace) : graph_(graph), trace_(trace) {}

  std::vector<uint32_t> compute() {
    std::vector<std::pair<int64_t, uint32_t>> keys;
    lastWriter_.assign(graph_.storages().size(), -1);
    for (uint32_t i = 0; i < graph_.nodes().size(); ++i) {
      slot_.push_back(slotOf(i));
      keys.emplace_back(slot_[i], i);
      for (const ir::Access& access : graph_.accesses(ir::NodeId(size_t{i}))) {
        if (access.writes()) lastWriter_[access.storage.index()] = i;
      }
    }
    std::stable_sort(keys.begin(), keys.end());
    std::vector<uint32_t> order;
    for (const auto& [slot, node] : keys) order.push_back(node);
    return order;
  }

 private:
  int64_t slotOf(uint32_t node) const {
    if (trace_.nodes[node].op->random || !graph_.node(ir::NodeId(size_t{node})).writes.empty()) {
      return node;
    }
    int64_t slot = 0;
    bool reads = false;
    for (const ir::Access& access : graph_.accesses(ir::NodeId(size_t{node}))) {
      if (!access.reads()) continue;
      reads = true;
      const int64_t writer = lastWriter_[access.storage.index()];
      if (writer >= 0) slot = std::max(slot, slot_[static_cast<size_t>(writer)]);
    }
    return reads ? slot : node;
  }

  const ir::Graph& graph_;
  const StepTrace& trace_;
  std::vector<int64_t> slot_;
  std::vector<int64_t> lastWriter_;
};

/// What happens to a storage next, and what ends with its last write.
struct StorageUses {
  std::vector<uint32_t> positions;  // in the replay order
  uint32_t lastWrite = 0;
};

class ConstructionReplay {
 public:
  ConstructionReplay(const AssembledGraph& assembled, const StepTrace& trace,
                     const StorageTable& storages)
      : assembled_(assembled),
        graph_(assembled.graph),
        trace_(trace),
        storages_(storages),
        order_(ReplayOrder(graph_, trace).compute()),
        uses_(graph_.storages().size()),
        replay_(graph_) {
    for (uint32_t position = 0; position < order_.size(); ++position) {
      for (const ir::Access& access : graph_.accesses(nodeAt(position))) {
        StorageUses& uses = uses_[access.storage.index()];
        uses.positions.push_back(position);
        if (access.writes()) uses.lastWrite = position;
      }
    }
    for (size_t i = 0; i < assembled.keys.size(); ++i) {
      const StorageFacts& facts = *storages.find(assembled.keys[i]);
      if (facts.real) replay_.bind(ir::StorageId(i), facts.realBytes());
    }
  }

  ir::NodeId nodeAt(uint32_t position) const { return ir::NodeId(size_t{order_[position]}); }
  size_t size() const { return order_.size(); }

  ir::Error runAt(uint32_t position, const std::function<bool(FakeId)>& wanted,
                  const Construction::Deliver& deliver) {
    const ir::NodeId node = nodeAt(position);
    if (ir::Error error = run(node, position, wanted)) return error;
    for (const ir::Access& access : graph_.accesses(node)) {
      const ir::StorageId storage = access.storage;
      const StorageKey key = assembled_.keys[storage.index()];
      if (position == uses_[storage.index()].lastWrite && replay_.isBound(storage) && wanted(key)) {
        if (ir::Error error = deliver(key, replay_.bytesOf(storage))) return error;
      }
      if (!isReadAfter(storage, position)) replay_.release(storage);
    }
    return ir::success();
  }

 private:
  /// `empty` makes nothing, unless its bytes were written by hand or never are.
  ir::Error run(ir::NodeId node, uint32_t position, const std::function<bool(FakeId)>& wanted) {
    const TracedNode& traced = trace_.nodes[node.index()];
    if (!traced.op->emptyFactory) return replay_.run(node);
    const ir::StorageId storage = graph_.value(graph_.node(node).results.front()).storage;
    const StorageKey key = assembled_.keys[storage.index()];
    const StorageFacts& facts = *storages_.find(key);
    if (facts.handFilled) replay_.bind(storage, facts.contents.clone().storage());
    const bool neverWritten = position == uses_[storage.index()].lastWrite;
    if (!facts.handFilled && neverWritten && wanted(key)) {
      replay_.bind(storage, allocateOnCpu(facts.bytes));
      replay_.bytesOf(storage).zero_();
    }
    return ir::success();
  }

  /// Are the bytes of now looked at later, before something overwrites them?
  bool isReadAfter(ir::StorageId storage, uint32_t position) const {
    const auto& positions = uses_[storage.index()].positions;
    const auto next = std::upper_bound(positions.begin(), positions.end(), position);
    if (next == positions.end()) return false;
    for (const ir::Access& access : graph_.accesses(nodeAt(*next))) {
      if (access.storage == storage) return access.reads();
    }
    return false;
  }

  const AssembledGraph& assembled_;
  const ir::Graph& graph_;
  const StepTrace& trace_;
  const StorageTable& storages_;
  std::vector<uint32_t> order_;
  std::vector<StorageUses> uses_;
  GraphReplay replay_;
};

}  // namespace

std::shared_ptr<Construction> Construction::create() {
  auto construction = std::make_shared<Construction>();
  TracerOptions options;
  options.allDevices = true;
  options.origin = construction;
  construction->tracer_ = std::make_unique<Tracer>(std::move(options), *construction);
  construction->recorder_.beginStep();
  return construction;
}

void Construction::noteGenerator() {
  at::Tensor state = generatorState();
  if (!generator_.empty() && sameBytes(generator_.back().state, state)) return;
  generator_.push_back({recorded_, std::move(state)});
}

void Construction::recordOp(const TracedCall& call, llvm::ArrayRef<at::Tensor> results) {
  if (recorded_ == 0 || call.op.random) noteGenerator();
  recorder_.recordOp(call, results);
  ++recorded_;
}

void Construction::recordReadBack(const at::Tensor& /*tensor*/) {
  TORCH_CHECK(false, "construction looks at a value; it cannot be recorded");
}

ir::Error Construction::replay(const std::function<bool(FakeId)>& wanted, const Deliver& deliver) {
  const StepTrace& trace = recorder_.trace();
  StepRecord record{.step = trace,
                    .storages = storages_,
                    .known = {},
                    .scopes = std::vector<std::string>(trace.nodes.size()),
                    .stepScalars = {},
                    .reports = {},
                    .outputGradients = false,
                    .onCpu = true};
  const AssembledGraph assembled = assembleGraph(record, "construction", {});
  ConstructionReplay replay(assembled, trace, storages_);
  size_t nextState = 0;
  for (uint32_t position = 0; position < replay.size(); ++position) {
    const size_t node = replay.nodeAt(position).index();
    const bool draws = trace.nodes[node].op->random;
    while (nextState < generator_.size() && generator_[nextState].before <= node &&
           (draws || nextState == 0)) {
      setGeneratorState(generator_[nextState++].state);
    }
    if (ir::Error error = replay.runAt(position, wanted, deliver)) return error;
  }
  return ir::success();
}

}  // namespace stowage::runtime
