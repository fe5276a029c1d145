// SPDX-License-Identifier: Apache-2.0
#include "planner/correct/step_stalls.h"

#include <algorithm>
#include <optional>

namespace stowage::planner {

namespace {

bool isCompute(const ir::Command& command) { return command.stream == ir::Stream::kCompute; }

/// The copy or collective among those waited for that ended last.
struct Awaited {
  ir::CommandId command;
  Nanoseconds end;
};

class StallFinder {
 public:
  StallFinder(const ir::Schedule& schedule, const ir::StepTimes& step, const ir::StepTimes* before)
      : schedule_(schedule), step_(step), before_(before) {}

  std::vector<Stall> find() {
    std::optional<Nanoseconds> free = endOfBefore();
    for (size_t i = 0; i < schedule_.commands.size(); ++i) {
      if (!isCompute(schedule_.commands[i]) || !step_.commands[i]) continue;
      const ir::CommandTimes& times = *step_.commands[i];
      if (free && times.begin > *free) divide(ir::CommandId(i), times, *free);
      free = free ? std::max(*free, times.end) : times.end;
    }
    return std::move(stalls_);
  }

 private:
  std::optional<Nanoseconds> endOfBefore() const {
    std::optional<Nanoseconds> end;
    if (before_ == nullptr) return end;
    for (size_t i = 0; i < schedule_.commands.size(); ++i) {
      if (!isCompute(schedule_.commands[i]) || !before_->commands[i]) continue;
      const Nanoseconds own = before_->commands[i]->end;
      end = end ? std::max(*end, own) : own;
    }
    return end;
  }

  void consider(llvm::ArrayRef<ir::CommandId> waits, const ir::StepTimes& step,
                std::optional<Awaited>& last) const {
    for (const ir::CommandId id : waits) {
      const bool isCopy = schedule_.command(id).kind == ir::CommandKind::kCopy;
      if (!isCopy && schedule_.command(id).stream != ir::Stream::kCollective) continue;
      const auto& times = step.commands[id.index()];
      if (times && (!last || times->end > last->end)) last = Awaited{id, times->end};
    }
  }

  static StallCause causeOf(ir::Stream stream) {
    if (stream == ir::Stream::kCollective) return StallCause::kRanks;
    return stream == ir::Stream::kDeviceToHost ? StallCause::kDeviceToHost
                                               : StallCause::kHostToDevice;
  }

  // [free, begin) in up to three pieces.
  void divide(ir::CommandId id, const ir::CommandTimes& times, Nanoseconds free) {
    const ir::Command& command = schedule_.command(id);
    std::optional<Awaited> awaited;
    consider(command.wait, step_, awaited);
    if (before_ != nullptr) consider(command.prev, *before_, awaited);
    Nanoseconds at = free;
    const auto take = [&](Nanoseconds until, StallCause cause, ir::CommandId other) {
      until = std::min(until, times.begin);
      if (until <= at) return;
      stalls_.push_back({id, other, cause, at, until - at});
      at = until;
    };
    if (awaited) {
      take(awaited->end, causeOf(schedule_.command(awaited->command).stream), awaited->command);
    }
    take(times.launchEnd, StallCause::kLaunchOverhead, ir::CommandId());
    take(times.begin, StallCause::kLaunchLatency, ir::CommandId());
  }

  const ir::Schedule& schedule_;
  const ir::StepTimes& step_;
  const ir::StepTimes* before_;
  std::vector<Stall> stalls_;
};

/// By command: how long compute waited for it, over all steps.
std::vector<Nanoseconds> sumWaits(const ir::Schedule& schedule,
                                  llvm::ArrayRef<ir::StepTimes> steps) {
  std::vector<Nanoseconds> waits(schedule.commands.size());
  for (size_t s = 0; s < steps.size(); ++s) {
    for (const Stall& stall : findStalls(schedule, steps[s], s == 0 ? nullptr : &steps[s - 1])) {
      if (stall.awaited.isValid()) waits[stall.awaited.index()] += stall.time;
    }
  }
  return waits;
}

std::optional<Nanoseconds> firstBegin(const ir::Schedule& schedule, const ir::StepTimes& step) {
  std::optional<Nanoseconds> first;
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    if (!isCompute(schedule.commands[i]) || !step.commands[i]) continue;
    const Nanoseconds begin = step.commands[i]->begin;
    first = first ? std::min(*first, begin) : begin;
  }
  return first;
}

}  // namespace

const char* stallCauseName(StallCause cause) {
  switch (cause) {
    case StallCause::kDeviceToHost:
      return "d2h";
    case StallCause::kHostToDevice:
      return "h2d";
    case StallCause::kLaunchOverhead:
      return "launch_overhead";
    case StallCause::kLaunchLatency:
      return "launch_latency";
    case StallCause::kRanks:
      return "ranks";
  }
  return "";
}

std::vector<Stall> findStalls(const ir::Schedule& schedule, const ir::StepTimes& step,
                              const ir::StepTimes* before) {
  return StallFinder(schedule, step, before).find();
}

StepSummary summarize(const ir::Schedule& schedule, llvm::ArrayRef<ir::StepTimes> steps) {
  StepSummary sum;
  sum.steps = static_cast<int64_t>(steps.size());
  if (steps.empty()) return sum;
  for (size_t s = 0; s < steps.size(); ++s) {
    const ir::StepTimes& step = steps[s];
    for (size_t i = 0; i < step.commands.size(); ++i) {
      if (!step.commands[i]) continue;
      const ir::CommandTimes& times = *step.commands[i];
      sum.busy[static_cast<size_t>(schedule.commands[i].stream)] += times.end - times.begin;
      sum.launchOverhead += times.launchEnd - times.launchBegin;
    }
    for (const Stall& stall : findStalls(schedule, step, s == 0 ? nullptr : &steps[s - 1])) {
      sum.stalls[static_cast<size_t>(stall.cause)] += stall.time;
    }
  }
  for (Nanoseconds& time : sum.busy) time = Nanoseconds(time.value() / sum.steps);
  for (Nanoseconds& time : sum.stalls) time = Nanoseconds(time.value() / sum.steps);
  sum.launchOverhead = Nanoseconds(sum.launchOverhead.value() / sum.steps);
  const auto first = firstBegin(schedule, steps.front());
  const auto last = firstBegin(schedule, steps.back());
  if (sum.steps > 1 && first && last) {
    sum.period = Nanoseconds((*last - *first).value() / (sum.steps - 1));
  }
  return sum;
}

std::optional<double> hiddenShare(const ir::Schedule& schedule,
                                  llvm::ArrayRef<ir::StepTimes> predicted,
                                  llvm::ArrayRef<ir::StepTimes> measured) {
  const std::vector<Nanoseconds> expected = sumWaits(schedule, predicted);
  const std::vector<Nanoseconds> found = sumWaits(schedule, measured);
  Nanoseconds copied;
  Nanoseconds waited;
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    const bool isHidden =
        schedule.commands[i].kind == ir::CommandKind::kCopy && expected[i] == Nanoseconds(0);
    if (!isHidden) continue;
    waited += found[i];
    for (const ir::StepTimes& step : measured) {
      if (step.commands[i]) copied += step.commands[i]->end - step.commands[i]->begin;
    }
  }
  if (copied == Nanoseconds(0)) return std::nullopt;
  // A copy that is late since others were before it may be waited for longer than it takes.
  return std::max(0.0,
                  1 - static_cast<double>(waited.value()) / static_cast<double>(copied.value()));
}

}  // namespace stowage::planner
