// SPDX-License-Identifier: Apache-2.0
//
// Computes which command has finished before which other starts, in two consecutive steps.
// Only what the schedule states counts:
//   - a stream is first in, first out, from one step into the next;
//   - `wait` names commands of the same step, `prev` commands of the step before;
//   - in a joined schedule every command of a step has finished before the next step begins.
// The enqueue order alone orders nothing across streams.
// Each command in each step has one vector clock. Entry t counts the commands of stream t that have
// finished when the command starts. So "all of A before all of B" compares A's greatest end with
// B's least start.
// Two steps are enough: a command precedes itself in the next step, so an order between
// neighbouring steps also holds for later ones. On the first step every `prev` counts as satisfied:
// fewer commands run beside each other.
#ifndef STOWAGE_IR_VERIFY_VERIFY_ORDER_H_
#define STOWAGE_IR_VERIFY_VERIFY_ORDER_H_

#include <array>
#include <cstdint>
#include <vector>

#include "ir/schedule/schedule.h"

namespace stowage::ir::verifier {

/// Per stream, a number of commands counted from the begin of the first of the two steps.
using Clock = std::array<int32_t, kStreamCount>;

/// True if every entry of `a` is at most that of `b`.
bool isWithin(const Clock& a, const Clock& b);
void raiseTo(Clock& clock, const Clock& other);

enum class Ordering : uint8_t {
  kEnqueue,  // as if one stream ran everything in enqueue order: before waits are set
  kStreams   // as waits and streams order it
};

/// A command in one of the two unrolled steps.
struct CommandInstance {
  int step = 0;
  CommandId command;
};

class HappensBefore {
 public:
  /// Waits that do not point backwards are ignored (V14 reports them). Ids must be in range.
  HappensBefore(const Schedule& schedule, Ordering ordering);

  /// What has finished when the command starts.
  const Clock& start(CommandInstance instance) const;
  /// What has finished when the command has: its start and itself.
  Clock end(CommandInstance instance) const;
  /// Adds the command itself to a clock: raises its stream's entry to the command's count.
  void include(Clock& set, CommandInstance instance) const;
  /// True if `a` has finished before `b` starts.
  bool isBefore(CommandInstance a, CommandInstance b) const;

  size_t lane(CommandId command) const { return lanes_[command.index()]; }
  /// The command number `count - 1` of a stream, counted as clocks do.
  CommandInstance lastOf(size_t lane, int32_t count) const;

 private:
  int32_t position(CommandInstance instance) const;

  std::vector<uint8_t> lanes_;                                   // by command
  std::vector<int32_t> positions_;                               // by command, in the first step
  std::array<std::vector<CommandId>, kStreamCount> commandsOf_;  // by lane
  std::vector<Clock> starts_;                                    // first step, then second
};

}  // namespace stowage::ir::verifier

#endif  // STOWAGE_IR_VERIFY_VERIFY_ORDER_H_
