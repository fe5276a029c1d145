// SPDX-License-Identifier: Apache-2.0
//
// Fills and empties the places that a schedule's boundary names, so that steps can begin and state
// can be saved. Neither is part of a plan: load puts every persistent storage's bytes into each of
// its residencies, drain waits for all streams and reads each storage back from one of them. Any
// number of steps lies between the two.
// A storage that the boundary holds nowhere (each step overwrites it before reading it) is skipped.
// Inputs are no state: the executor binds them anew for each step.
#ifndef STOWAGE_RUNTIME_EXECUTOR_BOUNDARY_STATE_H_
#define STOWAGE_RUNTIME_EXECUTOR_BOUNDARY_STATE_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLFunctionalExtras.h>

#include <cstdint>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "runtime/executor/device.h"
#include "runtime/executor/executor.h"

namespace stowage::runtime {

/// Room for the bytes of one storage after the other, in one piece of memory: fresh pages cost more
/// than copies. The graph outlives it.
class StorageRoom {
 public:
  explicit StorageRoom(const ir::Graph& graph) : graph_(graph) {}
  /// Exactly the storage's bytes, valid until the next call.
  llvm::MutableArrayRef<uint8_t> of(ir::StorageId storage);
  /// The same of the tensor that it is a shard of.
  llvm::MutableArrayRef<uint8_t> ofWhole(ir::StorageId storage);

 private:
  llvm::MutableArrayRef<uint8_t> take(Bytes bytes);

  const ir::Graph& graph_;
  std::vector<uint8_t> bytes_;
};

/// Fills `bytes` (exactly the storage's bytes) with what the storage holds when steps begin.
using StateReader =
    llvm::function_ref<ir::Error(ir::StorageId storage, llvm::MutableArrayRef<uint8_t> bytes)>;
/// Takes what the storage holds.
using StateWriter =
    llvm::function_ref<ir::Error(ir::StorageId storage, llvm::ArrayRef<uint8_t> bytes)>;

/// Puts a storage's bytes into all places that an entry of the schedule's boundary names.
ir::Error writeState(Device& device, const ir::Schedule& schedule, const ir::BoundaryEntry& entry,
                     llvm::ArrayRef<uint8_t> bytes);
/// In order of storage; one storage is in memory beside the arenas at a time. Stops at the reader's
/// first error.
ir::Error loadState(Executor& executor, StateReader read);
/// In order of storage. Stops at the writer's first error.
ir::Error drainState(Executor& executor, StateWriter write);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_EXECUTOR_BOUNDARY_STATE_H_
