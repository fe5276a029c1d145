// SPDX-License-Identifier: Apache-2.0
//
// Batches are drawn before their steps, as many as there is room for, so that reading or drawing
// them is no part of a step's measured time. They come from the source in its order, unchanged.
#ifndef STOWAGE_RUNTIME_TRAINING_BATCHES_AHEAD_H_
#define STOWAGE_RUNTIME_TRAINING_BATCHES_AHEAD_H_

#include <cstdint>
#include <deque>
#include <functional>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "runtime/training/batch.h"

namespace stowage::runtime {

/// What batches that wait for their steps may take.
constexpr Bytes kRoomForBatches = Bytes(int64_t{256} << 20);

class BatchesAhead {
 public:
  /// Steps `first` to `last` - 1. `stop` is called before batches are drawn, to wait for the steps
  /// under way and stop the clock; `start` afterwards.
  BatchesAhead(const BatchSource& source, int64_t first, int64_t last,
               std::function<ir::Error()> stop, std::function<void()> start,
               Bytes room = kRoomForBatches)
      : source_(source),
        next_(first),
        last_(last),
        stop_(std::move(stop)),
        start_(std::move(start)),
        room_(room) {}

  /// The next step's batch. Nothing is drawn between the next `together` steps, room permitting.
  /// Errors: the source's, before the step whose batch it does not give; those of `stop`.
  ir::Expected<Batch> next(int64_t together = 1);

 private:
  ir::Error draw();

  const BatchSource& source_;
  int64_t next_, last_;
  std::function<ir::Error()> stop_;
  std::function<void()> start_;
  Bytes room_;
  Bytes held_;
  std::deque<Batch> drawn_;  // from step `next_` on
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TRAINING_BATCHES_AHEAD_H_
