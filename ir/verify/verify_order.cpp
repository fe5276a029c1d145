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
    const size_t lane = ordering == Ordering::kIssue ? 0 : static_cast<size_t>(commands[i].stream);
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

const Clock& HappensBefore::start(Moment moment) const {
  const size_t count = lanes_.size();
  return starts_[static_cast<size_t>(moment.step) * count + moment.command.index()];
}

Clock HappensBefore::end(Moment moment) const {
  Clock clock = start(moment);
  clock[lane(moment.command)] = position(moment) + 1;
  return clock;
}

void HappensBefore::include(Clock& set, Moment moment) const {
  int32_t& count = set[lane(moment.command)];
  count = std::max(count, position(moment) + 1);
}

bool HappensBefore::isBefore(Moment a, Moment b) const {
  return start(b)[lane(a.command)] > position(a);
}

Moment HappensBefore::lastOf(size_t lane, int32_t count) const {
  const std::vector<CommandId>& commands = commandsOf_[lane];
  assert(count > 0 && "no command has finished");
  const auto index = static_cast<size_t>(count - 1);
  return index < commands.size() ? Moment{0, commands[index]}
                                 : Moment{1, commands[index - commands.size()]};
}

int32_t HappensBefore::position(Moment moment) const {
  const auto laneSize = static_cast<int32_t>(commandsOf_[lane(moment.command)].size());
  return positions_[moment.command.index()] + moment.step * laneSize;
}

}  // namespace stowage::ir::verifier
