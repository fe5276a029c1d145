// SPDX-License-Identifier: Apache-2.0
//
// What `run` keeps of the times of its steps: --costs-out and --timeline.
#ifndef STOWAGE_TOOLS_RUN_TIMES_FILES_H_
#define STOWAGE_TOOLS_RUN_TIMES_FILES_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/step_times.h"
#include "tools/cli/verb.h"
#include "tools/files/load_files.h"
#include "tools/run/run_costs.h"
#include "tools/run/timeline_file.h"

namespace stowage::tools {

/// Steps whose times are taken, the first never among them.
inline constexpr int64_t kTimedSteps = 10;

/// Names of files to write; "": none.
struct TimesFiles {
  std::string costs;
  std::string timeline;
  bool any() const { return !costs.empty() || !timeline.empty(); }
};

/// Refuses early what could not be written after `steps` steps. Errors: kInvalidArgument, kIo.
ir::Error checkTimesFiles(const TimesFiles& files, const CommonFlags& flags, int64_t steps,
                          llvm::ArrayRef<std::string> inputs);

/// Times of single commands are not taken inside of CUDA graphs; a step in row blocks has no times
/// of the whole ops, which `costs`, the file of --costs, has. Errors: kInvalidArgument.
ir::Error checkTimesOf(const LoadedPlan& plan, const TimesFiles& files, const std::string& costs);

/// What was measured, and what was expected of it when the costs say so. Points into all three.
MeasuredSteps measuredSteps(const LoadedPlan& plan, const CostsHere& costs,
                            const std::vector<ir::StepTimes>& times);

struct TimesToKeep {
  const LoadedPlan& plan;
  const CostsHere& costs;
  const MeasuredSteps& measured;
  ir::StepPace pace;
};
/// The files that were written: none, with a remark, when the run was stopped before two steps were
/// timed.
ir::Expected<TimesFiles> keepTimes(const TimesFiles& files, const CommonFlags& flags,
                                   const TimesToKeep& times);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_TIMES_FILES_H_
