// SPDX-License-Identifier: Apache-2.0
//
// The state of a training while several plans take turns on one device: the main step's storages,
// each in the places of the plan whose turn it is. What that plan does without stays where it was,
// as far as the plan leaves those bytes alone; else it goes to other bytes of the arenas, and to
// memory beside them where there are none.
// In: the places of each plan. Out: the state in them when a turn begins. Not here: the order of
// the copies (runtime/executor/state_moves.h), who has a turn when (runner_turns.cpp).
#ifndef STOWAGE_RUNTIME_RUNNER_SHARED_STATE_H_
#define STOWAGE_RUNTIME_RUNNER_SHARED_STATE_H_

#include <ATen/core/Tensor.h>
#include <llvm/ADT/STLFunctionalExtras.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ir/base/error.h"
#include "ir/base/interval.h"
#include "ir/graph/graph.h"
#include "runtime/executor/device.h"
#include "runtime/executor/state_moves.h"

namespace stowage::runtime {

/// Of one plan at the step boundary.
struct PlanPlaces {
  /// By storage of the main step: nothing where the plan does not touch it; no place where each of
  /// its steps overwrites it unread.
  std::vector<std::optional<std::vector<StatePlace>>> at;
  /// All bytes that its steps may write, by arena (device, host, disk): ascending, disjoint.
  std::array<std::vector<ir::ByteRange>, 3> spans;
};

class SharedState {
 public:
  using ValueOf = llvm::function_ref<ir::Expected<at::Tensor>(ir::StorageId)>;

  /// `graph`, the main step's, and the device outlive it. It is the turn of `main`, which has
  /// number 0, and its state is in place.
  SharedState(Device& device, const ir::Graph& graph, PlanPlaces main);

  /// Returns the plan's number. Errors: kUnsupported when one plan reads what another one does not
  /// keep.
  ir::Expected<size_t> add(PlanPlaces plan);
  void remove(size_t plan);

  /// Moves the state to the places of another plan, whose turn it is afterwards. Nothing may be
  /// under way. `firstValueOf` gives what no plan has touched yet. After an error the state is
  /// lost.
  ir::Error enter(size_t plan, ValueOf firstValueOf);
  /// What a storage holds, uint8 [n] on the CPU; undefined where no plan has touched it.
  ir::Expected<at::Tensor> value(ir::StorageId storage);
  /// Bytes of the device that the current plan does without and that hold state.
  std::vector<ir::ByteRange> besidePlan() const;
  /// Gives it other bytes. False: no plan has touched it.
  ir::Expected<bool> put(ir::StorageId storage, llvm::ArrayRef<uint8_t> bytes);

 private:
  struct Elsewhere {
    std::optional<StatePlace> place;
    at::Tensor bytes;  // beside the arenas
  };
  struct Turn;

  Bytes bytesOf(ir::StorageId storage) const { return graph_.storage(storage).bytes; }
  std::vector<StatePlace> placesOf(ir::StorageId storage) const;
  ir::Error carry(const Turn& turn, const StateMove& move);

  Device& device_;
  const ir::Graph& graph_;
  std::map<size_t, PlanPlaces> plans_;
  size_t next_ = 0;
  size_t current_ = 0;
  std::map<ir::StorageId, Elsewhere> elsewhere_;  // what the current plan does without
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RUNNER_SHARED_STATE_H_
