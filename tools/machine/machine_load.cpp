// SPDX-License-Identifier: Apache-2.0
#include "tools/machine/machine_load.h"

namespace stowage::tools {

namespace {

/// Measured: 11 us with libtorch's CPU ops.
constexpr int64_t kMostLaunchOverhead = 20'000;

bool isKnown(const StepComparison& step) {
  return step.predicted > Nanoseconds(0) && step.measured > Nanoseconds(0);
}

bool isTooLong(const StepComparison& step) {
  const int64_t launch = kMostLaunchOverhead * static_cast<int64_t>(step.commands);
  return (step.measured.value() - launch) / 2 > step.predicted.value();
}

}  // namespace

std::string describeSlowReference(const StepComparison& step) {
  if (step.costs != ir::CostSource::kMeasured || !isKnown(step) || !isTooLong(step)) return "";
  return "a step of plain libtorch took " + formatDuration(step.measured) +
         ", the planned one, which has its ops to do as well, is predicted to take " +
         formatDuration(step.predicted) +
         ": this machine was busy, and what the planned step seems to gain is no gain";
}

std::string describeOffPrediction(const StepComparison& step) {
  if (!isKnown(step)) return "";
  if (!isTooLong(step) && step.predicted.value() / 2 <= step.measured.value()) return "";
  const std::string times = "a step took " + formatDuration(step.measured) + ", predicted " +
                            formatDuration(step.predicted) + ": ";
  if (step.costs != ir::CostSource::kMeasured) {
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
