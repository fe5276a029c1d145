// SPDX-License-Identifier: Apache-2.0
//
// The graph run op by op with ordinary allocations: no schedule, no budget, nothing placed. What a
// planned run is compared with, beside true eager; and what a user gets without a plan.
// Runs on the calling thread, with its intra-op threads. Storages that the step makes are released
// after their last use.
#ifndef STOWAGE_RUNTIME_REPLAY_H_
#define STOWAGE_RUNTIME_REPLAY_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <memory>

#include "ir/error.h"
#include "ir/graph.h"
#include "runtime/executor.h"
#include "runtime/scalar_feed.h"

namespace stowage::runtime {

class Replay {
 public:
  /// For CPU graphs; the graph must outlive it. Errors: kUnsupported, kInvalidIr naming the node.
  static ir::Expected<std::unique_ptr<Replay>> make(const ir::Graph& graph);
  ~Replay();

  /// Inputs as for Executor::issueStep. `scalars` by ScalarId.
  ir::Error runStep(llvm::ArrayRef<InputBytes> inputs, llvm::ArrayRef<ScalarValue> scalars);
  /// What a persistent storage or an output holds now; writable before a step. Empty for others and
  /// for outputs before the first step.
  llvm::MutableArrayRef<uint8_t> bytes(ir::StorageId storage);

 private:
  struct State;
  explicit Replay(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_REPLAY_H_
