// SPDX-License-Identifier: Apache-2.0
//
// Device memory over one step as a picture: on the left everything is kept, on the right the plan.
// Both have the same scales. Bytes are stacked by what they hold.
#ifndef STOWAGE_PLANNER_REPORT_MEMORY_CHART_H_
#define STOWAGE_PLANNER_REPORT_MEMORY_CHART_H_

#include <llvm/Support/raw_ostream.h>

#include <string>

#include "planner/report/memory_history.h"

namespace stowage::planner {

struct MemoryChart {
  std::string title;
  MemoryHistory unplanned;
  MemoryHistory planned;
  Bytes budget;
};
/// Of a plan for `target`, by the times of `input`.
MemoryChart makeMemoryChart(const ExplainInput& input, const ir::Target& target, Bytes budget);

/// Writes an SVG (chart.h).
void drawMemory(const MemoryChart& chart, llvm::raw_ostream& os);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_REPORT_MEMORY_CHART_H_
