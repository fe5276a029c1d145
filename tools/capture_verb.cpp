// SPDX-License-Identifier: Apache-2.0
//
// stowage capture gpt2 --set batch=4 --device cuda --target h200 -o step.stow
// stowage capture train_step.pt2 -o step.stow
#include <fmt/format.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "ir/fingerprint.h"
#include "ir/printer.h"
#include "planner/roofline.h"
#include "tools/exit_code.h"
#include "tools/graph_summary.h"
#include "tools/model_step.h"
#include "tools/verbs.h"
#include "tools/whole_file.h"

namespace stowage::tools {

namespace {

struct CaptureFlags : CommonFlags {
  std::string source;
  std::vector<std::string> settings;
  std::string device;
  std::string target;
  std::string output;
  bool list = false;
};

ir::Expected<ir::Target> findTarget(const CaptureFlags& flags) {
  const std::string device =
      flags.device.empty() ? (flags.target.empty() ? "cpu" : "") : flags.device;
  const std::string name =
      !flags.target.empty() ? flags.target : (device == "cuda" ? "h200" : "cpu");
  ir::Expected<ir::Target> target = planner::findTargetProfile(name);
  if (!target) return target.takeError();
  if (!device.empty() && device != ir::deviceKindName(target->device)) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "--device " + device + " and --target " + name +
                             " do not go together: that target is a " +
                             ir::deviceKindName(target->device) + " device");
  }
  return target;
}

void printCatalogue(llvm::raw_ostream& os) {
  for (const ModelInfo& model : modelCatalogue()) {
    os << model.name << ": " << model.description << '\n';
    for (const SettingInfo& setting : model.settings) {
      os << fmt::format("  {:<16} {:<14} {}\n", setting.name, setting.value, setting.meaning);
    }
    for (const Preset& preset : model.presets) {
      os << fmt::format("  preset={:<16} {}\n", preset.name, preset.meaning);
    }
  }
}

VerbResult report(const CaptureFlags& flags, const ir::Graph& graph, double seconds) {
  const GraphSummary summary = summariseGraph(graph);
  if (flags.json) {
    nlohmann::ordered_json json = graphSummaryJson(graph, summary);
    json["capture_seconds"] = seconds;
    llvm::outs() << json.dump(2) << '\n';
    return kExitYes;
  }
  llvm::raw_ostream& os = flags.output == "-" ? llvm::errs() : llvm::outs();
  os << "captured   " << describeGraph(graph, summary) << fmt::format("  {:.2f} s\n", seconds);
  if (!flags.output.empty() && flags.output != "-") os << "wrote      " << flags.output << '\n';
  return kExitYes;
}

VerbResult runCapture(const CaptureFlags& flags) {
  if (flags.list) {
    printCatalogue(llvm::outs());
    return kExitYes;
  }
  if (flags.source.empty()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "nothing to capture: expected a model's name (see 'stowage capture "
                         "--list') or a .pt2 file");
  }
  if (!flags.output.empty()) {
    if (ir::Error error = checkWritable(flags.output, flags.replace)) return error;
  }
  ir::Expected<ir::Target> target = findTarget(flags);
  if (!target) return target.takeError();
  const auto begin = std::chrono::steady_clock::now();
  ir::Expected<std::unique_ptr<ModelStep>> step =
      captureModel({.model = flags.source, .settings = flags.settings}, {.target = *target});
  if (!step) return step.takeError();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!flags.output.empty()) {
    if (ir::Error error = writeWholeFile(flags.output, flags.replace, [&](llvm::raw_ostream& os) {
          ir::printGraph((*step)->graph, os);
        })) {
      return error;
    }
  }
  return report(flags, (*step)->graph, seconds.count());
}

}  // namespace

Verb addCaptureVerb(CLI::App& app) {
  auto flags = std::make_shared<CaptureFlags>();
  CLI::App* command =
      app.add_subcommand("capture", "trace a whole training step, without memory, into a graph");
  command->add_option("source", flags->source,
                      "an example model's name, or a training step exported as .pt2");
  command->add_option("--set", flags->settings, "a model's setting, key=value; may be repeated");
  command->add_option("--device", flags->device, "cpu or cuda; no GPU is needed")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command->add_option("--target", flags->target,
                      "target profile; it decides which kernels are chosen");
  command->add_option("-o,--output", flags->output, "file to write ('-': standard output)");
  command->add_flag("--list", flags->list, "list the example models and their settings");
  addCommonFlags(*command, *flags, /*writesFiles=*/true);
  return {.command = command, .run = [flags] { return runCapture(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
