// SPDX-License-Identifier: Apache-2.0
#include "ir/verify/verify_order.h"

#include <algorithm>
#include <cassert>

namespace stowage::ir::verifier {

bool isWithin(const Clock& a, const Clock& b) {
  for (size_t lane = 0; lane < a.size(); ++lane) {
    if (a[lane] > b[lane]) return false;
  }
  return true;
}

void raiseTo(Clock& clock, const Clock& other) {
  for (size_t lane = 0; lane < clock.size(); ++lane) {
    clock[lane] = std::max(clock[lane], other[lane]);
  }
}

HappensBefore::HappensBefore(const Schedule& schedule, Ordering ordering) {
  const std::vector<Command>& commands = schedule.commands;
  for (size_t i = 0; i < commands.size(); ++i) {
    const size_t lane =
        ordering == Ordering::kEnqueue ? 0 : static_cast<size_t>(commands[i].stream);
    lanes_.push_back(static_cast<uint8_t>(lane));
    positions_.push_back(static_cast<int32_t>(commandsOf_[lane].size()));
    commandsOf_[lane].push_back(CommandId(i));
  }
  starts_.reserve(2 * commands.size());
  std::array<Clock, kStreamCount> laneEnds{};  // end of the latest command of each lane
  for (int step = 0; step < 2; ++step) {
    Clock begun{};
    if (step == 1 && schedule.joined) {
      for (const Clock& end : laneEnds) raiseTo(begun, end);
    }
    for (size_t i = 0; i < commands.size(); ++i) {
      Clock clock = begun;
      raiseTo(clock, laneEnds[lanes_[i]]);
      for (const CommandId wait : commands[i].wait) {
        if (wait.index() < i) raiseTo(clock, end({step, wait}));
      }
      if (step == 1) {
        for (const CommandId prev : commands[i].prev) raiseTo(clock, end({0, prev}));
      }
      starts_.push_back(clock);
      laneEnds[lanes_[i]] = end({step, CommandId(i)});
    }
  }
}

const Clock& HappensBefore::start(CommandInstance instance) const {
  const size_t count = lanes_.size();
  return starts_[static_cast<size_t>(instance.step) * count + instance.command.index()];
}

Clock HappensBefore::end(CommandInstance instance) const {
  Clock clock = start(instance);
  clock[lane(instance.command)] = position(instance) + 1;
  return clock;
}

void HappensBefore::include(Clock& set, CommandInstance instance) const {
  int32_t& count = set[lane(instance.command)];
  count = std::max(count, position(instance) + 1);
}

bool HappensBefore::isBefore(CommandInstance a, CommandInstance b) const {
  return start(b)[lane(a.command)] > position(a);
}

CommandInstance HappensBefore::lastOf(size_t lane, int32_t count) const {
  const std::vector<CommandId>& commands = commandsOf_[lane];
  assert(count > 0 && "no command has finished");
  const auto index = static_cast<size_t>(count - 1);
  return index < commands.size() ? CommandInstance{0, commands[index]}
                                 : CommandInstance{1, commands[index - commands.size()]};
}

int32_t HappensBefore::position(CommandInstance instance) const {
  const auto laneSize = static_cast<int32_t>(commandsOf_[lane(instance.command)].size());
  return positions_[instance.command.index()] + instance.step * laneSize;
}

}  // namespace stowage::ir::verifier
