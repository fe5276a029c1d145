// SPDX-License-Identifier: Apache-2.0
//
// Which command has finished before which other starts, in two consecutive steps of a schedule.
// Only what the schedule states counts:
//   - a stream is first in, first out, from one step into the next;
//   - `wait` names commands of the same step, `prev` commands of the step before;
//   - in a joined schedule every command of a step has finished before the next step begins.
// The order in which commands are enqueued orders nothing across streams.
// One vector clock per command and step: entry t counts the commands of stream t, over both steps,
// that have finished when the command starts. So "all of set A before all of set B" is one
// comparison of a greatest end with a least start, whatever the sizes of the sets.
// A pair of steps says all: each command precedes itself in the next step, so what holds
// from a step to the next holds from a step to any later one. On the first step every `prev` counts
// as satisfied, which only takes commands away that could have interfered.
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
  kEnqueue,  // as if one stream ran everything in enqueue order: schedules without waits yet
  kStreams   // what waits and streams order
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
  /// Adds the command itself to a set of commands: its lane's entry is at least its count.
  void include(Clock& set, CommandInstance instance) const;
  /// True if `a` has finished before `b` starts.
  bool isBefore(CommandInstance a, CommandInstance b) const;

  size_t lane(CommandId command) const { return lanes_[command.index()]; }
  /// The command that is number `count - 1` of a lane, as counted by clocks.
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
