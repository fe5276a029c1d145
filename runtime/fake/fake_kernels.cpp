// SPDX-License-Identifier: Apache-2.0
#include "runtime/fake/fake_kernels.h"

#include <bit>
#include <cstring>

#include "ir/graph/op_table.h"

namespace stowage::runtime {

namespace {

// The finaliser of SplitMix64: every input bit reaches every output bit.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t mixBytes(uint64_t state, llvm::ArrayRef<uint8_t> bytes) {
  state = mix(state ^ bytes.size());
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<size_t>(8, bytes.size() - i));
    state = mix(state ^ word);
  }
  return state;
}

void fillBytes(uint64_t state, llvm::MutableArrayRef<uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); i += 8) {
    const uint64_t word = mix(state + i);
    std::memcpy(bytes.data() + i, &word, std::min<size_t>(8, bytes.size() - i));
  }
}

uint64_t mixScalar(uint64_t state, llvm::ArrayRef<ScalarValue> scalars, ir::ScalarId id) {
  // A launch before the feed was joined sees none.
  if (id.index() >= scalars.size()) return mix(state ^ 0xbad);
  const ScalarValue& value = scalars[id.index()];
  return mix(state ^ (value.isInteger ? static_cast<uint64_t>(value.integer)
                                      : std::bit_cast<uint64_t>(value.value)));
}

uint64_t mixScalars(uint64_t state, const ir::Node& node, llvm::ArrayRef<ScalarValue> scalars) {
  for (const ir::Argument& argument : node.args) {
    if (const auto* scalar = std::get_if<ir::ScalarArg>(&argument)) {
      state = mixScalar(state, scalars, scalar->scalar);
    } else if (const auto* wrapped = std::get_if<ir::WrappedNumberArg>(&argument)) {
      const auto* id = std::get_if<ir::ScalarId>(&wrapped->value);
      if (id != nullptr) state = mixScalar(state, scalars, *id);
    } else if (const auto* list = std::get_if<ir::NumberList>(&argument)) {
      for (const auto& element : *list) {
        const auto* id = std::get_if<ir::ScalarArg>(&element);
        if (id != nullptr) state = mixScalar(state, scalars, id->scalar);
      }
    }
  }
  return state;
}

}  // namespace

uint64_t drawFakeBits(const FakeGenerator& generator) {
  return mix(mix(generator.seed) ^ generator.offset);
}

std::vector<ByteVector> runFakeKernel(const ir::Graph& graph, ir::NodeId node,
                                      llvm::ArrayRef<ir::Access> accesses,
                                      llvm::ArrayRef<ByteVector> before,
                                      llvm::ArrayRef<ScalarValue> scalars,
                                      FakeGenerator& generator) {
  const ir::OpInfo& op = ir::lookUpOp(graph.node(node).op);
  uint64_t state = mix(node.index());
  state = mixScalars(state, graph.node(node), scalars);
  if (op.random) {
    state = mix(state ^ drawFakeBits(generator));
    generator.offset += 4 + node.index();
  }
  // An op with a replay form does not read what it changes in place to make its results.
  const bool hasReplayForm = *op.replayForm != '\0';
  const auto staysApart = [&](const ir::Access& access) {
    return hasReplayForm && access.reads() && access.writes();
  };
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (accesses[i].reads() && !staysApart(accesses[i])) state = mixBytes(state, before[i]);
  }
  std::vector<ByteVector> after(accesses.size());
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (!accesses[i].writes()) continue;
    const ir::StorageId storage = accesses[i].storage;
    after[i].resize(static_cast<size_t>(graph.storage(storage).bytes.value()));
    uint64_t own = mix(state ^ storage.index());
    if (staysApart(accesses[i])) own = mixBytes(own, before[i]);
    fillBytes(own, after[i]);
  }
  return after;
}

std::vector<FakeResult> hashResults(llvm::ArrayRef<ir::Access> accesses,
                                    llvm::ArrayRef<ByteVector> after) {
  std::vector<FakeResult> results;
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (accesses[i].writes()) results.push_back({accesses[i].storage, mixBytes(0, after[i])});
  }
  return results;
}

ByteVector makeFakeBytes(const ir::Graph& graph, ir::StorageId storage, int64_t step) {
  ByteVector bytes(static_cast<size_t>(graph.storage(storage).bytes.value()));
  fillBytes(mix(storage.index() * 1000003 + static_cast<uint64_t>(step)), bytes);
  return bytes;
}

FakeReference::FakeReference(const ir::Graph& graph) : graph_(graph) {
  for (size_t i = 0; i < graph.storages().size(); ++i) {
    const bool persistent = graph.storages()[i].persistent;
    bytes_.push_back(persistent ? makeFakeBytes(graph, ir::StorageId(i), -1) : ByteVector());
  }
}

void FakeReference::runStep(llvm::ArrayRef<ScalarValue> scalars) {
  for (size_t i = 0; i < bytes_.size(); ++i) {
    if (graph_.storages()[i].role == ir::Role::kInput) {
      bytes_[i] = makeFakeBytes(graph_, ir::StorageId(i), step_);
    }
  }
  results_.clear();
  for (size_t n = 0; n < graph_.nodes().size(); ++n) {
    const bool isDeferred = graph_.nodes()[n].phase == ir::Phase::kDeferred;
    results_.emplace_back();
    if (!isDeferred) runNode(ir::NodeId(n), scalars);
    if (isDeferred && pending_) runNode(ir::NodeId(n), *pending_);
  }
  pending_ = scalars.vec();
  ++step_;
}

void FakeReference::finish() {
  results_.clear();
  for (size_t n = 0; n < graph_.nodes().size(); ++n) {
    results_.emplace_back();
    const bool isDeferred = graph_.nodes()[n].phase == ir::Phase::kDeferred;
    if (isDeferred && pending_) runNode(ir::NodeId(n), *pending_);
  }
  pending_.reset();
}

void FakeReference::runNode(ir::NodeId node, llvm::ArrayRef<ScalarValue> scalars) {
  const llvm::ArrayRef<ir::Access> accesses = graph_.accesses(node);
  std::vector<ByteVector> before(accesses.size());
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (accesses[i].reads()) before[i] = bytes_[accesses[i].storage.index()];
  }
  std::vector<ByteVector> after =
      runFakeKernel(graph_, node, accesses, before, scalars, generator_);
  results_.back() = hashResults(accesses, after);
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (accesses[i].writes()) bytes_[accesses[i].storage.index()] = std::move(after[i]);
  }
}

}  // namespace stowage::runtime
