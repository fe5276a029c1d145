// SPDX-License-Identifier: Apache-2.0
//
// The answer of a sweep as a picture: step time over budget, the plans as points, the lower bound
// below them, what unlimited memory gives. A self-contained SVG: no script, no font, no link. The
// same points give the same bytes.
#ifndef STOWAGE_TOOLS_PLANNING_SWEEP_CHART_H_
#define STOWAGE_TOOLS_PLANNING_SWEEP_CHART_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/Support/raw_ostream.h>

#include <optional>
#include <string>
#include <vector>

#include "ir/base/units.h"

namespace stowage::tools {

/// One budget, and the plan for it unless nothing fits.
struct SweepPoint {
  struct Plan {
    Nanoseconds stepTime;
    Nanoseconds bound;        // no schedule of these orders is faster
    Nanoseconds computeTime;  // with unlimited memory
  };
  Bytes budget;
  std::optional<Plan> plan;
};

struct SweepChart {
  std::string title;
  Bytes unplanned;                 // what the step needs without a plan
  std::vector<SweepPoint> points;  // in any order
};
void drawSweep(const SweepChart& chart, llvm::raw_ostream& os);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_PLANNING_SWEEP_CHART_H_
