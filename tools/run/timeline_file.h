// SPDX-License-Identifier: Apache-2.0
//
// Measured steps as a file for Perfetto or chrome://tracing: one row per engine and one for the
// launch thread, what compute waited for, and below them the steps as they were predicted. The
// format is the trace event format's JSON; microseconds.
#ifndef STOWAGE_TOOLS_RUN_TIMELINE_FILE_H_
#define STOWAGE_TOOLS_RUN_TIMELINE_FILE_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/Support/raw_ostream.h>

#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/step_times.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "planner/correct/step_stalls.h"
#include "planner/evaluate/timeline.h"

namespace stowage::tools {

/// Steps that were measured, and what was expected of them.
struct MeasuredSteps {
  const ir::Graph& graph;
  const ir::Schedule& schedule;
  llvm::ArrayRef<ir::StepTimes> steps;
  /// By the costs that the run was given; nothing without costs.
  std::optional<planner::Timeline> predicted;
};

/// How far the prediction was off, and why.
struct TimelineSummary {
  planner::StepSummary measured;
  /// The schedule's period with each command as long as measured; the rest of the measured period
  /// is lost between commands. `readyTimes` is the same with each command's launch latency added;
  /// the rest then has other causes.
  Nanoseconds ownTimes;
  Nanoseconds readyTimes;
  std::optional<planner::Timeline> predicted;
  /// planner::hiddenShare
  std::optional<double> hidden;
};
TimelineSummary summarizeSteps(const MeasuredSteps& measured);

void writeTimeline(const MeasuredSteps& measured, llvm::raw_ostream& os);

/// `text` as a gzip file. Errors: kInternal.
ir::Expected<std::string> compressGzip(const std::string& text);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_TIMELINE_FILE_H_
