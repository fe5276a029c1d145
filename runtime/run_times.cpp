// SPDX-License-Identifier: Apache-2.0
#include "runtime/run_times.h"

#include <algorithm>
#include <map>
#include <string>

namespace stowage::runtime {

std::vector<std::optional<Nanoseconds>> RunTimes::medians() const {
  std::vector<std::optional<Nanoseconds>> medians(times_.size());
  for (size_t i = 0; i < times_.size(); ++i) {
    if (times_[i].empty()) continue;
    std::vector<Nanoseconds> sorted = times_[i];
    std::sort(sorted.begin(), sorted.end());
    medians[i] = sorted[sorted.size() / 2];
  }
  return medians;
}

ir::CostTable correctTimes(ir::CostTable table, const ir::Graph& graph,
                           const ir::Schedule& schedule,
                           llvm::ArrayRef<std::optional<Nanoseconds>> medians) {
  struct Sum {
    int64_t nanoseconds = 0;
    int64_t runs = 0;
  };
  std::map<std::string, Sum> sums;
  for (size_t i = 0; i < medians.size(); ++i) {
    if (!medians[i]) continue;
    Sum& sum = sums[ir::nodeSignature(graph, schedule.commands[i].node)];
    sum.nanoseconds += medians[i]->value();
    ++sum.runs;
  }
  for (const auto& [signature, sum] : sums) {
    const auto row = table.bySignature.find(signature);
    if (row != table.bySignature.end()) row->second.time = Nanoseconds(sum.nanoseconds / sum.runs);
  }
  return table;
}

}  // namespace stowage::runtime
