// SPDX-License-Identifier: Apache-2.0
//
// Device memory over one step as a picture: on the left everything is kept, on the right the plan.
// Both have the same scales. Bytes are stacked by what they hold.
#ifndef STOWAGE_TOOLS_PLANNING_MEMORY_CHART_H_
#define STOWAGE_TOOLS_PLANNING_MEMORY_CHART_H_

#include <llvm/Support/raw_ostream.h>

#include <string>

#include "planner/report/memory_history.h"

namespace stowage::tools {

struct MemoryChart {
  std::string title;
  planner::MemoryHistory unplanned;
  planner::MemoryHistory planned;
  Bytes budget;
};
void drawMemory(const MemoryChart& chart, llvm::raw_ostream& os);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_PLANNING_MEMORY_CHART_H_
