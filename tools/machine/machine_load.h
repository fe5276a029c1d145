// SPDX-License-Identifier: Apache-2.0
//
// What measured times say about the machine they were taken on: a step that takes much longer or
// shorter than predicted, or repeats of one op that are far apart, mean that something else ran
// beside one of the measurements.
#ifndef STOWAGE_TOOLS_MACHINE_MACHINE_LOAD_H_
#define STOWAGE_TOOLS_MACHINE_MACHINE_LOAD_H_

#include <string>

#include "ir/base/units.h"
#include "ir/costs/cost_table.h"

namespace stowage::tools {

/// Predicted and measured time of a step.
struct StepComparison {
  Nanoseconds predicted;
  Nanoseconds measured;
  size_t commands = 0;  // each has some microseconds of launch overhead, more on a busy host
  ir::CostSource costs = ir::CostSource::kMeasured;  // where the prediction came from
};
/// "" unless the step took more than twice its prediction plus launch overhead, or less than half
/// its prediction; else a sentence with both times that advises to profile.
/// 0 measured or predicted: nothing is known.
std::string describeOffPrediction(const StepComparison& step);
/// "" unless a step of plain libtorch took more than twice the planned step's prediction with
/// launch overhead. The planned step runs all of its ops too, so another program then slowed plain
/// libtorch down. Else a sentence with both times, which says that the difference is no gain. "" as
/// well for predictions from unmeasured costs.
std::string describeSlowReference(const StepComparison& step);

/// "" unless the ops' median times add up to more than 1.5 times their shortest; else a sentence
/// with both sums.
std::string describeScatter(Nanoseconds medians, Nanoseconds shortest);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_MACHINE_MACHINE_LOAD_H_
