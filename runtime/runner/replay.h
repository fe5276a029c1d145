// SPDX-License-Identifier: Apache-2.0
//
// Runs the graph op by op with ordinary allocations: no schedule, no budget, no placement. Planned
// runs are compared with it and with eager training; it also runs steps without a plan.
// Runs on the calling thread, with its intra-op threads, on the device that the graph is for.
// Storages that the step makes are released after their last use.
#ifndef STOWAGE_RUNTIME_RUNNER_REPLAY_H_
#define STOWAGE_RUNTIME_RUNNER_REPLAY_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/scalar_feed.h"

namespace stowage::runtime {

class Replay {
 public:
  /// The graph must outlive it. For a GPU, libtorch's CUDA libraries have to be there. Errors:
  /// kUnsupported, kInvalidIr naming the node; what libtorch says of memory.
  static ir::Expected<std::unique_ptr<Replay>> make(const ir::Graph& graph);
  ~Replay();

  /// Inputs as for Executor::enqueueStep. `scalars` by ScalarId.
  ir::Error runStep(llvm::ArrayRef<InputBytes> inputs, llvm::ArrayRef<ScalarValue> scalars);
  /// Runs the deferred updates of the last step, so that the state is that after it.
  ir::Error finish();
  /// What a persistent storage or an output holds now. Empty for others and for outputs before the
  /// first step.
  ir::Expected<std::vector<uint8_t>> read(ir::StorageId storage) const;
  /// All bytes of a persistent storage, before a step. Errors: kInvalidArgument for another number.
  ir::Error write(ir::StorageId storage, llvm::ArrayRef<uint8_t> bytes);

 private:
  struct State;
  explicit Replay(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RUNNER_REPLAY_H_
