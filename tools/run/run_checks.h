// SPDX-License-Identifier: Apache-2.0
//
// What is refused before anything runs: a plan for another machine, steps that are larger than this
// machine. What a plan's schedule must stand: planner/verdict/plan_verdict.h.
#ifndef STOWAGE_TOOLS_RUN_RUN_CHECKS_H_
#define STOWAGE_TOOLS_RUN_RUN_CHECKS_H_

#include <string>

#include "ir/base/error.h"
#include "tools/files/load_files.h"

namespace stowage::tools {

/// The plan's machine is this one: device, alignment, libraries, memory for both arenas. An op may
/// get fewer threads than the machine has cores, not more; `threads`: what it has, 0: as many as
/// cores. Errors: kEnvironment, "V3: ...".
ir::Error checkMachine(const planner::PlanFile& plan, int threads);

/// For --compare-unplanned: the plan's step has the bits of the unplanned one. Errors:
/// kInvalidArgument.
ir::Error checkComparable(const planner::PlanFile& plan);
/// A plan that keeps bytes on disk needs a `folder` for them; "": none. Errors: kInvalidArgument.
ir::Error checkDiskFolder(const planner::PlanFile& plan, const std::string& folder);

/// That `folder` is not used, for a plan that keeps nothing on disk; else "".
std::string describeUnusedDisk(const planner::PlanFile& plan, const std::string& folder);

/// Everything that one op touches fits this machine's memory. Errors: kEnvironment with the step's
/// file and the op.
ir::Error checkOpMemory(const std::string& path, const ir::Graph& graph);
/// The step without a plan fits this machine's memory. Errors: kEnvironment.
ir::Error checkUnplannedMemory(const ir::Graph& graph, const ir::Target& target);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_RUN_CHECKS_H_
