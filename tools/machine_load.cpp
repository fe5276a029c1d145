// SPDX-License-Identifier: Apache-2.0
#include "tools/machine_load.h"

namespace stowage::tools {

std::string describeOffPrediction(Nanoseconds predicted, Nanoseconds measured,
                                  ir::CostSource costs) {
  const int64_t claimed = predicted.value();
  const int64_t found = measured.value();
  if (claimed <= 0 || found <= 0) return "";
  const bool isNear = found / 2 <= claimed && claimed / 2 <= found;
  if (isNear) return "";
  const std::string times =
      "a step took " + formatDuration(measured) + ", predicted " + formatDuration(predicted) + ": ";
  if (costs != ir::CostSource::kMeasured) {
    return times +
           "the plan's costs were not measured on this machine; profile the step and plan "
           "again";
  }
  return times +
         "the plan's costs do not describe this machine as it is now; it was busy when they were "
         "measured, or is now; profile the step again";
}

std::string describeScatter(Nanoseconds medians, Nanoseconds shortest) {
  // Halves, not a product: sums may be large.
  const bool isSteady = medians.value() - shortest.value() <= shortest.value() / 2;
  if (isSteady) return "";
  return "this machine is busy: the ops' median times add up to " + formatDuration(medians) +
         ", their shortest to " + formatDuration(shortest) +
         "; measured times will be too long; profile again when it is idle";
}

}  // namespace stowage::tools
