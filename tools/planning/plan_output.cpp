// SPDX-License-Identifier: Apache-2.0
#include "tools/planning/plan_output.h"

#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>
#include <llvm/Support/raw_ostream.h>

#include <nlohmann/json.hpp>

#include "ir/base/affix.h"
#include "ir/text/printer.h"
#include "passes/planned_file.h"
#include "planner/files/cost_json.h"
#include "planner/files/plan_json.h"
#include "planner/report/plan_summary.h"
#include "planner/verdict/plan_verdict.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/printable_stream.h"
#include "tools/files/whole_file.h"

namespace stowage::tools {

namespace {

/// A file's path as seen from the plan's folder when it lies below it, so that both can be moved
/// together; "" for one that has no name.
std::string pathFromPlan(const std::string& path, const std::string& planPath) {
  llvm::SmallString<256> file(path);
  llvm::SmallString<256> plan(planPath);
  if (path.empty() || path == "-") return "";
  if (planPath == "-") return path;
  llvm::sys::fs::make_absolute(file);
  llvm::sys::fs::make_absolute(plan);
  llvm::sys::path::remove_dots(file, /*remove_dot_dot=*/true);
  llvm::sys::path::remove_dots(plan, /*remove_dot_dot=*/true);
  const std::string folder = llvm::sys::path::parent_path(plan).str() + "/";
  const llvm::StringRef whole = file.str();
  return ir::startsWith(whole, folder) ? whole.drop_front(folder.size()).str() : whole.str();
}

planner::PlanFile makeFile(const PlanOutput& output) {
  const passes::PlannedStep& planned = output.planned;
  planner::PlanFile file =
      passes::makePlanFile(planned, output.inputs.target, output.inputs.options);
  file.stowageVersion = STOWAGE_VERSION;
  file.torchVersion = output.inputs.costsTorchVersion;
  const ir::CostTable& costs = passes::costsOf(planned, output.inputs.costs);
  file.costs = {.fingerprint = planner::costsFingerprint(costs),
                .source = output.inputs.costs.source,
                .file = pathFromPlan(output.inputs.costsPath, output.planPath)};
  if (output.embed) {
    file.graph.text = ir::toText(planned.graph);
  } else {
    file.graph.file = pathFromPlan(output.graphPath, output.planPath);
  }
  return file;
}

/// A plan of ours stands the judgement that its readers give it.
ir::Error proveFile(const planner::PlanFile& file, const PlanOutput& output) {
  const planner::PlansCosts costs = {
      .file = planner::CostFile{.stowageVersion = "",
                                .torchVersion = output.inputs.costsTorchVersion,
                                .table = passes::costsOf(output.planned, output.inputs.costs)},
      .path = output.inputs.costsPath,
      .missing = ""};
  ir::Error error = planner::checkPlan(file, output.planned.graph, costs);
  if (!error) return ir::success();
  const ir::PlanError found = ir::takePayload(std::move(error));
  if (found.code() != ir::ErrorCode::kViolation) return ir::makeError(found);
  ir::PlanError problem(ir::ErrorCode::kInternal,
                        "the plan that was made breaks the verifier's rules");
  return ir::makeError(problem.notesOf(found));
}

}  // namespace

ir::Expected<std::string> makePlanText(const PlanOutput& output) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (ir::Error error = planner::writePlan(makeFile(output), os)) return error;
  os.flush();
  ir::Expected<planner::PlanFile> again = planner::readPlan(text, "the plan just made");
  if (!again) return again.takeError();
  if (ir::Error error = proveFile(*again, output)) return error;
  return text;
}

namespace {

/// Of the step without row blocks, whose kernels take less time, and with all updates on the
/// device; 0 where the costs do not say.
Nanoseconds unlimitedTime(const PlanOutput& output) {
  if (output.inputs.unlimited > Nanoseconds(0)) return output.inputs.unlimited;
  if (output.planned.rowBlocks == 1 && output.planned.hostUpdates == 0) return Nanoseconds(0);
  ir::Expected<ir::NodeCosts> costs =
      ir::resolveCosts(output.inputs.graph, output.inputs.costs, output.inputs.options.graphMode);
  if (costs) return costs->totalTime();
  llvm::consumeError(costs.takeError());
  return Nanoseconds(0);
}

}  // namespace

VerbResult writePlanOutput(const PlanOutput& output) {
  ir::Expected<std::string> text = makePlanText(output);
  if (!text) return text.takeError();
  const planner::PlanSummary summary = {.graph = output.planned.graph,
                                        .schedule = output.planned.schedule,
                                        .budget = output.inputs.options.budget,
                                        .keepAll = output.inputs.keepAll,
                                        .stalls = output.planned.result.timetable.stalls,
                                        .costs = summaryCosts(output.inputs),
                                        .outside = output.inputs.target.outside,
                                        .outsideMeasured = output.inputs.costs.outside.has_value(),
                                        .planNeeded = output.planned.result.planNeeded,
                                        .unlimited = unlimitedTime(output),
                                        .rowBlocks = output.planned.rowBlocks};
  const bool toStdout = output.planPath == "-";
  const bool asJson = output.flags.json && !toStdout;
  // With the plan on stdout, the verdict goes where people still see it.
  llvm::raw_ostream& os = toStdout ? messages() : answers();
  if (!asJson) {
    planner::printPlanSummary(summary, os);
    if (output.planned.order == passes::Order::kByLayer)
      os << "order      micro-batches by layer\n";
    if (output.planned.estimatedCosts > 0 &&
        output.inputs.costs.source != ir::CostSource::kRoofline) {
      os << "           " << output.planned.estimatedCosts
         << " ops in row blocks or on the host have no measured costs: scaled from the whole ops, "
            "or estimated ('stowage profile' measures those in row blocks)\n";
    }
    printPolicies(output.policies, output.planned.schedule.predicted.stepTime, os);
    if (output.planned.wasEnded)
      os << "stopped    by --time-limit: a longer search may find a faster step\n";
    os << "verified   " << output.planned.schedule.commands.size() << " commands, 0 violations\n";
  }
  if (!output.planPath.empty()) {
    if (ir::Error error = writeWholeFile(output.planPath, output.flags.replace,
                                         [&](llvm::raw_ostream& file) { file << *text; })) {
      return error;
    }
    if (!asJson && !toStdout) os << "wrote      " << output.planPath << '\n';
  }
  if (asJson) {
    nlohmann::ordered_json json = planner::planSummaryJson(summary);
    json["order"] = passes::orderName(output.planned.order);
    json["stopped_by_time_limit"] = output.planned.wasEnded;
    if (!output.policies.empty()) json["policies"] = policiesJson(output.policies);
    printJson(json);
  }
  return kExitYes;
}

}  // namespace stowage::tools
