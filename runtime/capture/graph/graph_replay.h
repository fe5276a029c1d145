// SPDX-License-Identifier: Apache-2.0
//
// Runs nodes of a recorded graph for real, on the CPU: for the construction of a model and for the
// creation of optimizer state, whose graphs name no other device (onCpu in graph_assembly.h).
// Memory exists for the storages that were bound or that a node made, until they are released.
// Not here: training steps (runtime/executor/executor.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_GRAPH_GRAPH_REPLAY_H_
#define STOWAGE_RUNTIME_CAPTURE_GRAPH_GRAPH_REPLAY_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "runtime/executor/scalar_feed.h"

namespace stowage::runtime {

class GraphReplay {
 public:
  explicit GraphReplay(const ir::Graph& graph);

  /// `scalars` by ScalarId; may be empty when the graph has none.
  ir::Error run(ir::NodeId node, llvm::ArrayRef<ScalarValue> scalars = {});
  void bind(ir::StorageId storage, c10::Storage bytes);
  bool isBound(ir::StorageId storage) const;
  void release(ir::StorageId storage);
  /// uint8 [n], sharing the storage, which must be bound.
  at::Tensor bytesOf(ir::StorageId storage) const;

 private:
  at::Tensor tensorOf(ir::ValueId value);
  ir::Error takeResults(ir::NodeId node, const std::vector<at::Tensor>& results);

  const ir::Graph& graph_;
  std::vector<c10::Storage> bytes_;
};

/// uint8 [n] over a storage with memory.
at::Tensor bytesTensor(const c10::Storage& storage);
/// Memory for `bytes`, on the CPU.
c10::Storage allocateOnCpu(int64_t bytes);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_GRAPH_GRAPH_REPLAY_H_
