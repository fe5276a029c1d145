// SPDX-License-Identifier: Apache-2.0
//
// Who touched which bytes of an arena last: for every byte the last writer, and per stream the last
// reader since. Neighbouring bytes with the same history are one segment. Every access reports the
// commands that must be over before it may start.
#ifndef STOWAGE_PLANNER_EVALUATE_BYTE_HISTORY_H_
#define STOWAGE_PLANNER_EVALUATE_BYTE_HISTORY_H_

#include <array>
#include <cstdint>
#include <map>

#include "ir/base/interval.h"
#include "ir/schedule/schedule.h"

namespace stowage::planner {

/// A command, counted on over the steps: index + step * number of commands. -1: none.
using GlobalCommand = int64_t;

/// Per stream the latest command that must be over; -1: none. (Streams are first in, first out.)
using StreamClock = std::array<GlobalCommand, ir::kStreamCount>;

class ByteHistory {
 public:
  /// Raises `waits` to what a read of `range` by a command on `stream` has to wait for, and notes
  /// the read.
  void read(const ir::ByteRange& range, GlobalCommand command, ir::Stream stream,
            StreamClock& waits);
  /// The same for a write.
  void write(const ir::ByteRange& range, GlobalCommand command, ir::Stream stream,
             StreamClock& waits);

 private:
  struct Segment {
    int64_t end = 0;
    GlobalCommand writer = -1;
    ir::Stream writerStream = ir::Stream::kCompute;
    StreamClock readers;
  };
  using Segments = std::map<int64_t, Segment>;  // by first byte; gaps were never touched

  /// Cuts segments so that none straddles `offset`; the first segment at or after it.
  Segments::iterator splitAt(int64_t offset);

  Segments segments_;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_BYTE_HISTORY_H_
