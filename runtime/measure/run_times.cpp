// SPDX-License-Identifier: Apache-2.0
#include "runtime/measure/run_times.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "runtime/measure/launch_times.h"
#include "runtime/measure/step_stalls.h"

namespace stowage::runtime {

namespace {

using Durations = std::vector<std::optional<Nanoseconds>>;

Durations durationsOf(const StepTimes& step) {
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
  const StepTimes* times;
  const StepTimes* before;  // null for the first
  Durations durations;
  Durations launch;
};

/// The middle half of the steps by their time on the compute stream.
std::vector<MiddleStep> middleOf(const ir::Schedule& schedule, llvm::ArrayRef<StepTimes> steps,
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
Nanoseconds workOf(const CommandTimes& times, Nanoseconds alone) {
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
      const Nanoseconds work = workOf(*times, alone.nodes[command.node.index()].work);
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

/// The rate that copies on `stream` had, by their mean durations: small ones say nothing of it, nor
/// do few bytes.
void correctRate(ir::LinkRate& rate, ir::Stream stream, const ir::Graph& graph,
                 const ir::Schedule& schedule, const Durations& means) {
  constexpr int64_t kLarge = int64_t{256} << 10;
  constexpr int64_t kEnough = int64_t{16} << 20;  // in a step
  int64_t bytes = 0;
  int64_t time = 0;
  for (size_t i = 0; i < means.size(); ++i) {
    const ir::Command& command = schedule.commands[i];
    if (command.kind != ir::CommandKind::kCopy || command.stream != stream || !means[i]) continue;
    const Bytes own = graph.storage(schedule.residency(command.from).storage).bytes;
    if (own.value() < kLarge) continue;
    bytes += own.value();
    time += means[i]->value() - rate.latency.value();
  }
  if (bytes < kEnough || time <= 0) return;
  const double seconds = static_cast<double>(time) / 1e9;
  rate.bandwidth =
      BytesPerSecond(std::max<int64_t>(1, std::llround(static_cast<double>(bytes) / seconds)));
}

struct Sum {
  int64_t time = 0;
  int64_t count = 0;
  void add(const std::optional<Nanoseconds>& own) {
    if (!own) return;
    time += own->value();
    ++count;
  }
  double mean() const { return static_cast<double>(time) / static_cast<double>(count); }
};

/// Of a signature's launches.
struct Sums {
  Sum work;
  Sum launch;
};

// In a step. The few copies that every step has, of inputs and losses, stand where the thread has
// just waited; a few launches may be its first, which have what lies between steps.
constexpr int64_t kEnoughSeen = 16;

/// Launch overhead inside steps. Where it was never seen, the overhead alone is scaled like that of
/// the launches that were seen.
class LaunchInSteps {
 public:
  LaunchInSteps(const ir::CostTable& alone, const std::map<std::string, Sums>& seen, double share)
      : share_(share) {
    int64_t launches = 0;
    double inSteps = 0;
    double before = 0;
    for (const auto& [signature, sums] : seen) {
      const auto row = alone.bySignature.find(signature);
      if (row == alone.bySignature.end() || row->second.launch == Nanoseconds(0)) continue;
      launches += sums.launch.count;
      inSteps += static_cast<double>(sums.launch.time);
      before +=
          static_cast<double>(sums.launch.count) * static_cast<double>(row->second.launch.value());
    }
    if (launches >= kEnoughSeen && inSteps > 0) slowdown_ = inSteps / before;
  }

  Nanoseconds of(Nanoseconds alone, const Sum& seen) const {
    const double whole =
        seen.count > 0 ? seen.mean() : slowdown_ * static_cast<double>(alone.value());
    return Nanoseconds(std::llround(whole * share_));
  }

 private:
  double share_;
  double slowdown_ = 1;
};

}  // namespace

std::vector<std::optional<Nanoseconds>> typicalDurations(const ir::Schedule& schedule,
                                                         llvm::ArrayRef<StepTimes> steps,
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

TypicalTimes typicalTimes(const ir::Schedule& schedule, llvm::ArrayRef<StepTimes> steps,
                          const ir::NodeCosts& alone, size_t firstUpdate) {
  std::vector<MiddleStep> middle = middleOf(schedule, steps, firstUpdate);
  takeOutWaits(schedule, alone, middle);
  return {.work = meansOf(middle, &MiddleStep::durations),
          .launch = meansOf(middle, &MiddleStep::launch)};
}

ir::CostTable correctTimes(ir::CostTable table, const ir::Graph& graph,
                           const ir::Schedule& schedule, const TypicalTimes& times,
                           double launchShare) {
  std::map<std::string, Sums> bySignature;
  Sum copies;  // their launch overhead
  for (size_t i = 0; i < times.work.size(); ++i) {
    if (schedule.commands[i].kind != ir::CommandKind::kRun) {
      copies.add(times.launch[i]);
      continue;
    }
    Sums& sums = bySignature[ir::nodeSignature(graph, schedule.commands[i].node)];
    sums.work.add(times.work[i]);
    sums.launch.add(times.launch[i]);
  }
  const LaunchInSteps launch(table, bySignature, launchShare);
  for (const auto& [signature, sums] : bySignature) {
    const auto row = table.bySignature.find(signature);
    if (row == table.bySignature.end()) continue;
    if (sums.work.count > 0) row->second.work = Nanoseconds(std::llround(sums.work.mean()));
    // A command that was never timed launched nothing: the thread's time for it is in that of the
    // command after it.
    row->second.launch =
        sums.work.count > 0 ? launch.of(row->second.launch, sums.launch) : Nanoseconds(0);
  }
  if (copies.count < kEnoughSeen) copies = {};
  table.links.launch = launch.of(table.links.launch, copies);
  correctRate(table.links.deviceToHost, ir::Stream::kDeviceToHost, graph, schedule, times.work);
  correctRate(table.links.hostToDevice, ir::Stream::kHostToDevice, graph, schedule, times.work);
  return table;
}

}  // namespace stowage::runtime
