// SPDX-License-Identifier: Apache-2.0
#include "runtime/run_times.h"

#include <algorithm>
#include <map>
#include <string>

namespace stowage::runtime {

std::vector<std::optional<Nanoseconds>> medianDurations(llvm::ArrayRef<StepTimes> steps) {
  std::vector<std::optional<Nanoseconds>> medians(steps.empty() ? 0 : steps[0].commands.size());
  std::vector<Nanoseconds> durations;
  for (size_t i = 0; i < medians.size(); ++i) {
    durations.clear();
    for (const StepTimes& step : steps) {
      if (const auto& times = step.commands[i]) durations.push_back(times->end - times->begin);
    }
    if (durations.empty()) continue;
    std::sort(durations.begin(), durations.end());
    medians[i] = durations[durations.size() / 2];
  }
  return medians;
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
