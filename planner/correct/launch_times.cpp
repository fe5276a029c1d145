// SPDX-License-Identifier: Apache-2.0
#include "planner/correct/launch_times.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <utility>

namespace stowage::planner {

namespace {

using Durations = std::vector<std::optional<Nanoseconds>>;

// Drivers take about a thousand kernels at once, and a command may be several.
constexpr size_t kMostUnderWay = 128;

/// By command: does it prefetch bytes that no command brings to the host? The caller does then.
std::vector<bool> findInputCopies(const ir::Schedule& schedule) {
  std::set<ir::ResidencyId> written;
  for (const ir::Command& command : schedule.commands) {
    if (command.kind == ir::CommandKind::kCopy) written.insert(command.to);
    written.insert(command.out.begin(), command.out.end());
  }
  std::vector<bool> isInput;
  for (const ir::Command& command : schedule.commands) {
    const bool isPrefetch =
        command.kind == ir::CommandKind::kCopy && command.stream == ir::Stream::kHostToDevice;
    isInput.push_back(isPrefetch && written.count(command.from) == 0);
  }
  return isInput;
}

class LaunchTimes {
 public:
  LaunchTimes(const ir::Schedule& schedule, llvm::ArrayRef<ir::StepTimes> steps, size_t firstUpdate)
      : schedule_(schedule),
        steps_(steps),
        firstUpdate_(firstUpdate),
        isInputCopy_(findInputCopies(schedule)) {}

  Durations find(size_t step) const {
    const ir::StepTimes& own = steps_[step];
    Durations launch(own.commands.size());
    if (step == 0) return launch;
    const std::optional<Nanoseconds> begin = beginOfStep(step);
    std::optional<Nanoseconds> between;  // until the first launch has it
    std::optional<Nanoseconds> free;
    EndsUnderWay ends = endsOf(steps_[step - 1]);
    bool hasJoined = false;  // the thread waited for the step's scalars
    for (size_t i = 0; i < own.commands.size(); ++i) {
      hasJoined |= i == firstUpdate_;
      if (!own.commands[i]) continue;
      const ir::CommandTimes& times = *own.commands[i];
      if (!free) {
        free = times.launchBegin;
        if (begin) between = std::max(*free - *begin, Nanoseconds(0));
      }
      while (!ends.empty() && ends.top() <= times.launchBegin) ends.pop();
      const bool isHeldBack = ends.size() >= kMostUnderWay;
      ends.push(times.end);
      if (std::exchange(hasJoined, false)) free = times.launchBegin;
      Nanoseconds took = times.launchEnd - std::min(*free, times.launchBegin);
      free = times.launchEnd;
      if (isRun(i)) took += std::exchange(between, std::nullopt).value_or(Nanoseconds(0));
      if (!isHeldBack) launch[i] = took;
    }
    return launch;
  }

 private:
  /// Ends of the commands enqueued, the earliest on top.
  using EndsUnderWay = std::priority_queue<Nanoseconds, std::vector<Nanoseconds>, std::greater<>>;

  static EndsUnderWay endsOf(const ir::StepTimes& step) {
    EndsUnderWay ends;
    for (const auto& times : step.commands) {
      if (times) ends.push(times->end);
    }
    return ends;
  }

  bool isRun(size_t i) const { return schedule_.commands[i].kind == ir::CommandKind::kRun; }

  // The thread waits for nothing more once the step before is enqueued, the one before that is
  // done, and the inputs' places are free.
  std::optional<Nanoseconds> beginOfStep(size_t step) const {
    if (step < 2) return std::nullopt;
    Nanoseconds begin;
    for (const auto& times : steps_[step - 2].commands) {
      if (times) begin = std::max(begin, times->end);
    }
    const ir::StepTimes& before = steps_[step - 1];
    for (size_t i = 0; i < before.commands.size(); ++i) {
      const auto& times = before.commands[i];
      if (!times) continue;
      begin = std::max(begin, times->launchEnd);
      if (isInputCopy_[i]) begin = std::max(begin, times->end);
    }
    return begin;
  }

  const ir::Schedule& schedule_;
  llvm::ArrayRef<ir::StepTimes> steps_;
  size_t firstUpdate_;
  std::vector<bool> isInputCopy_;
};

}  // namespace

std::vector<Durations> findLaunchTimes(const ir::Schedule& schedule,
                                       llvm::ArrayRef<ir::StepTimes> steps, size_t firstUpdate) {
  const LaunchTimes times(schedule, steps, firstUpdate);
  std::vector<Durations> found;
  for (size_t step = 0; step < steps.size(); ++step) found.push_back(times.find(step));
  return found;
}

}  // namespace stowage::planner
