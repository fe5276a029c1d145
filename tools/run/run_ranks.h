// SPDX-License-Identifier: Apache-2.0
//
// Whether a process is one of several ranks, which a launcher or `--ranks` has started, and what
// that means for a run's flags: rank 0 speaks and writes files.
#ifndef STOWAGE_TOOLS_RUN_RUN_RANKS_H_
#define STOWAGE_TOOLS_RUN_RUN_RANKS_H_

#include <memory>
#include <optional>

#include "ir/base/error.h"
#include "planner/files/plan_file.h"
#include "runtime/launch/launched_rank.h"
#include "runtime/launch/launched_training.h"
#include "tools/run/run_flags.h"

namespace stowage::tools {

/// Nothing for a run of one process. `ranks`: of --ranks; 0: not given. Errors: kEnvironment for a
/// launcher's variables that are wrong; kInvalidArgument for another number of ranks than --ranks
/// says.
ir::Expected<std::optional<runtime::LaunchedRank>> findRank(int64_t ranks);

/// Of the host's GPUs this process sees its own alone. Before CUDA is first asked.
void seeOwnGpu(const std::optional<runtime::LaunchedRank>& rank);

/// What of the flags is rank 0's alone; and as seeOwnGpu.
void takeRank(const std::optional<runtime::LaunchedRank>& rank, RunFlags& flags);

/// Is the plan for so many ranks, and are the flags? Errors: kInvalidArgument saying what to do.
ir::Error checkRanks(const planner::PlanFile& plan, int64_t found, const RunFlags& flags);

/// All ranks, met. They learn of what goes wrong in this one.
class RankMeeting {
 public:
  explicit RankMeeting(const std::optional<runtime::LaunchedRank>& rank) : rank_(rank) {}
  /// Errors: kEnvironment.
  ir::Error join();
  /// Null for a run of one process.
  const runtime::TrainingRanks* ranks() const { return joined_ ? &joined_->ranks() : nullptr; }
  /// The result; an error with the rank that it is of, which the others are told.
  VerbResult end(VerbResult result) const;

 private:
  std::optional<runtime::LaunchedRank> rank_;
  std::unique_ptr<runtime::LaunchedTraining> joined_;
};

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_RUN_RANKS_H_
