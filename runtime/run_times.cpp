// SPDX-License-Identifier: Apache-2.0
#include "runtime/run_times.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "runtime/step_stalls.h"

namespace stowage::runtime {

namespace {

using Durations = std::vector<std::optional<Nanoseconds>>;

Durations durationsOf(const ir::Schedule& schedule, const StepTimes& step, const StepTimes* before,
                      RunBegin begin) {
  Durations durations(step.commands.size());
  for (size_t i = 0; i < durations.size(); ++i) {
    if (const auto& times = step.commands[i]) durations[i] = times->end - times->begin;
  }
  if (begin == RunBegin::kWork) return durations;
  for (const Stall& stall : findStalls(schedule, step, before)) {
    if (stall.cause == StallCause::kStart) *durations[stall.command.index()] += stall.time;
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
std::vector<MiddleStep> durationsOfMiddle(const ir::Schedule& schedule,
                                          llvm::ArrayRef<StepTimes> steps, RunBegin begin) {
  std::vector<std::pair<Nanoseconds, MiddleStep>> all;
  for (size_t s = 0; s < steps.size(); ++s) {
    const StepTimes* before = s == 0 ? nullptr : &steps[s - 1];
    Durations own = durationsOf(schedule, steps[s], before, begin);
    const Nanoseconds compute = computeTime(schedule, own);
    all.push_back({compute, {&steps[s], before, std::move(own)}});
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

}  // namespace

std::vector<std::optional<Nanoseconds>> typicalDurations(const ir::Schedule& schedule,
                                                         llvm::ArrayRef<StepTimes> steps,
                                                         RunBegin begin) {
  return meansOf(durationsOfMiddle(schedule, steps, begin), schedule.commands.size());
}

TypicalTimes typicalTimes(const ir::Schedule& schedule, llvm::ArrayRef<StepTimes> steps,
                          std::optional<Nanoseconds> untimed) {
  const std::vector<MiddleStep> middle = durationsOfMiddle(schedule, steps, RunBegin::kReady);
  TypicalTimes times;
  times.work = meansOf(middle, schedule.commands.size());
  times.issue.resize(times.work.size());
  Nanoseconds all;
  for (const MiddleStep& step : middle) {
    for (const Stall& stall : findStalls(schedule, *step.times, step.before)) {
      if (stall.cause != StallCause::kIssue) continue;
      times.issue[stall.command.index()] += stall.time;
      all += stall.time;
    }
  }
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
  return table;
}

}  // namespace stowage::runtime
