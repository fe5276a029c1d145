// SPDX-License-Identifier: Apache-2.0
//
// Kernels without mathematics: what a node writes is a mixing function of every byte that it reads,
// of its place in the graph, of the step scalars in its arguments and, for ops that draw random
// numbers, of the generator's state. So one wrong byte, a stale version, an early read or a draw
// from the wrong state changes everything that follows. With them a schedule can be run and judged
// without libtorch.
// `FakeReference` is the plain execution: the graph's nodes in order, every storage in memory of
// its own. Any valid schedule must give the same bytes.
#ifndef STOWAGE_RUNTIME_FAKE_FAKE_KERNELS_H_
#define STOWAGE_RUNTIME_FAKE_FAKE_KERNELS_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"
#include "runtime/executor/scalar_feed.h"

namespace stowage::runtime {

using ByteVector = std::vector<uint8_t>;

/// A counter-based generator: a draw moves the offset by an amount that depends on the node.
struct FakeGenerator {
  uint64_t seed = 1;
  uint64_t offset = 0;
};

/// 64 bits that depend on the whole state, which stays as it is.
uint64_t drawFakeBits(const FakeGenerator& generator);

/// Runs one node. `before`: per access the storage's bytes, empty where it does not read. Returns
/// per access the bytes afterwards, empty where it does not write.
std::vector<ByteVector> runFakeKernel(const ir::Graph& graph, ir::NodeId node,
                                      llvm::ArrayRef<ir::Access> accesses,
                                      llvm::ArrayRef<ByteVector> before,
                                      llvm::ArrayRef<ScalarValue> scalars,
                                      FakeGenerator& generator);

/// What a launch wrote into one storage, as a hash.
struct FakeResult {
  ir::StorageId storage;
  uint64_t hash = 0;
  friend bool operator==(const FakeResult&, const FakeResult&) = default;
};
std::vector<FakeResult> hashResults(llvm::ArrayRef<ir::Access> accesses,
                                    llvm::ArrayRef<ByteVector> after);

/// Bytes that depend on a storage, a step and nothing else: first state and inputs for tests.
ByteVector makeFakeBytes(const ir::Graph& graph, ir::StorageId storage, int64_t step);

class FakeReference {
 public:
  /// Persistent storages start as makeFakeBytes(…, -1).
  explicit FakeReference(const ir::Graph& graph);
  /// Runs one step: inputs are makeFakeBytes(…, step).
  void runStep(llvm::ArrayRef<ScalarValue> scalars);
  /// Runs the deferred updates of the last step.
  void finish();
  /// What a storage holds now.
  const ByteVector& bytes(ir::StorageId storage) const { return bytes_[storage.index()]; }
  /// What each node wrote in the last step, or in `finish` after it; nothing where it did not run.
  const std::vector<std::vector<FakeResult>>& results() const { return results_; }

 private:
  void runNode(ir::NodeId node, llvm::ArrayRef<ScalarValue> scalars);

  const ir::Graph& graph_;
  std::optional<std::vector<ScalarValue>> pending_;  // step scalars of deferred updates
  std::vector<ByteVector> bytes_;                    // by storage
  std::vector<std::vector<FakeResult>> results_;     // by node
  FakeGenerator generator_;
  int64_t step_ = 0;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_FAKE_FAKE_KERNELS_H_
