// SPDX-License-Identifier: Apache-2.0
//
// What `plan`, `sweep` and `demo` share: the flags that say for which machine, with which costs and
// what is allowed, turned into the planner's inputs.
#ifndef STOWAGE_TOOLS_PLANNING_PLANNING_FLAGS_H_
#define STOWAGE_TOOLS_PLANNING_PLANNING_FLAGS_H_

#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"
#include "passes/plan_step.h"
#include "planner/files/plan_file.h"
#include "planner/report/plan_summary.h"
#include "tools/cli/budget_flag.h"
#include "tools/cli/verb.h"

namespace stowage::tools {

struct PlanningFlags : CommonFlags {
  std::string graph;
  std::string target;
  std::string costs;
  std::string host;
  std::string disk;
  std::string allow;
  int hostUpdates = -1;  // per cent; -1: as `allow` says
  std::vector<std::string> pins;
  int threads = 0;
  int64_t ranks = 0;  // 0: as the step's file has it
  std::string betweenRanks;
  std::string launch;
};
void addPlanningFlags(CLI::App& command, PlanningFlags& flags);
/// --ranks of a verb that reads a captured step.
void addRanksFlag(CLI::App& command, int64_t& ranks);

struct PlanningInputs {
  ir::Graph graph;
  ir::Target target;
  ir::CostTable costs;
  std::string costsPath;  // "": estimated, or measured just now
  std::string costsTorchVersion;
  passes::PlanStepOptions options;  // all but the budget
  Bytes keepAll;                    // what the step needs when nothing is moved; 0: not known
  Nanoseconds unlimited;  // of the step itself with room for all; 0: `graph` and `costs` say it
};
/// Errors: kIo, kParse, kInvalidArgument naming the flag and what it accepts.
ir::Expected<PlanningInputs> readPlanningInputs(const PlanningFlags& flags);

/// --host: "" sets no limit. Errors: kInvalidArgument.
ir::Error readHostLimit(const std::string& text, passes::PlanStepOptions& options);
/// --disk: "" is no disk. Errors: kInvalidArgument.
ir::Error readDiskLimit(const std::string& text, passes::PlanStepOptions& options);
/// The limits that a plan was made with, for another plan or the same decisions again.
void takeLimits(const planner::PlanFile& file, passes::PlanStepOptions& options);
/// Adds what recorded CUDA graphs take beside the arena to the target's; once, when the launch mode
/// is known.
void addGraphMemory(PlanningInputs& inputs);
/// The sizes that a percentage on the command line refers to.
Size::Wholes wholesOf(const PlanningInputs& inputs);
/// The arena's bytes in whole alignment units. Errors: kInvalidArgument when the memory outside the
/// arena leaves none, or for a share of the device where the target is for CPUs: a CPU profile's
/// memory is not that of a real machine.
ir::Expected<Bytes> resolveBudget(const Size& size, const PlanningInputs& inputs);
/// For the table of a sweep, where a share of a CPU profile's memory is allowed.
ir::Expected<Bytes> resolveSweptBudget(const Size& size, const PlanningInputs& inputs);

/// An infeasible error about a "device:" budget also says what that holds beside the arena.
ir::Error countOutside(ir::Error error, const Size& size, const PlanningInputs& inputs);

/// Where the times of a plan from these inputs come from, as its summary says it.
planner::SummaryCosts summaryCosts(const PlanningInputs& inputs);

/// Fills in keepAll from graph, target and costs.
ir::Error measureKeepAll(PlanningInputs& inputs);

/// "NAME=ACTION" with ACTION keep, device (the same), host, disk, recompute. Errors:
/// kInvalidArgument.
ir::Expected<planner::Pin> parsePin(const std::string& text);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_PLANNING_PLANNING_FLAGS_H_
