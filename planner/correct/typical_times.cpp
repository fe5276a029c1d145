// SPDX-License-Identifier: Apache-2.0
#include "planner/correct/typical_times.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/correct/launch_times.h"
#include "planner/correct/step_stalls.h"

namespace stowage::planner {

namespace {

using Durations = std::vector<std::optional<Nanoseconds>>;

Durations durationsOf(const ir::StepTimes& step) {
  Durations durations(step.commands.size());
  for (size_t i = 0; i < durations.size(); ++i) {
    if (const auto& times = step.commands[i]) durations[i] = times->end - times->begin;
  }
  return durations;
}

Nanoseconds computeTime(const ir::Schedule& schedule, const Durations& durations) {
  Nanoseconds sum;
  for (size_t i = 0; i < durations.size(); ++i) {
    const bool isRun = schedule.commands[i].kind == ir::CommandKind::kRun;
    if (isRun && durations[i]) sum += *durations[i];
  }
  return sum;
}

struct MiddleStep {
  const ir::StepTimes* times;
  const ir::StepTimes* before;  // null for the first
  Durations durations;
  Durations launch;
};

/// The middle half of the steps by their time on the compute stream.
std::vector<MiddleStep> middleOf(const ir::Schedule& schedule, llvm::ArrayRef<ir::StepTimes> steps,
                                 size_t firstUpdate = SIZE_MAX) {
  std::vector<std::pair<Nanoseconds, MiddleStep>> all;
  const std::vector<Durations> launch = findLaunchTimes(schedule, steps, firstUpdate);
  for (size_t s = 0; s < steps.size(); ++s) {
    MiddleStep step = {.times = &steps[s],
                       .before = s == 0 ? nullptr : &steps[s - 1],
                       .durations = durationsOf(steps[s]),
                       .launch = launch[s]};
    const Nanoseconds compute = computeTime(schedule, step.durations);
    all.emplace_back(compute, std::move(step));
  }
  llvm::stable_sort(all, [](const auto& a, const auto& b) { return a.first < b.first; });
  const size_t leftOut = all.size() / 4;  // at each end
  std::vector<MiddleStep> middle;
  for (auto& [compute, step] : llvm::MutableArrayRef(all).drop_front(leftOut).drop_back(leftOut)) {
    middle.push_back(std::move(step));
  }
  return middle;
}

/// By command, over the steps that know of it.
Durations meansOf(llvm::ArrayRef<MiddleStep> steps, Durations MiddleStep::*times) {
  Durations means(steps.empty() ? 0 : (steps.front().*times).size());
  for (size_t i = 0; i < means.size(); ++i) {
    int64_t sum = 0;
    int64_t count = 0;
    for (const MiddleStep& step : steps) {
      const auto& own = (step.*times)[i];
      if (!own) continue;
      sum += own->value();
      ++count;
    }
    if (count > 0) means[i] = Nanoseconds(sum / count);
  }
  return means;
}

/// Of one step, by command.
struct Waits {
  std::vector<Nanoseconds> overhead;  // until it was launched, and until it began then
  std::vector<Nanoseconds> latency;   // from its launch until the device began it
};

// A launch reaches the device a little later.
constexpr Nanoseconds kReach(5'000);

Waits findWaits(const ir::Schedule& schedule, const MiddleStep& step) {
  Waits waits;
  waits.overhead.resize(schedule.commands.size());
  waits.latency.resize(schedule.commands.size());
  for (const Stall& stall : findStalls(schedule, *step.times, step.before)) {
    const size_t i = stall.command.index();
    const bool isLate = step.times->commands[i]->launchEnd + kReach > stall.begin;
    if (stall.cause == StallCause::kLaunchOverhead ||
        (stall.cause == StallCause::kLaunchLatency && isLate)) {
      waits.overhead[i] += stall.time;
    } else if (stall.cause == StallCause::kLaunchLatency) {
      waits.latency[i] += stall.time;
    }
  }
  return waits;
}

/// What of a launch is work; the rest it waited for the launch thread, between its kernels.
Nanoseconds workOf(const ir::CommandTimes& times, Nanoseconds alone) {
  const Nanoseconds whole = times.end - times.begin;
  if (times.begin >= times.launchEnd) return whole;
  const Nanoseconds least = std::max(times.end - times.launchEnd, Nanoseconds(0));
  return std::clamp(alone, std::min(least, whole), whole);
}

/// Leaves in the steps' durations what was work.
void takeOutWaits(const ir::Schedule& schedule, const ir::NodeCosts& alone,
                  llvm::MutableArrayRef<MiddleStep> steps) {
  struct Late {
    size_t step;
    size_t command;
    Nanoseconds waited;
  };
  std::vector<Late> late;
  std::vector<Nanoseconds> starts;
  for (size_t s = 0; s < steps.size(); ++s) {
    const Waits waits = findWaits(schedule, steps[s]);
    for (size_t i = 0; i < schedule.commands.size(); ++i) {
      const ir::Command& command = schedule.commands[i];
      const auto& times = steps[s].times->commands[i];
      if (command.kind != ir::CommandKind::kRun || !times) continue;
      const size_t node = command.node.index();
      const bool isOnLink = alone.isCollective(command.node);
      const Nanoseconds work =
          workOf(*times, isOnLink ? alone.collectiveWork[node] : alone.nodes[node].work);
      const Nanoseconds waited = waits.overhead[i] + times->end - times->begin - work;
      steps[s].durations[i] = work + waits.latency[i];
      if (waited > Nanoseconds(0)) {
        late.push_back({s, i, waited});
      } else {
        starts.push_back(waits.latency[i]);
      }
    }
  }
  if (starts.empty()) return;
  // Those that were late take the device as long to begin as others do.
  const auto middle = starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / 2);
  std::nth_element(starts.begin(), middle, starts.end());
  for (const Late& launch : late) {
    *steps[launch.step].durations[launch.command] += std::min(*middle, launch.waited);
  }
}

}  // namespace

std::vector<std::optional<Nanoseconds>> typicalDurations(const ir::Schedule& schedule,
                                                         llvm::ArrayRef<ir::StepTimes> steps,
                                                         CountedFrom from) {
  std::vector<MiddleStep> middle = middleOf(schedule, steps);
  if (from == CountedFrom::kBegin) return meansOf(middle, &MiddleStep::durations);
  for (MiddleStep& step : middle) {
    for (const Stall& stall : findStalls(schedule, *step.times, step.before)) {
      if (stall.cause != StallCause::kLaunchLatency) continue;
      *step.durations[stall.command.index()] += stall.time;
    }
  }
  return meansOf(middle, &MiddleStep::durations);
}

TypicalTimes typicalTimes(const ir::Schedule& schedule, llvm::ArrayRef<ir::StepTimes> steps,
                          const ir::NodeCosts& alone, size_t firstUpdate) {
  std::vector<MiddleStep> middle = middleOf(schedule, steps, firstUpdate);
  takeOutWaits(schedule, alone, middle);
  return {.work = meansOf(middle, &MiddleStep::durations),
          .launch = meansOf(middle, &MiddleStep::launch)};
}

}  // namespace stowage::planner
