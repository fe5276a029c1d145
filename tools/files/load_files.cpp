// SPDX-License-Identifier: Apache-2.0
#include "tools/files/load_files.h"

#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>

#include <thread>
#include <utility>

#include "ir/base/affix.h"
#include "ir/text/parser.h"
#include "passes/planned_file.h"
#include "planner/files/plan_json.h"
#include "planner/targets/roofline.h"
#include "planner/targets/torch_libraries.h"
#include "planner/verdict/plan_verdict.h"
#include "runtime/torch/torch_version.h"
#include "tools/files/loaded_calls.h"
#include "tools/files/step_file.h"
#include "tools/files/whole_file.h"

namespace stowage::tools {

namespace {

ir::Error badArgument(std::string text) {
  return ir::makeError(ir::ErrorCode::kInvalidArgument, std::move(text));
}

/// Where the plan's graph is; "" when the plan embeds it.
ir::Expected<std::string> findGraphPath(const planner::PlanFile& plan, const std::string& planPath,
                                        const std::string& graphPath) {
  if (!graphPath.empty()) return graphPath;
  if (plan.graph.text) return "";
  if (plan.graph.file.empty()) {
    return badArgument(planPath + ": does not say where its graph is; --graph names the file");
  }
  return planner::seenFrom(planPath, plan.graph.file);
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

ir::Expected<std::string> readFileOf(const std::string& path, FileKind kind) {
  ir::Expected<std::string> text = readWholeFile(path);
  if (!text) return text.takeError();
  if (ir::Error error = checkKind(path, *text, kind)) return error;
  return text;
}

/// A graph written by hand is for the torch of this program.
std::string torchFor(const ir::Graph& graph) {
  const std::string captured = planner::torchOf(graph);
  return captured.empty() ? runtime::torchVersion() : captured;
}

/// What to say of a graph that another torch captured; "" of one for this torch.
std::string sayCaptureAgain(const ir::Graph& graph) {
  const std::string captured = torchFor(graph);
  if (captured == runtime::torchVersion()) return "";
  return "captured with torch " + captured + ", this is torch " + runtime::torchVersion() +
         ": capture it again";
}

/// An error of a step's calls: another torch may have other ops.
ir::Error ofOtherTorch(ir::Error error, const ir::Graph& graph) {
  const std::string again = sayCaptureAgain(graph);
  if (again.empty()) return error;
  return ir::makeError(ir::takePayload(std::move(error)).note(again));
}

/// A graph's text, its checksum and its calls checked.
ir::Expected<ir::Graph> parseStep(llvm::StringRef text, const std::string& path) {
  ir::Expected<ir::Module> parsed = ir::parseGraphModule(text, path);
  if (!parsed) return parsed.takeError();
  if (ir::Error error = checkStepText(text, path)) return error;
  if (ir::Error error = checkLoadedCalls(*parsed))
    return ofOtherTorch(std::move(error), parsed->graph);
  return std::move(parsed->graph);
}

/// An error of the file that a plan says its graph or costs are in: where that name came from.
ir::Error ofPlan(ir::Error error, const std::string& planPath, const std::string& what) {
  ir::PlanError problem = ir::takePayload(std::move(error));
  problem.note("plan " + planPath + " names this file for its " + what + "; --" + what +
               " names another");
  return ir::makeError(std::move(problem));
}

}  // namespace

ir::Expected<ir::Graph> loadGraph(const std::string& path) {
  ir::Expected<std::string> text = readFileOf(path, FileKind::kStep);
  if (!text) return text.takeError();
  return parseStep(*text, path);
}

ir::Expected<ir::Graph> loadGraphForRanks(const std::string& path, int64_t ranks) {
  ir::Expected<ir::Graph> graph = loadGraph(path);
  if (!graph || ranks == 0) return graph;
  ir::Expected<ir::Graph> ofRank = passes::graphForRanks(*graph, ranks);
  if (!ofRank) return inInput(ofRank.takeError(), path);
  return ofRank;
}

ir::Expected<LoadedPlan> loadPlan(const std::string& planPath, const std::string& graphPath) {
  ir::Expected<std::string> text = readFileOf(planPath, FileKind::kPlan);
  if (!text) return text.takeError();
  ir::Expected<planner::PlanFile> plan = planner::readPlan(*text, planPath);
  if (!plan) return plan.takeError();
  ir::Expected<std::string> path = findGraphPath(*plan, planPath, graphPath);
  if (!path) return path.takeError();
  ir::Expected<ir::Graph> graph = path->empty()
                                      ? parseStep(*plan->graph.text, planPath + " (embedded graph)")
                                      : loadGraph(*path);
  if (!graph) {
    const bool isNamedByPlan = graphPath.empty() && !path->empty();
    return isNamedByPlan ? ofPlan(graph.takeError(), planPath, "graph") : graph.takeError();
  }
  ir::Expected<passes::ArrangedGraph> arranged =
      passes::arrangeForPlan(*graph, *plan, path->empty() ? "embedded" : "of " + *path);
  if (!arranged) return arranged.takeError();
  ir::Expected<ir::Graph> step = passes::graphForRanks(*graph, plan->graph.ranks);
  if (!step) return step.takeError();
  return LoadedPlan{.file = std::move(*plan),
                    .captured = std::move(*graph),
                    .step = std::move(*step),
                    .graph = std::move(arranged->graph),
                    .order = arranged->order,
                    .graphPath = *path};
}

std::vector<std::string> filesOfPlan(const LoadedPlan& plan) {
  return {plan.graphPath, planner::plansCostsPath(plan.file)};
}

ir::Expected<planner::CostFile> loadCosts(const std::string& path) {
  ir::Expected<std::string> text = readFileOf(path, FileKind::kCosts);
  if (!text) return text.takeError();
  return planner::readCosts(*text, path);
}

ir::Expected<planner::PlansCosts> findPlansCosts(const LoadedPlan& plan) {
  using Found = std::optional<planner::CostFile>;
  return planner::findPlansCosts(plan.file, plan.graph,
                                 [&](const std::string& path) -> ir::Expected<Found> {
                                   if (!llvm::sys::fs::exists(path)) return Found();
                                   ir::Expected<planner::CostFile> file = loadCosts(path);
                                   if (!file)
                                     return ofPlan(file.takeError(), plan.file.path, "costs");
                                   return Found(std::move(*file));
                                 });
}

ir::Error checkPlan(const LoadedPlan& plan, const std::string& costs) {
  if (!costs.empty()) {
    ir::Expected<planner::CostFile> file = loadCosts(costs);
    if (!file) return file.takeError();
    file->table = planner::costsForPlan(plan.file, plan.graph, std::move(file->table));
    if (planner::isMadeFrom(plan.file, file->table)) {
      return planner::checkPlan(plan.file, plan.graph,
                                {.file = std::move(*file), .path = costs, .missing = ""});
    }
  }
  ir::Expected<planner::PlansCosts> own = findPlansCosts(plan);
  if (!own) return own.takeError();
  return planner::checkPlan(plan.file, plan.graph, *own);
}

ir::Expected<planner::CostFile> loadPlansCosts(const LoadedPlan& plan) {
  ir::Expected<planner::PlansCosts> costs = findPlansCosts(plan);
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

namespace {

/// `found` with another code, and `path` as its place where it has none; "" names no file.
ir::Error placed(const ir::PlanError& found, ir::ErrorCode code, const std::string& path) {
  ir::PlanError problem(code, found.text());
  problem.at(found.location()).notesOf(found);
  if (!path.empty() && found.location().file.empty()) problem.at({.file = path});
  if (found.infeasible()) problem.because(*found.infeasible());
  return ir::makeError(std::move(problem));
}

}  // namespace

ir::Error inInput(ir::Error error, const std::string& path) {
  const ir::PlanError found = ir::takePayload(std::move(error));
  const bool isOfFile = found.code() == ir::ErrorCode::kInvalidArgument && !path.empty();
  const ir::ErrorCode code = isOfFile ? ir::ErrorCode::kPlanMismatch : found.code();
  return placed(found, code, code == ir::ErrorCode::kPlanMismatch ? path : "");
}

ir::Error ofStepFile(ir::Error error, const std::string& path) {
  const ir::PlanError found = ir::takePayload(std::move(error));
  const bool isOfFile = found.code() == ir::ErrorCode::kTorch;
  const ir::ErrorCode code = isOfFile ? ir::ErrorCode::kPlanMismatch : found.code();
  const bool isAboutStep = code == ir::ErrorCode::kPlanMismatch ||
                           code == ir::ErrorCode::kUnsupported ||
                           code == ir::ErrorCode::kInvalidIr || code == ir::ErrorCode::kParse ||
                           code == ir::ErrorCode::kOutOfDeviceMemory;
  return placed(found, code, isAboutStep ? path : "");
}

ir::Error notMeasured(ir::Error error, const std::string& step, const std::string& costs) {
  ir::PlanError found = ir::takePayload(std::move(error));
  if (found.code() != ir::ErrorCode::kInvalidArgument || costs.empty())
    return ir::makeError(std::move(found));
  return ir::makeError(
      ir::PlanError(ir::ErrorCode::kPlanMismatch, found.text())
          .at({.file = step})
          .note(costs + " was measured for another step or number of ranks, or before it changed: "
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

ir::Error checkCapturedHere(const std::string& path, const ir::Graph& graph) {
  const std::string again = sayCaptureAgain(graph);
  if (again.empty()) return ir::success();
  return inInput(ir::makeError(ir::ErrorCode::kPlanMismatch, again), path);
}

std::string describeOtherTorch(const ir::Graph& graph) {
  const std::string captured = torchFor(graph);
  if (captured == runtime::torchVersion()) return "";
  return "the step was captured with torch " + captured + ": its plan does not run with torch " +
         runtime::torchVersion() + ", which this is";
}

ir::Error checkSameTorch(const ir::Graph& graph, const std::string& measured) {
  const std::string captured = planner::torchOf(graph);
  if (captured.empty() || measured.empty() || captured == measured) return ir::success();
  const bool isOurs = captured == runtime::torchVersion();
  return ir::makeError(
      ir::ErrorCode::kPlanMismatch,
      "measured with torch " + measured + ", the step was captured with torch " + captured + ": " +
          (isOurs ? "'stowage profile' measures it again" : "capture the step again"));
}

/// Capture chose kernels as libtorch does on the target that it was for.
static ir::Error checkSameKernels(const std::string& captured, const ir::Target& target) {
  if (captured.empty() || captured == target.profile) return ir::success();
  ir::Expected<ir::Target> from = planner::findTargetProfile(captured);
  if (!from) return from.takeError();
  if (from->computeCapability == target.computeCapability) return ir::success();
  return badArgument("the step was captured for target '" + captured + "', and libtorch may take " +
                     "other kernels on '" + target.profile + "'; capture it again for that target");
}

ir::Expected<ir::Target> chooseTarget(const ir::Graph& graph, const std::string& name,
                                      int threads) {
  const std::string& wanted = name.empty() ? graph.provenance().target : name;
  if (wanted.empty()) return badArgument("the graph does not name a target; --target names one");
  ir::Expected<ir::Target> target = planner::findTargetProfile(wanted, torchFor(graph));
  if (!target) {
    ir::PlanError error = ir::takePayload(target.takeError());
    if (error.code() != ir::ErrorCode::kUnsupported) return ir::makeError(std::move(error));
    return ir::makeError(std::move(error.note("the step was captured with it: capture it again")));
  }
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

ir::Expected<ir::Target> findCaptureTarget(const std::string& device, const std::string& name,
                                           bool deterministic) {
  const std::string wanted = !name.empty() ? name : (device == "cuda" ? "h200" : "cpu");
  ir::Expected<ir::Target> target = planner::findTargetProfile(wanted, runtime::torchVersion());
  if (!target) return target.takeError();
  if (!device.empty() && device != ir::deviceKindName(target->device)) {
    return badArgument("--device " + device + " and --target " + wanted +
                       " do not go together: that target is a " +
                       ir::deviceKindName(target->device) + " device");
  }
  target->deterministic = deterministic;
  return target;
}

}  // namespace stowage::tools
