// SPDX-License-Identifier: Apache-2.0
#include "tools/load_files.h"

#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>

#include <set>
#include <thread>
#include <utility>

#include "ir/affix.h"
#include "ir/parser.h"
#include "passes/planned_file.h"
#include "planner/plan_json.h"
#include "planner/roofline.h"
#include "runtime/torch_types.h"
#include "tools/nearest_name.h"
#include "tools/step_file.h"
#include "tools/whole_file.h"

namespace stowage::tools {

namespace {

ir::Error badArgument(std::string text) {
  return ir::makeError(ir::ErrorCode::kInvalidArgument, std::move(text));
}

/// A file that a plan names, which may be relative to the plan's folder.
std::string seenFrom(const std::string& planPath, const std::string& file) {
  if (!llvm::sys::path::is_relative(file)) return file;
  llvm::SmallString<256> path(llvm::sys::path::parent_path(planPath));
  llvm::sys::path::append(path, file);
  return path.str().str();
}

/// Where the plan's graph is; "" when the plan embeds it.
ir::Expected<std::string> findGraphPath(const planner::PlanFile& plan, const std::string& planPath,
                                        const std::string& graphPath) {
  if (!graphPath.empty()) return graphPath;
  if (plan.graph.text) return "";
  if (plan.graph.file.empty()) {
    return badArgument(planPath + ": does not say where its graph is; --graph names the file");
  }
  return seenFrom(planPath, plan.graph.file);
}

/// What a file is, as far as its first bytes tell.
enum class FileKind : uint8_t { kStep, kPlan, kCosts, kArchive, kOtherJson, kUnknown };

FileKind sniff(llvm::StringRef text) {
  constexpr size_t kHead = 400;
  if (ir::startsWith(text, "PK\x03\x04")) return FileKind::kArchive;
  const llvm::StringRef head = text.ltrim().take_front(kHead);
  if (ir::startsWith(head, "graph ")) return FileKind::kStep;
  if (!ir::startsWith(head, "{")) return FileKind::kUnknown;
  if (head.contains("\"kind\":\"plan\"")) return FileKind::kPlan;
  if (head.contains("\"kind\":\"costs\"")) return FileKind::kCosts;
  return FileKind::kOtherJson;
}

const char* wordsFor(FileKind kind) {
  switch (kind) {
    case FileKind::kStep:
      return "a captured step";
    case FileKind::kPlan:
      return "a plan";
    case FileKind::kCosts:
      return "a table of costs";
    case FileKind::kArchive:
      return "an archive";
    case FileKind::kOtherJson:
      return "JSON of another kind";
    case FileKind::kUnknown:
      break;
  }
  return "nothing that stowage wrote";
}

const char* makerOf(FileKind kind) {
  if (kind == FileKind::kPlan) return "'stowage plan -o FILE'";
  return kind == FileKind::kCosts ? "'stowage profile -o FILE'" : "'stowage capture -o FILE'";
}

/// Text that is clearly something else. JSON and step texts that only look like nothing known are
/// left to their readers, which say where.
ir::Error checkKind(const std::string& path, llvm::StringRef text, FileKind wanted) {
  const FileKind found = sniff(text);
  const bool readable = found == wanted ||
                        (wanted != FileKind::kStep && found == FileKind::kOtherJson) ||
                        (wanted == FileKind::kStep && text.ltrim().find_first_of("#;/") == 0);
  if (readable) return ir::success();
  const std::string what = text.trim().empty() ? "is empty" : std::string("is ") + wordsFor(found);
  return ir::makeError(ir::PlanError(ir::ErrorCode::kParse, what + ", expected " +
                                                                wordsFor(wanted) + ", as " +
                                                                makerOf(wanted) + " writes it")
                           .at({.file = path}));
}

/// Line and column of the first call of `op`, as far as a text search tells.
ir::SourceLocation findCall(const std::string& path, llvm::StringRef text, const std::string& op) {
  const size_t place = text.find(op + "(");
  if (place == llvm::StringRef::npos) return {.file = path};
  const llvm::StringRef before = text.take_front(place);
  return {.file = path,
          .line = static_cast<int>(before.count('\n')) + 1,
          .column = static_cast<int>(place - (before.rfind('\n') + 1)) + 1};
}

/// Every op is one that this libtorch has. Names of other libraries' ops are theirs.
ir::Error checkOps(const ir::Graph& graph, llvm::StringRef text, const std::string& path) {
  std::set<std::string> seen;
  for (const ir::Node& node : graph.nodes()) {
    if (!ir::startsWith(node.op, "aten.") || !seen.insert(node.op).second) continue;
    ir::Expected<c10::OperatorHandle> found = runtime::findOperator(node.op);
    if (found) continue;
    ir::PlanError error = ir::takePayload(found.takeError());
    return ir::makeError(error.at(findCall(path, text, node.op)));
  }
  return ir::success();
}

ir::Expected<std::string> readFileOf(const std::string& path, FileKind kind) {
  ir::Expected<std::string> text = readWholeFile(path);
  if (!text) return text.takeError();
  if (ir::Error error = checkKind(path, *text, kind)) return error;
  return text;
}

}  // namespace

ir::Expected<ir::Graph> loadGraph(const std::string& path) {
  ir::Expected<std::string> text = readFileOf(path, FileKind::kStep);
  if (!text) return text.takeError();
  ir::Expected<ir::Graph> graph = ir::parseGraph(*text, path);
  if (!graph) return graph.takeError();
  if (ir::Error error = checkOps(*graph, *text, path)) return error;
  if (ir::Error error = checkStepText(*text, path)) return error;
  return graph;
}

ir::Expected<LoadedPlan> loadPlan(const std::string& planPath, const std::string& graphPath) {
  ir::Expected<std::string> text = readFileOf(planPath, FileKind::kPlan);
  if (!text) return text.takeError();
  ir::Expected<planner::PlanFile> plan = planner::readPlan(*text, planPath);
  if (!plan) return plan.takeError();
  ir::Expected<std::string> path = findGraphPath(*plan, planPath, graphPath);
  if (!path) return path.takeError();
  ir::Expected<ir::Graph> graph =
      path->empty() ? ir::parseGraph(*plan->graph.text, planPath + " (embedded graph)")
                    : loadGraph(*path);
  if (!graph) return graph.takeError();
  ir::Expected<passes::ArrangedGraph> arranged =
      passes::arrangeForPlan(*graph, *plan, path->empty() ? "embedded" : "of " + *path);
  if (!arranged) return arranged.takeError();
  return LoadedPlan{.file = std::move(*plan),
                    .step = std::move(*graph),
                    .graph = std::move(arranged->graph),
                    .order = arranged->order,
                    .graphPath = *path};
}

ir::Expected<planner::CostFile> loadCosts(const std::string& path) {
  ir::Expected<std::string> text = readFileOf(path, FileKind::kCosts);
  if (!text) return text.takeError();
  return planner::readCosts(*text, path);
}

std::string plansCostsPath(const planner::PlanFile& plan) {
  return plan.costs.file.empty() ? "" : seenFrom(plan.path, plan.costs.file);
}

ir::Expected<PlansCosts> findPlansCosts(const LoadedPlan& plan) {
  const planner::CostsReference& wanted = plan.file.costs;
  PlansCosts costs{.file = std::nullopt, .path = plansCostsPath(plan.file), .missing = ""};
  std::string where = costs.path;
  planner::CostFile found;
  if (!costs.path.empty()) {
    costs.missing = "and there is no " + costs.path;
    if (!llvm::sys::fs::exists(costs.path)) return costs;
    ir::Expected<planner::CostFile> file = loadCosts(costs.path);
    if (!file) return file.takeError();
    found = std::move(*file);
  } else {
    costs.missing = "and does not say where they are";
    if (wanted.source != ir::CostSource::kRoofline) return costs;
    where = "the estimate of profile '" + plan.file.target.profile + "'";
    found.table = planner::rooflineCosts(plan.graph, plan.file.target);
  }
  const std::string fingerprint = planner::costsFingerprint(found.table);
  if (fingerprint != wanted.fingerprint) {
    costs.missing =
        "with fingerprint " + wanted.fingerprint + ", and " + where + " has " + fingerprint;
    return costs;
  }
  costs.missing.clear();
  costs.file = std::move(found);
  return costs;
}

ir::Expected<planner::CostFile> loadPlansCosts(const LoadedPlan& plan) {
  ir::Expected<PlansCosts> costs = findPlansCosts(plan);
  if (!costs) return costs.takeError();
  if (costs->file) return std::move(*costs->file);
  return ir::makeError(
      ir::PlanError(ir::ErrorCode::kInvalidArgument,
                    std::string("the plan was made from costs that were ") +
                        ir::costSourceName(plan.file.costs.source) + ", " + costs->missing +
                        "; --costs names the file, --estimate goes on with the estimate of "
                        "profile '" +
                        plan.file.target.profile + "'")
          .at({.file = plan.file.path}));
}

ir::Error inInput(ir::Error error, const std::string& path) {
  const ir::PlanError found = ir::takePayload(std::move(error));
  const bool isOfFile = found.code() == ir::ErrorCode::kInvalidArgument && !path.empty();
  ir::PlanError problem(isOfFile ? ir::ErrorCode::kPlanMismatch : found.code(), found.text());
  problem.at(found.location());
  if (isOfFile && found.location().file.empty()) problem.at({.file = path});
  problem.notesOf(found);
  if (found.infeasible()) problem.because(*found.infeasible());
  return ir::makeError(std::move(problem));
}

ir::Error notMeasured(ir::Error error, const std::string& step, const std::string& costs) {
  ir::PlanError found = ir::takePayload(std::move(error));
  if (found.code() != ir::ErrorCode::kInvalidArgument || costs.empty())
    return ir::makeError(std::move(found));
  return ir::makeError(
      ir::PlanError(ir::ErrorCode::kPlanMismatch, found.text())
          .at({.file = step})
          .note(costs + " was measured for another step, or for this one before it changed: "
                        "'stowage profile' measures this one"));
}

const std::string& stepPath(const LoadedPlan& plan) {
  return plan.graphPath.empty() ? plan.file.path : plan.graphPath;
}

std::string differentCosts(const planner::PlanFile& plan, const std::string& path,
                           const ir::CostTable& costs) {
  const std::string found = planner::costsFingerprint(costs);
  if (plan.costs.fingerprint.empty() || found == plan.costs.fingerprint) return "";
  return path + ": other costs than those the plan was made from: found " + found + " (" +
         ir::costSourceName(costs.source) + "), the plan says " + plan.costs.fingerprint + " (" +
         ir::costSourceName(plan.costs.source) + ")";
}

/// Capture chose kernels as libtorch does on the target that it was for.
static ir::Error checkSameKernels(const std::string& captured, const ir::Target& target) {
  if (captured.empty() || captured == target.profile) return ir::success();
  ir::Expected<ir::Target> from = planner::findTargetProfile(captured);
  if (!from) return from.takeError();
  if (from->computeCapability == target.computeCapability &&
      from->cudnnVersion == target.cudnnVersion) {
    return ir::success();
  }
  return badArgument("the step was captured for target '" + captured + "', and libtorch may take " +
                     "other kernels on '" + target.profile + "'; capture it again for that target");
}

ir::Expected<ir::Target> chooseTarget(const ir::Graph& graph, const std::string& name,
                                      int threads) {
  const std::string& wanted = name.empty() ? graph.provenance().target : name;
  if (wanted.empty()) return badArgument("the graph does not name a target; --target names one");
  ir::Expected<ir::Target> target = planner::findTargetProfile(wanted);
  if (!target) return target.takeError();
  if (graph.provenance().device != ir::deviceKindName(target->device)) {
    return badArgument("the step was captured for device '" + graph.provenance().device +
                       "', but target '" + wanted + "' is a " + ir::deviceKindName(target->device) +
                       " device; capture it again for that target");
  }
  if (ir::Error error = checkSameKernels(graph.provenance().target, *target)) return error;
  target->deterministic = graph.provenance().deterministic;
  if (target->device == ir::DeviceKind::kCpu) {
    target->intraOpThreads =
        threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency());
  }
  return target;
}

}  // namespace stowage::tools
