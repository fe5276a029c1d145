// SPDX-License-Identifier: Apache-2.0
//
// What is refused before anything runs: a plan that the verifier does not accept, a plan for
// another machine, ops that need more temporary memory here than the plan has for them; steps that
// are larger than this machine.
#ifndef STOWAGE_TOOLS_RUN_CHECKS_H_
#define STOWAGE_TOOLS_RUN_CHECKS_H_

#include <string>

#include "ir/cost_table.h"
#include "ir/error.h"
#include "tools/load_files.h"

namespace stowage::tools {

/// The plan's machine is this one: device, alignment, libraries, memory for both arenas. An op may
/// get fewer threads than the machine has cores, not more; `threads`: what it has, 0: as many as
/// cores. Errors: kEnvironment, "V3: ...".
ir::Error checkMachine(const planner::PlanFile& plan, int threads);

/// Everything that one op touches fits this machine's memory. Errors: kEnvironment with the step's
/// file and the op.
ir::Error checkOpMemory(const std::string& path, const ir::Graph& graph);
/// The step without a plan fits this machine's memory. Errors: kEnvironment.
ir::Error checkUnplannedMemory(const ir::Graph& graph, const ir::Target& target);

/// Errors: kViolation with a note per violation.
ir::Error proveAgain(const std::string& path, const LoadedPlan& plan);

/// How many ops need more temporary memory than the plan gives them.
size_t countGrownOps(const LoadedPlan& plan, const ir::NodeCosts& costs);
/// Errors: kViolation, "V17: ...", with the ops that grew.
ir::Error checkTemporaries(const LoadedPlan& plan, const ir::NodeCosts& costs);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_CHECKS_H_
