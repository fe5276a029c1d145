// SPDX-License-Identifier: Apache-2.0
#include "runtime/run_times.h"

#include <llvm/ADT/STLExtras.h>

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

}  // namespace

std::vector<std::optional<Nanoseconds>> typicalDurations(const ir::Schedule& schedule,
                                                         llvm::ArrayRef<StepTimes> steps,
                                                         RunBegin begin) {
  std::vector<std::pair<Nanoseconds, Durations>> all;  // with their time on the compute stream
  for (size_t s = 0; s < steps.size(); ++s) {
    Durations own = durationsOf(schedule, steps[s], s == 0 ? nullptr : &steps[s - 1], begin);
    const Nanoseconds compute = computeTime(schedule, own);
    all.emplace_back(compute, std::move(own));
  }
  llvm::stable_sort(all, [](const auto& a, const auto& b) { return a.first < b.first; });
  const size_t leftOut = all.size() / 4;  // at each end
  const auto middle = llvm::ArrayRef(all).drop_front(leftOut).drop_back(leftOut);
  Durations means(steps.empty() ? 0 : schedule.commands.size());
  for (size_t i = 0; i < means.size(); ++i) {
    int64_t sum = 0;
    int64_t count = 0;
    for (const auto& [compute, durations] : middle) {
      if (!durations[i]) continue;
      sum += durations[i]->value();
      ++count;
    }
    if (count > 0) means[i] = Nanoseconds(sum / count);
  }
  return means;
}

ir::CostTable correctTimes(ir::CostTable table, const ir::Graph& graph,
                           const ir::Schedule& schedule,
                           llvm::ArrayRef<std::optional<Nanoseconds>> durations) {
  struct Sum {
    int64_t nanoseconds = 0;
    int64_t runs = 0;
  };
  std::map<std::string, Sum> sums;
  for (size_t i = 0; i < durations.size(); ++i) {
    if (!durations[i] || schedule.commands[i].kind != ir::CommandKind::kRun) continue;
    Sum& sum = sums[ir::nodeSignature(graph, schedule.commands[i].node)];
    sum.nanoseconds += durations[i]->value();
    ++sum.runs;
  }
  for (const auto& [signature, sum] : sums) {
    const auto row = table.bySignature.find(signature);
    if (row != table.bySignature.end()) row->second.time = Nanoseconds(sum.nanoseconds / sum.runs);
  }
  return table;
}

}  // namespace stowage::runtime
