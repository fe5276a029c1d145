// SPDX-License-Identifier: Apache-2.0
//
// Between two steps of different plans, the state moves from the places of the one to those of the
// other, in the same arenas. A place may hold another value that has not moved yet, so the order
// matters, and values that stand in each other's way wait elsewhere: in bytes of the device that
// are neither's, or outside of the arenas.
// In: per value, where it is and where it is wanted. Out: copies in an order that loses nothing.
// Not here: which places a plan wants (runtime/runner/shared_state.h), the copies themselves.
#ifndef STOWAGE_RUNTIME_EXECUTOR_STATE_MOVES_H_
#define STOWAGE_RUNTIME_EXECUTOR_STATE_MOVES_H_

#include <llvm/ADT/ArrayRef.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/base/units.h"
#include "ir/schedule/schedule.h"

namespace stowage::runtime {

struct StatePlace {
  ir::Space space = ir::Space::kDevice;
  int64_t offset = 0;
  friend auto operator<=>(const StatePlace&, const StatePlace&) = default;
};

struct MovedValue {
  Bytes bytes;
  std::vector<StatePlace> from;  // each holds it; empty: it is outside of the arenas
  std::vector<StatePlace> to;    // all are to hold it; empty, and not `toOutside`: it may be lost
  bool toOutside = false;        // it is to be outside, too
};

struct StateMove {
  enum class Kind : uint8_t {
    kCopy,  // `from` -> `to`
    kSave,  // `from` -> outside
    kFill   // outside -> `to`
  };
  Kind kind = Kind::kCopy;
  size_t value = 0;
  StatePlace from;
  StatePlace to;
};

/// Places of `from` are disjoint, and so are those of `to`. `deviceBytes`: of the device's arena.
/// No copy's ends overlap. A copy that is in place already is no move.
std::vector<StateMove> orderStateMoves(llvm::ArrayRef<MovedValue> values, Bytes deviceBytes);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_EXECUTOR_STATE_MOVES_H_
