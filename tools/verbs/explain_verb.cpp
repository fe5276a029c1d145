// SPDX-License-Identifier: Apache-2.0
//
// stowage explain plan.json [storage]: what holds the peak, where compute waits, what would help;
// or, for one storage, what happens to it in every gap, why, and what that costs.
#include <fmt/format.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "ir/base/nearest_name.h"
#include "ir/base/printable.h"
#include "planner/report/explain_plan.h"
#include "planner/report/memory_chart.h"
#include "planner/report/plan_summary.h"
#include "planner/targets/roofline.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/printable_stream.h"
#include "tools/files/load_files.h"
#include "tools/files/whole_file.h"
#include "tools/planning/plan_help.h"
#include "tools/verbs/verbs.h"

namespace stowage::tools {

namespace {

using Json = nlohmann::ordered_json;
using planner::GapStory;
using planner::PlanExplanation;
using planner::StallPlace;
using planner::StorageStory;

struct ExplainFlags : CommonFlags {
  std::string plan;
  std::string storage;
  std::string graph;
  std::string costs;
  std::string svg;
};

/// Times of other costs than the plan's would explain another plan: where the plan's are not at
/// hand, an estimate does, which says so.
ir::Expected<ir::CostTable> readCosts(const ExplainFlags& flags, const LoadedPlan& plan) {
  const bool isAsked = !flags.costs.empty();
  const std::string path = isAsked ? flags.costs : planner::plansCostsPath(plan.file);
  if (!isAsked && (path.empty() || !llvm::sys::fs::exists(path))) {
    return planner::rooflineCosts(plan.graph, plan.file.target);
  }
  ir::Expected<planner::CostFile> file = loadCosts(path);
  if (!file) return file.takeError();
  file->table = planner::costsForPlan(plan.file, plan.graph, std::move(file->table));
  const std::string different = differentCosts(plan.file, path, file->table);
  if (different.empty()) return std::move(file->table);
  if (isAsked) return ir::makeError(ir::ErrorCode::kPlanMismatch, different);
  return planner::rooflineCosts(plan.graph, plan.file.target);
}

/// "" when the times are those that the plan was made from.
std::string costsRemark(const ir::CostTable& costs, const LoadedPlan& plan) {
  if (costs.source == plan.file.costs.source) return "";
  return "times below are the estimate of profile '" + plan.file.target.profile +
         "'; the plan was made from costs that were " + ir::costSourceName(plan.file.costs.source) +
         ": --costs names them";
}

std::string nameOf(const ir::Graph& graph, ir::StorageId storage) {
  return storage.isValid() ? graph.storage(storage).name : "";
}

double shareOf(Nanoseconds part, Nanoseconds whole) {
  if (whole.value() <= 0) return 0;
  return 100 * static_cast<double>(part.value()) / static_cast<double>(whole.value());
}

// --- the whole plan ------------------------------------------------------------------------------

void printPeak(const ir::Graph& graph, const LoadedPlan& plan, const PlanExplanation& explained,
               llvm::raw_ostream& os) {
  os << "arena      " << formatBytes(plan.file.budget) << ", used up to "
     << formatBytes(explained.arenaPeak) << '\n';
  if (!explained.peakNode.isValid()) return;
  os << "peak       " << formatBytes(explained.peakBytes) << " at once, at "
     << graph.describeNode(explained.peakNode) << '\n';
  for (const ir::Infeasible::Holder& holder : explained.holders) {
    os << fmt::format("           {:>10}  {}\n", formatBytes(holder.bytes),
                      ir::printable(holder.storage));
  }
}

const char* movementOf(const StallPlace& stall) {
  if (stall.isRanks) return "collective";
  return stall.isOut ? "offload" : "prefetch";
}

void printStalls(const ir::Graph& graph, const PlanExplanation& explained, llvm::raw_ostream& os) {
  os << "step       " << formatDuration(explained.stepTime)
     << fmt::format(": recomputes {} ({:.1f} %), waiting {} ({:.1f} %)\n",
                    formatDuration(explained.recomputeTime),
                    shareOf(explained.recomputeTime, explained.stepTime),
                    formatDuration(explained.waiting),
                    shareOf(explained.waiting, explained.stepTime));
  if (explained.launchWaits.value() > 0) {
    os << fmt::format(
        "launch     compute waits {} ({:.1f} %) for the thread that launches kernels, "
        "or for the step's scalars\n",
        formatDuration(explained.launchWaits), shareOf(explained.launchWaits, explained.stepTime));
  }
  os << fmt::format("links      offloads busy {:.0f} %, prefetches {:.0f} % of the step\n",
                    shareOf(explained.outBusy, explained.stepTime),
                    shareOf(explained.inBusy, explained.stepTime));
  if (explained.diskReadBusy + explained.diskWriteBusy > Nanoseconds(0)) {
    os << fmt::format("disk       writes busy {:.0f} %, reads {:.0f} % of the step\n",
                      shareOf(explained.diskWriteBusy, explained.stepTime),
                      shareOf(explained.diskReadBusy, explained.stepTime));
  }
  if (explained.hostBusy.value() > 0) {
    os << fmt::format("on host    updates keep the host busy {:.0f} % of the step\n",
                      shareOf(explained.hostBusy, explained.stepTime));
  }
  if (explained.ranksBusy.value() > 0) {
    os << fmt::format("ranks      collectives busy {:.0f} % of the step\n",
                      shareOf(explained.ranksBusy, explained.stepTime));
  }
  for (const StallPlace& stall : explained.stalls) {
    os << fmt::format("waits      {:>10}  before {}", formatDuration(stall.time),
                      graph.describeNode(stall.node));
    if (stall.storage.isValid()) {
      os << " for the " << movementOf(stall) << " of '"
         << ir::printable(nameOf(graph, stall.storage)) << "'";
    }
    if (stall.isByDisk) os << ", which waited for the disk";
    os << '\n';
  }
}

Json toJson(const LoadedPlan& plan, const PlanExplanation& explained, const PlanHelp& help,
            ir::CostSource costs) {
  const ir::Graph& graph = plan.graph;
  Json holders = Json::array();
  for (const ir::Infeasible::Holder& holder : explained.holders) {
    holders.push_back({{"storage", holder.storage}, {"bytes", holder.bytes.value()}});
  }
  Json stalls = Json::array();
  for (const StallPlace& stall : explained.stalls) {
    stalls.push_back({{"node", stall.node.raw()},
                      {"describe", graph.describeNode(stall.node)},
                      {"storage", nameOf(graph, stall.storage)},
                      {"direction", stall.isRanks ? "ranks"
                                    : stall.isOut ? "d2h"
                                                  : "h2d"},
                      {"by_disk", stall.isByDisk},
                      {"ns", stall.time.value()}});
  }
  const bool hasPeak = explained.peakNode.isValid();
  return {{"budget_bytes", plan.file.budget.value()},
          {"arena_peak_bytes", explained.arenaPeak.value()},
          {"costs", {{"source", ir::costSourceName(costs)}}},
          {"peak",
           {{"node", hasPeak ? graph.describeNode(explained.peakNode) : ""},
            {"bytes", explained.peakBytes.value()},
            {"holders", holders}}},
          {"step_ns", explained.stepTime.value()},
          {"waiting_ns", explained.waiting.value()},
          {"recompute_ns", explained.recomputeTime.value()},
          {"launch_wait_ns", explained.launchWaits.value()},
          {"busy_ns",
           {{"d2h", explained.outBusy.value()},
            {"h2d", explained.inBusy.value()},
            {"disk_read", explained.diskReadBusy.value()},
            {"disk_write", explained.diskWriteBusy.value()},
            {"host", explained.hostBusy.value()},
            {"collective", explained.ranksBusy.value()}}},
          {"stalls", stalls},
          {"helps", helpJson(help)}};
}

// --- one storage ---------------------------------------------------------------------------------

const char* wordsFor(const std::string& why) {
  if (why == "pinned") return "pinned by a person";
  if (why == "hidden") return "nothing waits for its copies";
  if (why == "waits") return "compute waits for its copies";
  if (why == "cheap") return "recomputing it costs less than copies";
  if (why == "busy") return "the links had no time for it";
  if (why == "only") return "nothing else was allowed";
  if (why == "fits") return "there was room";
  return "no reason is given";
}

std::string costOf(const GapStory& gap) {
  switch (gap.action) {
    case ir::GapAction::kRecompute:
      return "recompute " + formatDuration(gap.recomputeTime);
    case ir::GapAction::kKeep:
      return "copies would take " + formatDuration(gap.copyTime);
    case ir::GapAction::kDisk:
      return "copies to and from the host " + formatDuration(gap.copyTime);
    case ir::GapAction::kHost:
      break;
  }
  return "copies " + formatDuration(gap.copyTime);
}

void printStory(const ir::Graph& graph, const StorageStory& story, llvm::raw_ostream& os) {
  os << "'" << ir::printable(graph.storage(story.storage).name) << "', storage "
     << story.storage.raw() << ", " << ir::roleName(graph.storage(story.storage).role) << ", "
     << formatBytes(story.bytes);
  if (story.waiting.value() > 0)
    os << ", compute waits " << formatDuration(story.waiting) << " for it";
  os << '\n';
  if (story.gaps.empty()) os << "  is never unused between two uses: nothing to decide\n";
  for (const GapStory& gap : story.gaps) {
    os << fmt::format("  {:<9} from {} to {}{}, {} of node time\n", ir::gapActionName(gap.action),
                      graph.describeNode(gap.before), graph.describeNode(gap.after),
                      gap.nextStep ? " of the next step" : "", formatDuration(gap.away));
    os << fmt::format("            gap [{}, {}]: {}; {}\n", gap.begin, gap.end, wordsFor(gap.why),
                      costOf(gap));
  }
}

Json toJson(const ir::Graph& graph, const StorageStory& story) {
  Json gaps = Json::array();
  for (const GapStory& gap : story.gaps) {
    gaps.push_back({{"gap", {gap.begin, gap.end}},
                    {"before", graph.describeNode(gap.before)},
                    {"after", graph.describeNode(gap.after)},
                    {"next_step", gap.nextStep},
                    {"action", ir::gapActionName(gap.action)},
                    {"why", gap.why},
                    {"away_ns", gap.away.value()},
                    {"copy_ns", gap.copyTime.value()},
                    {"recompute_ns", gap.recomputeTime.value()}});
  }
  return {{"storage", graph.storage(story.storage).name},
          {"storage_id", story.storage.raw()},
          {"bytes", story.bytes.value()},
          {"waiting_ns", story.waiting.value()},
          {"gaps", gaps}};
}

ir::Error suggestName(ir::Error error, const ir::Graph& graph, const std::string& name) {
  ir::PlanError payload = ir::takePayload(std::move(error));
  std::vector<std::string> names;
  for (const ir::Storage& storage : graph.storages()) names.push_back(storage.name);
  const std::string near = ir::nearestName(name, names);
  if (!near.empty()) payload.note("did you mean '" + near + "'?");
  return ir::makeError(std::move(payload));
}

ir::Error checkPicture(const ExplainFlags& flags) {
  if (flags.svg.empty()) return ir::success();
  if (flags.svg == "-" || !flags.storage.empty()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         flags.svg == "-" ? "--svg: found '-', expected a file"
                                          : "--svg shows the whole plan, not a storage");
  }
  if (ir::Error error = checkIsNoInput(flags.svg, {flags.plan, flags.graph, flags.costs})) {
    return error;
  }
  return checkWritable(flags.svg, flags.replace);
}

ir::Error writePicture(const ExplainFlags& flags, const LoadedPlan& plan,
                       const planner::ExplainInput& input) {
  if (flags.svg.empty()) return ir::success();
  const planner::MemoryChart chart =
      planner::makeMemoryChart(input, plan.file.target, plan.file.budget);
  return writeWholeFile(flags.svg, flags.replace,
                        [&](llvm::raw_ostream& os) { planner::drawMemory(chart, os); });
}

VerbResult runExplain(const ExplainFlags& flags) {
  if (ir::Error error = checkPicture(flags)) return error;
  ir::Expected<LoadedPlan> plan = loadPlan(flags.plan, flags.graph);
  if (!plan) return plan.takeError();
  if (ir::Error error = checkIsNoInput(flags.svg, filesOfPlan(*plan))) return error;
  ir::Expected<ir::CostTable> table = readCosts(flags, *plan);
  if (!table) return table.takeError();
  if (ir::Error error = checkPlan(*plan, flags.costs)) return error;
  ir::Expected<ir::NodeCosts> costs =
      ir::resolveCosts(plan->graph, *table, plan->file.schedule.graphMode);
  if (!costs) {
    return notMeasured(costs.takeError(), stepPath(*plan),
                       flags.costs.empty() ? plansCostsPath(plan->file) : flags.costs);
  }
  const planner::ExplainInput input = {.graph = plan->graph,
                                       .schedule = plan->file.schedule,
                                       .costs = *costs,
                                       .alignBytes = plan->file.target.alignBytes};
  llvm::raw_ostream& os = answers();
  const std::string estimate = costsRemark(*table, *plan);
  if (!flags.storage.empty()) {
    ir::Expected<StorageStory> story = planner::explainStorage(input, flags.storage);
    if (!story) return suggestName(story.takeError(), plan->graph, flags.storage);
    remark(estimate, flags);
    if (flags.json) printJson(toJson(plan->graph, *story));
    if (!flags.json) printStory(plan->graph, *story, os);
    return kExitYes;
  }
  remark(estimate, flags);
  if (ir::Error error = writePicture(flags, *plan, input)) return error;
  const PlanExplanation explained = planner::explainPlan(input);
  ir::Expected<PlanHelp> help = findHelp(*plan, *table, explained, flags);
  if (!help) return help.takeError();
  if (flags.json) {
    printJson(toJson(*plan, explained, *help, table->source));
    return kExitYes;
  }
  printPeak(plan->graph, *plan, explained, os);
  if (table->source == ir::CostSource::kRoofline) {
    os << "costs      estimated " << ir::printable(planner::describeEstimate(plan->file.target))
       << '\n';
  }
  printStalls(plan->graph, explained, os);
  printHelp(*help, os);
  if (!flags.svg.empty()) os << "wrote      " << flags.svg << '\n';
  return kExitYes;
}

}  // namespace

Verb addExplainVerb(CLI::App& app) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* command = app.add_subcommand(
      "explain", "what holds a plan's peak, where it waits, why a storage is where it is");
  command->add_option("plan", flags->plan, "plan file")->required();
  command->add_option("storage", flags->storage, "a storage's name; default: the whole plan");
  command->add_option("--graph", flags->graph,
                      "the captured step, where the plan does not say or embed it");
  command->add_option("--costs", flags->costs,
                      "the costs it was planned with; default: where the plan says that they are, "
                      "else the profile's estimate");
  command->add_option("--svg", flags->svg,
                      "SVG file to write: device memory over the step, without and with the plan");
  addCommonFlags(*command, *flags, /*writesFiles=*/true);
  return {.command = command, .run = [flags] { return runExplain(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
