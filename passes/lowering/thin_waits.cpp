// SPDX-License-Identifier: Apache-2.0
#include "passes/lowering/thin_waits.h"

#include <algorithm>
#include <array>

namespace stowage::passes {

namespace {

/// Per stream: all of its commands up to this id are finished. -1: none. Ids of one stream ascend
/// in the order in which the stream runs them.
using Clock = std::array<int32_t, ir::kStreamCount>;

constexpr Clock kNothingFinished = {-1, -1, -1, -1, -1, -1, -1};

void merge(Clock& into, const Clock& other) {
  for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}

class Thinner {
 public:
  explicit Thinner(ir::Schedule& schedule) : schedule_(schedule) {}

  int64_t run() {
    // Clocks of a step's own commands come first: the waits on the step before need all of them.
    const int64_t removedWaits = sweep(thisStep_, [&](ir::Command& command, Clock& clock) {
      return thin(command.wait, clock, thisStep_);
    });
    const auto last = lastOfStreams();
    return removedWaits + sweep(stepBefore_, [&](ir::Command& command, Clock& clock) {
             // What this step's waits know of the step before, and for a stream's first command
             // what its predecessor, the stream's last of the step before, knew of its own step.
             for (const ir::CommandId wait : command.wait) {
               merge(clock, stepBefore_[wait.index()]);
             }
             const ir::CommandId before = last[static_cast<size_t>(command.stream)];
             if (before.isValid()) merge(clock, thisStep_[before.index()]);
             return thin(command.prev, clock, thisStep_);
           });
  }

 private:
  /// Goes through the commands with what each knows to be finished: `clocks` gets it, per command.
  template <typename Visitor>
  int64_t sweep(std::vector<Clock>& clocks, Visitor visit) {
    std::array<Clock, ir::kStreamCount> streams;
    streams.fill(kNothingFinished);
    int64_t removed = 0;
    for (size_t i = 0; i < schedule_.commands.size(); ++i) {
      ir::Command& command = schedule_.commands[i];
      const auto stream = static_cast<size_t>(command.stream);
      Clock clock = streams[stream];
      removed += visit(command, clock);
      if (&clocks == &thisStep_) clock[stream] = static_cast<int32_t>(i);
      streams[stream] = clock;
      clocks.push_back(clock);
    }
    return removed;
  }

  /// Keeps the waits that `clock` does not imply, and adds what they imply to it. Later commands
  /// first: they may imply earlier ones, never the other way round.
  template <typename Waits>
  int64_t thin(Waits& waits, Clock& clock, const std::vector<Clock>& known) {
    Waits kept;
    for (size_t i = waits.size(); i-- > 0;) {
      const ir::CommandId wait = waits[i];
      const auto stream = static_cast<size_t>(schedule_.command(wait).stream);
      if (clock[stream] >= wait.raw()) continue;
      merge(clock, known[wait.index()]);
      kept.push_back(wait);
    }
    std::reverse(kept.begin(), kept.end());
    const auto removed = static_cast<int64_t>(waits.size() - kept.size());
    waits = std::move(kept);
    return removed;
  }

  std::array<ir::CommandId, ir::kStreamCount> lastOfStreams() const {
    std::array<ir::CommandId, ir::kStreamCount> last;
    for (size_t i = 0; i < schedule_.commands.size(); ++i) {
      last[static_cast<size_t>(schedule_.commands[i].stream)] = ir::CommandId(i);
    }
    return last;
  }

  ir::Schedule& schedule_;
  std::vector<Clock> thisStep_;    // by command, of its own step; itself included
  std::vector<Clock> stepBefore_;  // by command, of the step before
};

int64_t countWaits(const ir::Schedule& schedule) {
  size_t waits = 0;
  for (const ir::Command& command : schedule.commands) {
    waits += command.wait.size() + command.prev.size();
  }
  return static_cast<int64_t>(waits);
}

}  // namespace

ir::Expected<PassReport> ThinWaits::run(PassState& state) const {
  const int64_t removed = Thinner(*state.schedule).run();
  return PassReport{.changed = removed > 0,
                    .counters = {{"removed", removed}, {"left", countWaits(*state.schedule)}}};
}

}  // namespace stowage::passes
