// SPDX-License-Identifier: Apache-2.0
//
// Runs the program of an archive node by node on real tensors, views included, and compares every
// tensor with what the import says of it: element type, sizes, strides, offset, and which tensors
// share a storage.
#ifndef STOWAGE_TESTS_SUPPORT_PT2_REPLAY_H_
#define STOWAGE_TESTS_SUPPORT_PT2_REPLAY_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/base/error.h"
#include "runtime/capture/pt2/pt2_graph.h"

namespace stowage::tests {

class Pt2Replay {
 public:
  /// `draft` outlives the replay.
  explicit Pt2Replay(const runtime::Pt2Graph& draft);

  void setInput(size_t position, at::Tensor tensor);
  /// Runs all calls. Errors: what the ops threw; kViolation for the first tensor that is not as
  /// imported.
  ir::Error runStep();
  const at::Tensor& output(size_t position) const;

 private:
  ir::Error runNode(ir::NodeId node);
  ir::Error check(ir::ValueId value);

  const runtime::Pt2Graph& draft_;
  std::vector<at::Tensor> tensors_;  // by value
  std::unordered_map<const void*, ir::StorageId> storageOf_;
  std::vector<const void*> implOf_;  // by storage
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_PT2_REPLAY_H_
