// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a training talk over. A step's collectives run in the thread of the ops, beside
// what is said between steps (losses, checkpoints, whether to stop): each has a communicator.
#ifndef STOWAGE_RUNTIME_RANKS_TRAINING_RANKS_H_
#define STOWAGE_RUNTIME_RANKS_TRAINING_RANKS_H_

#include <cstdint>
#include <string>

#include "runtime/ranks/communicator.h"

namespace stowage::runtime {

/// All of one rank; both outlive it.
struct TrainingRanks {
  Communicator& inSteps;
  Communicator& between;

  int32_t rank() const { return between.rank(); }
  int32_t count() const { return between.count(); }
  /// This rank ends, and no step of it is under way: the others fail with `reason`.
  void giveUp(const std::string& reason) const {
    inSteps.giveUp(reason);
    between.giveUp(reason);
  }
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RANKS_TRAINING_RANKS_H_
