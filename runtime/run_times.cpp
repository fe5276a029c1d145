// SPDX-License-Identifier: Apache-2.0
#include "runtime/run_times.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "runtime/step_stalls.h"

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
};

/// The middle half of the steps by their time on the compute stream.
std::vector<MiddleStep> middleOf(const ir::Schedule& schedule, llvm::ArrayRef<StepTimes> steps) {
  std::vector<std::pair<Nanoseconds, MiddleStep>> all;
  for (size_t s = 0; s < steps.size(); ++s) {
    Durations own = durationsOf(steps[s]);
    const Nanoseconds compute = computeTime(schedule, own);
    all.push_back({compute, {&steps[s], s == 0 ? nullptr : &steps[s - 1], std::move(own)}});
  }
  llvm::stable_sort(all, [](const auto& a, const auto& b) { return a.first < b.first; });
  const size_t leftOut = all.size() / 4;  // at each end
  std::vector<MiddleStep> middle;
  for (auto& [compute, step] : llvm::MutableArrayRef(all).drop_front(leftOut).drop_back(leftOut)) {
    middle.push_back(std::move(step));
  }
  return middle;
}

Durations meansOf(llvm::ArrayRef<MiddleStep> steps, size_t commands) {
  Durations means(steps.empty() ? 0 : commands);
  for (size_t i = 0; i < means.size(); ++i) {
    int64_t sum = 0;
    int64_t count = 0;
    for (const MiddleStep& step : steps) {
      if (!step.durations[i]) continue;
      sum += step.durations[i]->value();
      ++count;
    }
    if (count > 0) means[i] = Nanoseconds(sum / count);
  }
  return means;
}

/// Of one step, by command.
struct Waits {
  std::vector<Nanoseconds> issue;  // until it was handed over, and until it began then
  std::vector<Nanoseconds> start;  // the device took that long to begin what it had already
};

Waits findWaits(const ir::Schedule& schedule, const MiddleStep& step) {
  Waits waits;
  waits.issue.resize(schedule.commands.size());
  waits.start.resize(schedule.commands.size());
  for (const Stall& stall : findStalls(schedule, *step.times, step.before)) {
    const size_t i = stall.command.index();
    const bool isLate = waits.issue[i] > Nanoseconds(0);
    if (stall.cause == StallCause::kIssue || (stall.cause == StallCause::kStart && isLate)) {
      waits.issue[i] += stall.time;
    } else if (stall.cause == StallCause::kStart) {
      waits.start[i] += stall.time;
    }
  }
  return waits;
}

/// A run of one step: work, and what else it held compute up for.
struct Divided {
  Nanoseconds work;
  Nanoseconds issue;
};

Divided divide(const CommandTimes& times, Nanoseconds waited, Nanoseconds alone) {
  const Nanoseconds whole = times.end - times.begin;
  if (times.begin >= times.issueEnd) return {.work = whole, .issue = waited};
  const Nanoseconds least = std::max(times.end - times.issueEnd, Nanoseconds(0));
  const Nanoseconds work = std::clamp(alone, std::min(least, whole), whole);
  return {.work = work, .issue = waited + whole - work};
}

/// Leaves in the steps' durations what was work; what was waited for, over all of them.
std::vector<Nanoseconds> takeOutIssue(const ir::Schedule& schedule, const ir::NodeCosts& alone,
                                      llvm::MutableArrayRef<MiddleStep> steps) {
  std::vector<Nanoseconds> issue(schedule.commands.size());
  Nanoseconds started;
  int64_t starts = 0;
  std::vector<std::pair<size_t, size_t>> late;  // step and command
  for (size_t s = 0; s < steps.size(); ++s) {
    const Waits waits = findWaits(schedule, steps[s]);
    for (size_t i = 0; i < issue.size(); ++i) {
      const ir::Command& command = schedule.commands[i];
      const auto& times = steps[s].times->commands[i];
      if (command.kind != ir::CommandKind::kRun || !times) continue;
      const Divided own = divide(*times, waits.issue[i], alone.nodes[command.node.index()].time);
      steps[s].durations[i] = own.work + waits.start[i];
      issue[i] += own.issue;
      if (own.issue > Nanoseconds(0)) {
        late.push_back({s, i});
      } else {
        started += waits.start[i];
        ++starts;
      }
    }
  }
  if (starts == 0) return issue;
  // Those that were late take the device as long to begin as the others do.
  const Nanoseconds start(started.value() / starts);
  for (const auto& [s, i] : late) {
    const Nanoseconds more = std::min(start, issue[i]);
    *steps[s].durations[i] += more;
    issue[i] -= more;
  }
  return issue;
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

}  // namespace

std::vector<std::optional<Nanoseconds>> typicalDurations(const ir::Schedule& schedule,
                                                         llvm::ArrayRef<StepTimes> steps) {
  return meansOf(middleOf(schedule, steps), schedule.commands.size());
}

TypicalTimes typicalTimes(const ir::Schedule& schedule, llvm::ArrayRef<StepTimes> steps,
                          const ir::NodeCosts& alone, std::optional<Nanoseconds> untimed) {
  std::vector<MiddleStep> middle = middleOf(schedule, steps);
  TypicalTimes times;
  if (middle.empty()) return times;
  times.issue = takeOutIssue(schedule, alone, middle);
  times.work = meansOf(middle, schedule.commands.size());
  Nanoseconds all;
  for (const Nanoseconds time : times.issue) all += time;
  if (all == Nanoseconds(0)) return times;
  const auto count = static_cast<double>(middle.size());
  double share = 1;
  if (untimed) {
    const Nanoseconds longer = summarize(schedule, steps).period - *untimed;
    share -= static_cast<double>(longer.value()) * count / static_cast<double>(all.value());
  }
  for (Nanoseconds& time : times.issue) {
    const double mean = static_cast<double>(time.value()) / count;
    time = Nanoseconds(static_cast<int64_t>(mean * std::clamp(share, 0.0, 1.0)));
  }
  return times;
}

ir::CostTable correctTimes(ir::CostTable table, const ir::Graph& graph,
                           const ir::Schedule& schedule, const TypicalTimes& times) {
  struct Sum {
    int64_t work = 0;
    int64_t issue = 0;
    int64_t runs = 0;
  };
  std::map<std::string, Sum> sums;
  for (size_t i = 0; i < times.work.size(); ++i) {
    if (!times.work[i] || schedule.commands[i].kind != ir::CommandKind::kRun) continue;
    Sum& sum = sums[ir::nodeSignature(graph, schedule.commands[i].node)];
    sum.work += times.work[i]->value();
    sum.issue += times.issue[i].value();
    ++sum.runs;
  }
  for (const auto& [signature, sum] : sums) {
    const auto row = table.bySignature.find(signature);
    if (row == table.bySignature.end()) continue;
    row->second.time = Nanoseconds(sum.work / sum.runs);
    row->second.issue = Nanoseconds(sum.issue / sum.runs);
  }
  correctRate(table.links.deviceToHost, ir::Stream::kDeviceToHost, graph, schedule, times.work);
  correctRate(table.links.hostToDevice, ir::Stream::kHostToDevice, graph, schedule, times.work);
  return table;
}

}  // namespace stowage::runtime
