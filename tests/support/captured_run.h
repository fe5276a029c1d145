// SPDX-License-Identifier: Apache-2.0
//
// Runs a captured step for real, node by node in the graph's order, on the CPU: what a capture must
// be good for, without planner or executor. First values come from the capture, scalars from
// nextScalars.
#ifndef STOWAGE_TESTS_SUPPORT_CAPTURED_RUN_H_
#define STOWAGE_TESTS_SUPPORT_CAPTURED_RUN_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "runtime/capture/capture.h"
#include "runtime/capture/graph/graph_replay.h"

namespace stowage::tests {

class CapturedRun {
 public:
  explicit CapturedRun(runtime::CapturedStep& step);
  /// Fills every persistent storage.
  ir::Error load();
  /// One step. Returns what `loss` reported, as bytes.
  ir::Expected<std::vector<at::Tensor>> step(const std::vector<at::Tensor>& inputs);
  /// The bytes of the storage called `name`, which must exist.
  at::Tensor bytes(const std::string& name) const;

 private:
  ir::Expected<at::Tensor> firstBytes(ir::StorageId storage);

  runtime::CapturedStep& step_;
  const ir::Graph& graph_;
  runtime::GraphReplay replay_;
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_CAPTURED_RUN_H_
