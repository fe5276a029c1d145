// SPDX-License-Identifier: Apache-2.0
//
// stowage profile step.stow -o costs.json: measures every distinct op of a step on this machine,
// its temporaries, the links, a disk, and with --repeats whether ops repeat their bits.
#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "ir/graph/op_table.h"
#include "passes/planned_file.h"
#include "planner/files/cost_json.h"
#include "planner/report/plan_summary.h"
#include "runtime/calibrate/calibrate.h"
#include "runtime/calibrate/ranks_link.h"
#include "runtime/disk/disk_rates.h"
#include "runtime/torch/torch_version.h"
#include "tools/cli/budget_flag.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/printable_stream.h"
#include "tools/cli/progress.h"
#include "tools/files/load_files.h"
#include "tools/files/loaded_calls.h"
#include "tools/files/whole_file.h"
#include "tools/machine/machine_load.h"
#include "tools/machine/this_machine.h"
#include "tools/planning/planning_flags.h"
#include "tools/run/in_step_times.h"
#include "tools/run/measured_links.h"
#include "tools/run/rank_processes.h"
#include "tools/run/run_checks.h"
#include "tools/run/run_ranks.h"
#include "tools/verbs/verbs.h"

namespace stowage::tools {

namespace {

struct ProfileFlags : CommonFlags {
  std::string step;
  std::string output;
  int threads = 0;
  int64_t ranks = 0;
  int repeats = 0;
  std::string inSteps;
  std::string host;
  std::string disk;
  std::vector<std::string> known;
};

struct Measured {
  ir::CostTable costs;
  runtime::TimeSpread spread;
  size_t known = 0;     // rows of `costs` that were there before
  ir::LinkModel links;  // with nothing else running
  std::vector<runtime::UnrepeatedOp> unrepeated;
  std::optional<runtime::DiskRates> disk;
  std::optional<InStepTimes> inSteps;
  bool hasRanks = false;  // what lies between ranks was measured
};

/// What was measured before: here, by these libraries, in this mode.
ir::Expected<ir::CostTable> loadKnown(const ProfileFlags& flags, const ir::Target& target) {
  ir::CostTable known;
  if (flags.known.empty()) return known;
  ir::Expected<std::string> here = runtime::costsDeviceHere(target);
  if (!here) return here.takeError();
  for (const std::string& path : flags.known) {
    ir::Expected<planner::CostFile> file = loadCosts(path);
    if (!file) return file.takeError();
    const auto by = [](const std::string& torch) {
      return torch.empty() ? "" : " by torch " + torch;
    };
    const std::string found = "'" + file->table.device + "'" + by(file->torchVersion);
    const std::string expected = "'" + *here + "'" + by(runtime::torchVersion());
    if (file->table.source != ir::CostSource::kMeasured || found != expected) {
      std::string text = "measured on " + found;
      text += ", this is " + expected + ": leave it out, or profile its step here";
      return inInput(ir::makeError(ir::ErrorCode::kPlanMismatch, std::move(text)), path);
    }
    known.bySignature.insert(file->table.bySignature.begin(), file->table.bySignature.end());
    known.outside = std::max(known.outside, file->table.outside);
  }
  return known;
}

/// Adds the rows of `known` for ops of `graph` that `costs` lacks. Their number.
size_t takeKnown(const ir::CostTable& known, const ir::Graph& graph, ir::CostTable& costs) {
  size_t taken = 0;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto row = known.bySignature.find(ir::nodeSignature(graph, ir::NodeId(i)));
    if (row != known.bySignature.end() && costs.bySignature.insert(*row).second) ++taken;
  }
  return taken;
}

ir::Expected<ir::CostTable> measureOps(const ProfileFlags& flags, const ir::Graph& graph,
                                       const ir::Target& target, ir::CostTable known,
                                       Measured& measured) {
  Progress progress(!flags.quiet);
  return runtime::calibrate(graph, {.device = target.device,
                                    .intraOpThreads = target.intraOpThreads,
                                    .alignBytes = target.alignBytes,
                                    .deterministic = target.deterministic,
                                    .repeats = flags.repeats,
                                    .unrepeated = &measured.unrepeated,
                                    .known = std::move(known),
                                    .spread = &measured.spread,
                                    .report = [&](size_t done, size_t all) {
                                      progress.show("measuring ops", done, all);
                                    }});
}

ir::Expected<ir::LinkModel> measureLinks(const ir::Target& target,
                                         const std::optional<runtime::DiskRates>& disk) {
  ir::Expected<ir::LinkModel> links = runtime::measureLinks(target);
  if (links && disk) {
    links->diskRead = disk->read;
    links->diskWrite = disk->write;
    links->diskBothPermille = disk->bothPermille;
  }
  return links;
}

/// All of them at once, as in steps: each copies to and from one host.
ir::Expected<ir::LinkModel> measureLinksOfRanks(const ir::Target& target, const Measured& measured,
                                                const runtime::TrainingRanks* ranks) {
  if (ranks == nullptr) return measureLinks(target, measured.disk);
  if (ir::Error error = ranks->between.agree("measuring the links", 0)) return error;
  ir::Expected<ir::LinkModel> links = measureLinks(target, measured.disk);
  if (!links) return links.takeError();
  if (ir::Error error = runtime::measureRanksLink(target.device, *ranks, *links)) return error;
  return links;
}

/// `ranks`: this process is one of them; null: it measures alone.
ir::Expected<Measured> measure(const ProfileFlags& flags, const ir::Graph& graph,
                               const runtime::TrainingRanks* ranks) {
  ir::Expected<ir::Target> target = chooseTarget(graph, "", flags.threads);
  if (!target) return inInput(target.takeError(), flags.step);
  if (ir::Error error = checkMayRun(graph, flags.step)) return error;
  if (ir::Error error = openGpuFor(*target)) return error;
  remark(describeMemoryCount(*target), flags);
  Measured measured;
  if (!flags.disk.empty()) {  // first: it takes seconds, and may be refused
    ir::Expected<runtime::DiskRates> disk = runtime::measureDisk(flags.disk);
    if (!disk) return disk.takeError();
    measured.disk = *disk;
  }
  ir::Expected<ir::CostTable> known = loadKnown(flags, *target);
  if (!known) return known.takeError();
  ir::CostTable before = {.outside = known->outside};
  measured.known = takeKnown(*known, graph, before);
  ir::Expected<ir::CostTable> costs =
      measureOps(flags, graph, *target, std::move(before), measured);
  if (!costs) return ofStepFile(costs.takeError(), flags.step);
  const auto measureBlocks = [&](const ir::Graph& blocked) {
    ir::CostTable before = *costs;
    measured.known += takeKnown(*known, blocked, before);
    return measureOps(flags, blocked, *target, std::move(before), measured);
  };
  if (ir::Error error = passes::addRowBlockCosts(graph, *costs, measureBlocks)) {
    return ofStepFile(std::move(error), flags.step);
  }
  const std::string scatter = describeScatter(measured.spread.median, measured.spread.shortest);
  remark(scatter, flags);
  ir::Expected<ir::LinkModel> links = measureLinksOfRanks(*target, measured, ranks);
  if (!links) return links.takeError();
  measured.hasRanks = ranks != nullptr;
  measured.links = *links;
  costs->links = *links;
  measured.costs = std::move(*costs);
  if (flags.inSteps.empty()) return measured;
  ir::Expected<InStepTimes> times = measureInSteps({.stepFile = flags.step,
                                                    .graph = graph,
                                                    .target = *target,
                                                    .alone = measured.costs,
                                                    .budget = flags.inSteps,
                                                    .host = flags.host,
                                                    .flags = flags});
  if (!times) return times.takeError();
  measured.costs = times->costs;
  measured.inSteps = std::move(*times);
  return measured;
}

/// Plans may recompute the op, although it does not repeat its bits.
bool contradictsTable(const ir::Graph& graph, const runtime::UnrepeatedOp& op) {
  return ir::repeatsItsBits(ir::lookUpOp(graph.node(op.node).op), graph.provenance().deterministic);
}

void printRepeats(const ProfileFlags& flags, const Measured& measured, const ir::Graph& graph,
                  llvm::raw_ostream& os) {
  os << "repeats    " << measured.costs.bySignature.size() - measured.unrepeated.size()
     << " distinct ops gave the same bits " << flags.repeats << " times, "
     << measured.unrepeated.size() << " did not\n";
  for (const runtime::UnrepeatedOp& op : measured.unrepeated) {
    os << "           " << graph.describeNode(op.node) << ": " << op.different << " of "
       << flags.repeats - 1 << " differ"
       << (contradictsTable(graph, op) ? ", although plans may recompute it" : "") << '\n';
  }
}

/// The same step three times: predicted, run, predicted again.
void printInSteps(const InStepTimes& times, llvm::raw_ostream& os) {
  os << "in steps   within " << formatBytes(times.arena) << ": " << formatDuration(times.measured)
     << " a step; predicted from ops alone " << formatDuration(times.alone) << " ("
     << planner::formatExcess(times.alone, times.measured, /*sign=*/true)
     << "), with their times in steps " << formatDuration(times.inSteps) << " ("
     << planner::formatExcess(times.inSteps, times.measured, /*sign=*/true) << ")\n";
  if (times.costs.scalars > Nanoseconds(0)) {
    os << "           its rates and other numbers are worked out beside it, in "
       << formatDuration(times.costs.scalars) << '\n';
  }
}

nlohmann::ordered_json repeatsJson(const ProfileFlags& flags, const Measured& measured,
                                   const ir::Graph& graph) {
  nlohmann::ordered_json ops = nlohmann::ordered_json::array();
  for (const runtime::UnrepeatedOp& op : measured.unrepeated) {
    ops.push_back({{"op", graph.node(op.node).op},
                   {"node", op.node.index()},
                   {"different", op.different},
                   {"may_recompute", contradictsTable(graph, op)}});
  }
  return {{"runs", flags.repeats}, {"unrepeated", ops}};
}

/// Of one step's ops.
struct Sums {
  Nanoseconds work;
  Nanoseconds launch;
};

Sums sumTimes(const ir::Graph& graph, const ir::CostTable& table) {
  Sums sums;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto row = table.bySignature.find(ir::nodeSignature(graph, ir::NodeId(i)));
    if (row == table.bySignature.end()) continue;
    sums.work += row->second.work;
    sums.launch += row->second.launch;
  }
  return sums;
}

