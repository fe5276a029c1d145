// SPDX-License-Identifier: Apache-2.0
#include "runtime/measure/issue_times.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <utility>

namespace stowage::runtime {

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

class IssueTimes {
 public:
  IssueTimes(const ir::Schedule& schedule, llvm::ArrayRef<StepTimes> steps, size_t firstUpdate)
      : schedule_(schedule),
        steps_(steps),
        firstUpdate_(firstUpdate),
        isInputCopy_(findInputCopies(schedule)) {}

  Durations find(size_t step) const {
    const StepTimes& own = steps_[step];
    Durations issue(own.commands.size());
    if (step == 0) return issue;
    const std::optional<Nanoseconds> begin = beginOfStep(step);
    std::optional<Nanoseconds> between;  // until the first run has it
    std::optional<Nanoseconds> free;
    EndsUnderWay ends = endsOf(steps_[step - 1]);
    bool hasJoined = false;  // the thread waited for the step's scalars
    for (size_t i = 0; i < own.commands.size(); ++i) {
      hasJoined |= i == firstUpdate_;
      if (!own.commands[i]) continue;
      const CommandTimes& times = *own.commands[i];
      if (!free) {
        free = times.issueBegin;
        if (begin) between = std::max(*free - *begin, Nanoseconds(0));
      }
      while (!ends.empty() && ends.top() <= times.issueBegin) ends.pop();
      const bool isHeldBack = ends.size() >= kMostUnderWay;
      ends.push(times.end);
      if (std::exchange(hasJoined, false)) free = times.issueBegin;
      Nanoseconds took = times.issueEnd - std::min(*free, times.issueBegin);
      free = times.issueEnd;
      if (isRun(i)) took += std::exchange(between, std::nullopt).value_or(Nanoseconds(0));
      if (!isHeldBack) issue[i] = took;
    }
    return issue;
  }

 private:
  /// Ends of what was handed over, the earliest on top.
  using EndsUnderWay = std::priority_queue<Nanoseconds, std::vector<Nanoseconds>, std::greater<>>;

  static EndsUnderWay endsOf(const StepTimes& step) {
    EndsUnderWay ends;
    for (const auto& times : step.commands) {
      if (times) ends.push(times->end);
    }
    return ends;
  }

  bool isRun(size_t i) const { return schedule_.commands[i].kind == ir::CommandKind::kRun; }

  // When the step before was handed over, the one before that is done and the inputs' places are
  // free, the thread waits for nothing more.
  std::optional<Nanoseconds> beginOfStep(size_t step) const {
    if (step < 2) return std::nullopt;
    Nanoseconds begin;
    for (const auto& times : steps_[step - 2].commands) {
      if (times) begin = std::max(begin, times->end);
    }
    const StepTimes& before = steps_[step - 1];
    for (size_t i = 0; i < before.commands.size(); ++i) {
      const auto& times = before.commands[i];
      if (!times) continue;
      begin = std::max(begin, times->issueEnd);
      if (isInputCopy_[i]) begin = std::max(begin, times->end);
    }
    return begin;
  }

  const ir::Schedule& schedule_;
  llvm::ArrayRef<StepTimes> steps_;
  size_t firstUpdate_;
  std::vector<bool> isInputCopy_;
};

}  // namespace

std::vector<Durations> findIssueTimes(const ir::Schedule& schedule, llvm::ArrayRef<StepTimes> steps,
                                      size_t firstUpdate) {
  const IssueTimes times(schedule, steps, firstUpdate);
  std::vector<Durations> found;
  for (size_t step = 0; step < steps.size(); ++step) found.push_back(times.find(step));
  return found;
}

}  // namespace stowage::runtime
