// SPDX-License-Identifier: Apache-2.0
//
// stowage profile step.stow -o costs.json: measures every distinct op of a step on this machine,
// its temporaries, and the links.
#include <fmt/format.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "planner/cost_json.h"
#include "runtime/calibrate.h"
#include "runtime/torch_version.h"
#include "tools/exit_code.h"
#include "tools/load_files.h"
#include "tools/machine_load.h"
#include "tools/progress.h"
#include "tools/run_checks.h"
#include "tools/this_machine.h"
#include "tools/verbs.h"
#include "tools/whole_file.h"

namespace stowage::tools {

namespace {

struct ProfileFlags : CommonFlags {
  std::string step;
  std::string output;
  int threads = 0;
};

ir::Expected<ir::CostTable> measureOps(const ProfileFlags& flags, const ir::Graph& graph,
                                       const ir::Target& target, runtime::TimeSpread& spread) {
  Progress progress(!flags.quiet);
  return runtime::calibrate(graph, {.device = target.device,
                                    .intraOpThreads = target.intraOpThreads,
                                    .alignBytes = target.alignBytes,
                                    .deterministic = target.deterministic,
                                    .known = {},
                                    .spread = &spread,
                                    .report = [&](size_t done, size_t all) {
                                      progress.show("measuring ops", done, all);
                                    }});
}

ir::Expected<ir::CostTable> measure(const ProfileFlags& flags, const ir::Graph& graph) {
  ir::Expected<ir::Target> target = chooseTarget(graph, "", flags.threads);
  if (!target) return target.takeError();
  if (ir::Error error = openGpuFor(*target)) return error;
  runtime::TimeSpread spread;
  ir::Expected<ir::CostTable> costs = measureOps(flags, graph, *target, spread);
  if (!costs) return costs.takeError();
  const std::string scatter = describeScatter(spread.median, spread.shortest);
  if (!scatter.empty()) remark(scatter, flags);
  ir::Expected<ir::LinkModel> links = runtime::measureLinks(target->device);
  if (!links) return links.takeError();
  costs->links = *links;
  return costs;
}

Nanoseconds sumOfTimes(const ir::Graph& graph, const ir::CostTable& table) {
  Nanoseconds sum;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto row = table.bySignature.find(ir::nodeSignature(graph, ir::NodeId(i)));
    if (row != table.bySignature.end()) sum += row->second.time;
  }
  return sum;
}

VerbResult runProfile(const ProfileFlags& flags) {
  if (ir::Error error = checkIsNoInput(flags.output, flags.step)) return error;
  if (ir::Error error = checkWritable(flags.output, flags.replace)) return error;
  ir::Expected<ir::Graph> graph = loadGraph(flags.step);
  if (!graph) return graph.takeError();
  if (ir::Error error = checkOpMemory(flags.step, *graph)) return error;
  ir::Expected<ir::CostTable> costs = measure(flags, *graph);
  if (!costs) return costs.takeError();
  const planner::CostFile file = {
      .stowageVersion = STOWAGE_VERSION, .torchVersion = runtime::torchVersion(), .table = *costs};
  std::string text;
  llvm::raw_string_ostream os(text);
  if (ir::Error error = planner::writeCosts(file, os)) return error;
  os.flush();
  if (ir::Error error = writeWholeFile(flags.output, flags.replace,
                                       [&](llvm::raw_ostream& out) { out << text; })) {
    return error;
  }
  if (flags.output == "-") return kExitYes;
  const Nanoseconds sum = sumOfTimes(*graph, *costs);
  if (flags.json) {
    const nlohmann::ordered_json json = {{"signatures", costs->bySignature.size()},
                                         {"compute_ns", sum.value()}};
    llvm::outs() << json.dump(2) << '\n';
  } else {
    llvm::outs() << "measured   " << costs->bySignature.size()
                 << " distinct ops; one step's ops add up to " << formatDuration(sum)
                 << "\nwrote      " << flags.output << '\n';
  }
  return kExitYes;
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
  addCommonFlags(*command, *flags, /*writesFiles=*/true);
  return {.command = command, .run = [flags] { return runProfile(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