void printProfile(const ProfileFlags& flags, const Measured& measured, const ir::Graph& graph) {
  const bool toStdout = flags.output == "-";
  const Sums sums = sumTimes(graph, measured.costs);
  if (flags.json && !toStdout) {
    nlohmann::ordered_json json = {{"signatures", measured.costs.bySignature.size()},
                                   {"known", measured.known},
                                   {"compute_ns", sums.work.value()},
                                   {"launch_ns", sums.launch.value()}};
    if (measured.costs.outside) json["outside_bytes"] = measured.costs.outside->value();
    json["links"] = linksJson(measured.links, measured.disk.has_value(), measured.hasRanks);
    if (measured.inSteps) {
      const ir::LinkModel& inSteps = measured.costs.links;
      json["in_steps"] = {{"arena_bytes", measured.inSteps->arena.value()},
                          {"step_ns", measured.inSteps->measured.value()},
                          {"predicted_alone_ns", measured.inSteps->alone.value()},
                          {"predicted_ns", measured.inSteps->inSteps.value()},
                          {"scalars_ns", measured.costs.scalars.value()},
                          {"copy_launch_ns", inSteps.launch.value()},
                          {"d2h_bytes_per_s", inSteps.deviceToHost.bandwidth.value()},
                          {"h2d_bytes_per_s", inSteps.hostToDevice.bandwidth.value()}};
    }
    if (flags.repeats > 1) json["repeats"] = repeatsJson(flags, measured, graph);
    printJson(json);
    return;
  }
  // With the costs on stdout, what else there is to say goes where people still see it.
  llvm::raw_ostream& os = toStdout ? messages() : answers();
  if (!toStdout) {
    os << "measured   " << measured.costs.bySignature.size() - measured.known << " distinct ops";
    if (measured.known > 0) os << ", " << measured.known << " were known";
    os << "; one step's ops add up to " << formatDuration(sums.work);
    if (sums.launch > Nanoseconds(0)) {
      os << ", their launch overhead to " << formatDuration(sums.launch);
    }
    os << '\n';
  }
  printLinks({measured.links, measured.costs.links, measured.disk.has_value(), measured.hasRanks},
             os);
  if (measured.inSteps) printInSteps(*measured.inSteps, os);
  if (flags.repeats > 1) printRepeats(flags, measured, graph, os);
  if (!toStdout) os << "wrote      " << flags.output << '\n';
}

