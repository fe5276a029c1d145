// SPDX-License-Identifier: Apache-2.0
//
// Reading what verbs take: captured steps (.stow), plans and cost tables, each checked on load. A
// plan names the graph it is for; the graph comes from the plan itself when embedded, else from the
// file that it or the caller names, brought into the order that the plan is about.
#ifndef STOWAGE_TOOLS_FILES_LOAD_FILES_H_
#define STOWAGE_TOOLS_FILES_LOAD_FILES_H_

#include <optional>
#include <string>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"
#include "passes/plan_step.h"
#include "planner/files/cost_json.h"
#include "planner/files/plan_file.h"
#include "planner/verdict/plan_costs.h"

namespace stowage::tools {

/// Errors: kIo, kParse with file, line and column.
ir::Expected<ir::Graph> loadGraph(const std::string& path);
/// The same as each of `ranks` runs it; 0: as the file has it. Errors: also kUnsupported for steps
/// whose ranks would train apart.
ir::Expected<ir::Graph> loadGraphForRanks(const std::string& path, int64_t ranks);

struct LoadedPlan {
  planner::PlanFile file;
  ir::Graph captured;  // as its file has it
  ir::Graph step;      // the same, of one of the plan's ranks
  ir::Graph graph;     // in the plan's order
  passes::Order order = passes::Order::kProgram;
  std::string graphPath;  // where the graph was found; "" when it was embedded
};
/// `graphPath`: "" = as the plan says. Errors: kIo, kParse; kPlanMismatch when the graph is another
/// one; kInvalidArgument when nobody says where it is.
ir::Expected<LoadedPlan> loadPlan(const std::string& planPath, const std::string& graphPath);

/// The files that a plan names: its graph's and its costs'; "" for what it does not name. No output
/// may replace them.
std::vector<std::string> filesOfPlan(const LoadedPlan& plan);

ir::Expected<planner::CostFile> loadCosts(const std::string& path);

/// Errors: kIo, kParse.
ir::Expected<planner::PlansCosts> findPlansCosts(const LoadedPlan& plan);
/// The costs that the plan was made from, where it says that they are. Errors: kIo, kParse;
/// kInvalidArgument saying which flags help when they are not there, or are others by now.
ir::Expected<planner::CostFile> loadPlansCosts(const LoadedPlan& plan);

/// An error that an input file caused, as one about that file: exit code 3, not wrong usage.
ir::Error inInput(ir::Error error, const std::string& path);
/// An error met while the step of file `path` was prepared, measured or run: what libtorch refuses
/// then is the file's doing, and the file is named where no place is.
ir::Error ofStepFile(ir::Error error, const std::string& path);

/// The verdict on a plan, the same in every verb. `costs`: a file that the user names, "" for none;
/// it counts where it is what the plan was made from. Errors: kViolation with the rules; kIo and
/// kParse of files of costs.
ir::Error checkPlan(const LoadedPlan& plan, const std::string& costs);
/// The error of ir::resolveCosts as one about the step's file, whose ops `costs` does not measure.
/// `costs`: "" = no file, the error stays as it is.
ir::Error notMeasured(ir::Error error, const std::string& step, const std::string& costs);
/// Where a plan's graph is to be found in messages: its file, or the plan that embeds it.
const std::string& stepPath(const LoadedPlan& plan);

/// "" when `costs` are those that the plan was made from; else a sentence that says they are not.
std::string differentCosts(const planner::PlanFile& plan, const std::string& path,
                           const ir::CostTable& costs);

/// Is the step for the torch of this program, as what measures or runs it needs? Errors:
/// kPlanMismatch.
ir::Error checkCapturedHere(const std::string& path, const ir::Graph& graph);
/// "" where it is; else a sentence that its plans do not run here.
std::string describeOtherTorch(const ir::Graph& graph);
/// Were costs measured with the torch that captured the graph, as far as both say? Kernels of
/// another one take other times, and other memory. Errors: kPlanMismatch.
ir::Error checkSameTorch(const ir::Graph& graph, const std::string& measured);

/// The profile that `name` names, or, when it is empty, the one that `graph` was captured for. On
/// the CPU with `threads` intra-op threads (0: as many as the machine has cores).
ir::Expected<ir::Target> chooseTarget(const ir::Graph& graph, const std::string& name, int threads);

/// For a capture: by --target, by --device (a GPU: h200), or a CPU.
ir::Expected<ir::Target> findCaptureTarget(const std::string& device, const std::string& name,
                                           bool deterministic);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_FILES_LOAD_FILES_H_