/// Before minutes of measuring.
ir::Error checkInStepSizes(const ProfileFlags& flags) {
  if (flags.inSteps.empty()) return ir::success();
  ir::Expected<Size> budget = parseSizeFlag(flags.inSteps);
  if (!budget) return budget.takeError();
  passes::PlanStepOptions options;
  return readHostLimit(flags.host, options);
}

VerbResult answerProfile(const ProfileFlags& flags, const Measured& measured,
                         const ir::Graph& graph) {
  const planner::CostFile file = {.stowageVersion = STOWAGE_VERSION,
                                  .torchVersion = runtime::torchVersion(),
                                  .table = measured.costs};
  std::string text;
  llvm::raw_string_ostream os(text);
  if (ir::Error error = planner::writeCosts(file, os)) return error;
  os.flush();
  if (ir::Error error = writeWholeFile(flags.output, flags.replace,
                                       [&](llvm::raw_ostream& out) { out << text; })) {
    return error;
  }
  printProfile(flags, measured, graph);
  const bool contradicts = llvm::any_of(measured.unrepeated, [&](const runtime::UnrepeatedOp& op) {
    return contradictsTable(graph, op);
  });
  return contradicts ? kExitNo : kExitYes;
}

/// Rank 0 speaks and writes; what others measure beside it is their own.
VerbResult profileAsRank(ProfileFlags flags, const ir::Graph& graph, RankMeeting& meeting) {
  if (ir::Error error = meeting.join()) return error;
  const bool speaks = meeting.ranks() == nullptr || meeting.ranks()->rank() == 0;
  if (!speaks) flags.quiet = true;
  ir::Expected<Measured> measured = measure(flags, graph, meeting.ranks());
  if (!measured) return measured.takeError();
  if (!speaks) return kExitYes;
  return answerProfile(flags, *measured, graph);
}

VerbResult runProfile(const ProfileFlags& flags) {
  std::vector<std::string> inputs = flags.known;
  inputs.push_back(flags.step);
  if (ir::Error error = checkIsNoInput(flags.output, inputs)) return error;
  if (ir::Error error = checkWritable(flags.output, flags.replace)) return error;
  if (ir::Error error = checkInStepSizes(flags)) return error;
  ir::Expected<ir::Graph> graph = loadGraphForRanks(flags.step, flags.ranks);
  if (!graph) return graph.takeError();
  if (ir::Error error = checkCapturedHere(flags.step, *graph)) return error;
  if (ir::Error error = checkOpMemory(flags.step, *graph)) return error;
  ir::Expected<std::optional<runtime::LaunchedRank>> rank = findRank(graph->ranks());
  if (!rank) return rank.takeError();
  if (!*rank && graph->ranks() > 1) {
    ir::Expected<ir::Target> target = chooseTarget(*graph, "", flags.threads);
    if (!target) return inInput(target.takeError(), flags.step);
    ir::Expected<bool> hasAll = hasDevices(target->device, graph->ranks());
    if (!hasAll) return hasAll.takeError();
    if (*hasAll) return runRanks(graph->ranks());
    remark("this host has fewer devices than ranks: the link between them is the profile's", flags);
  }
  seeOwnGpu(*rank);
  RankMeeting meeting(*rank);
  return meeting.end(profileAsRank(flags, *graph, meeting));
}

}  // namespace

Verb addProfileVerb(CLI::App& app) {
  auto flags = std::make_shared<ProfileFlags>();
  CLI::App* command =
      app.add_subcommand("profile", "measure a step's ops and the links on this machine");
  command->add_option("step", flags->step, "captured step (.stow)")->required();
  command->add_option("-o,--output", flags->output, "costs file to write ('-': standard output)")
      ->required();
  command
      ->add_option("--threads", flags->threads,
                   "threads inside one op; default: the machine's cores")
      ->check(CLI::Range(1, 1024));
  addRanksFlag(*command, flags->ranks);
  command
      ->add_option("--in-steps", flags->inSteps,
                   "also run a few steps by a plan for this budget (as in 'plan --budget') and use "
                   "the times that ops take there")
      ->excludes("--ranks");
  command
      ->add_option("--host", flags->host,
                   "host memory that the plan of --in-steps may use; default: no limit")
      ->needs("--in-steps");
  command->add_option("--disk", flags->disk,
                      "also measure the disk that holds this folder, with a file of 1 GiB that is "
                      "removed: plans that use a disk count on these rates");
  CLI::Option* known = command->add_option(
      "--known", flags->known,
      "costs files from this machine: ops in them are not measured again; may be of "
      "another step");
  command
      ->add_option("--repeats", flags->repeats,
                   "run each op N times on identical inputs and report ops whose results differ; "
                   "exit code 1 if a plan may recompute one of them")
      ->check(CLI::Range(2, 1000))
      ->excludes(known);
  addCommonFlags(*command, *flags, /*writesFiles=*/true);
  return {.command = command, .run = [flags] { return runProfile(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
