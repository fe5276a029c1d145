// SPDX-License-Identifier: Apache-2.0
//
// stowage capture gpt2 --set batch=4 --device cuda --target h200 -o step.stow
// stowage capture train_step.pt2 -o step.stow
#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "ir/base/affix.h"
#include "ir/base/printable.h"
#include "ir/schedule/fingerprint.h"
#include "runtime/capture/pt2/pt2_import.h"
#include "tools/cli/budget_flag.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/printable_stream.h"
#include "tools/cli/progress.h"
#include "tools/files/load_files.h"
#include "tools/files/step_file.h"
#include "tools/files/whole_file.h"
#include "tools/planning/graph_summary.h"
#include "tools/training/model_step.h"
#include "tools/verbs/verbs.h"

namespace stowage::tools {

namespace {

struct CaptureFlags : CommonFlags {
  std::string source;
  std::vector<std::string> settings;
  std::string names;
  std::string bucket;
  std::string device;
  std::string target;
  std::string output;
  bool nondeterministic = false;
  bool list = false;
};

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

nlohmann::ordered_json catalogueJson() {
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (const ModelInfo& model : modelCatalogue()) {
    nlohmann::ordered_json settings = nlohmann::ordered_json::array();
    for (const SettingInfo& setting : model.settings) {
      settings.push_back(
          {{"name", setting.name}, {"default", setting.value}, {"meaning", setting.meaning}});
      if (!setting.choices.empty()) settings.back()["choices"] = setting.choices;
    }
    nlohmann::ordered_json presets = nlohmann::ordered_json::array();
    for (const Preset& preset : model.presets) {
      presets.push_back({{"name", preset.name}, {"meaning", preset.meaning}});
    }
    models.push_back({{"name", model.name},
                      {"description", model.description},
                      {"settings", settings},
                      {"presets", presets}});
  }
  return {{"models", models}};
}

/// Equal host numbers of an imported step's optimizer, in one row.
struct FrozenNumber {
  std::string op;
  std::string name;
  double value = 0;
  int count = 0;
};

std::vector<FrozenNumber> countFrozen(const runtime::ImportedStep& step) {
  std::vector<FrozenNumber> rows;
  for (const runtime::FrozenScalar& scalar : step.frozenScalars) {
    const std::string& op = step.graph.node(scalar.node).op;
    const auto same = [&](const FrozenNumber& row) {
      return row.op == op && row.name == scalar.name && row.value == scalar.value;
    };
    const auto found = llvm::find_if(rows, same);
    if (found == rows.end()) {
      rows.push_back({.op = op, .name = scalar.name, .value = scalar.value, .count = 1});
    } else {
      ++found->count;
    }
  }
  return rows;
}

/// --bucket: how many bytes of parameters one optimizer op works on.
ir::Expected<Bytes> readBucket(const CaptureFlags& flags) {
  if (flags.bucket.empty()) return passes::NormaliseOptions().bucketBytes;
  ir::Expected<Size> size = parseSizeFlag(flags.bucket);
  if (!size) return size.takeError();
  if (size->of != Size::Of::kAbsolute || size->bytes.value() <= 0) {
    return ir::makeError(
        ir::ErrorCode::kInvalidArgument,
        "--bucket: expected an absolute size like 8MiB, found '" + flags.bucket + "'");
  }
  return size->bytes;
}

/// What a captured step is for this verb, wherever it came from.
struct Captured {
  ir::Graph graph;
  // Of an archive only.
  bool imported = false;
  std::vector<std::string> learningRates;  // names of inputs
  std::vector<FrozenNumber> frozen;
};

/// The graph with buckets of that size, which its recipe then says.
ir::Expected<ir::Graph> normaliseImported(const ir::Graph& imported, Bytes bucketBytes) {
  ir::Expected<ir::Graph> graph = normaliseStep(imported, bucketBytes);
  if (!graph) return graph.takeError();
  ir::Expected<Recipe> recipe = parseRecipe(graph->provenance().recipe);
  if (!recipe) return recipe.takeError();
  recipe->bucketBytes = bucketBytes;
  ir::GraphBuilder builder(*graph);
  builder.provenance().recipe = recipe->text();
  for (const ir::Node& node : graph->nodes()) builder.addNode(node);
  return std::move(builder).finish();
}

ir::Expected<Captured> importArchive(const CaptureFlags& flags, const ir::Target& target,
                                     Bytes bucketBytes) {
  ir::Expected<runtime::ImportedStep> step =
      runtime::importTrainingStep(flags.source, target, {.sideFile = flags.names});
  if (!step) return step.takeError();
  ir::Expected<ir::Graph> graph = normaliseImported(step->graph, bucketBytes);
  if (!graph) return graph.takeError();
  Captured captured{.graph = std::move(*graph), .imported = true, .frozen = countFrozen(*step)};
  for (const ir::ValueId rate : step->learningRates) {
    captured.learningRates.push_back(step->graph.storage(step->graph.value(rate).storage).name);
  }
  return captured;
}

bool isModel(const std::string& name) {
  return llvm::any_of(modelCatalogue(), [&](const ModelInfo& model) { return model.name == name; });
}

ir::Expected<Captured> capture(const CaptureFlags& flags, const ir::Target& target) {
  ir::Expected<Bytes> bucket = readBucket(flags);
  if (!bucket) return bucket.takeError();
  if (ir::endsWith(flags.source, ".pt2")) {
    if (flags.settings.empty()) return importArchive(flags, target, *bucket);
    return ir::makeError(
        ir::ErrorCode::kInvalidArgument,
        "--set goes with an example model; '" + flags.source + "' is as it was exported");
  }
  if (llvm::sys::fs::exists(flags.source) && !isModel(flags.source)) {
    return ir::makeError(
        ir::PlanError(ir::ErrorCode::kParse,
                      ir::endsWith(flags.source, ".stow")
                          ? "is a captured step already: plan, profile and sweep take it"
                          : "expected a training step exported as .pt2, or an example model's name")
            .at({.file = flags.source}));
  }
  if (!flags.names.empty()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "--names goes with a .pt2 file, not with model '" + flags.source + "'");
  }
  ir::Expected<std::unique_ptr<ModelStep>> step =
      captureModel({.model = flags.source, .settings = flags.settings, .bucketBytes = *bucket},
                   {.target = target});
  if (!step) return step.takeError();
  return Captured{.graph = std::move((*step)->graph)};
}

ir::Expected<Captured> captureWaiting(const CaptureFlags& flags, const ir::Target& target) {
  const Waiting waiting(!flags.quiet, "capturing " + flags.source);
  return capture(flags, target);
}

/// "lr given each step; frozen as traced: beta1 0.9, beta2 0.95 (2 times)"
void printNumbers(const Captured& captured, llvm::raw_ostream& os) {
  os << "numbers    ";
  for (const std::string& rate : captured.learningRates) {
    os << ir::printable(rate) << " given each step; ";
  }
  os << "frozen as traced: ";
  if (captured.frozen.empty()) os << "none";
  const char* separator = "";
  for (const FrozenNumber& number : captured.frozen) {
    os << separator << ir::printable(number.name) << ' ' << fmt::format("{}", number.value);
    if (number.count > 1) os << " (" << number.count << " times)";
    separator = ", ";
  }
  os << '\n';
}

nlohmann::ordered_json frozenJson(const Captured& captured) {
  nlohmann::ordered_json frozen = nlohmann::ordered_json::array();
  for (const FrozenNumber& number : captured.frozen) {
    frozen.push_back({{"op", number.op},
                      {"name", number.name},
                      {"value", number.value},
                      {"count", number.count}});
  }
  return frozen;
}

VerbResult report(const CaptureFlags& flags, const Captured& captured, double seconds) {
  const ir::Graph& graph = captured.graph;
  const GraphSummary summary = summariseGraph(graph);
  if (flags.json) {
    nlohmann::ordered_json json = graphSummaryJson(graph, summary);
    json["capture_seconds"] = seconds;
    if (captured.imported) {
      json["learning_rates"] = captured.learningRates;
      json["frozen"] = frozenJson(captured);
    }
    printJson(json);
    return kExitYes;
  }
  llvm::raw_ostream& os = flags.output == "-" ? messages() : answers();
  os << "captured   " << describeGraph(graph, summary) << fmt::format("  {:.2f} s\n", seconds);
  if (captured.imported) printNumbers(captured, os);
  if (!flags.output.empty() && flags.output != "-") os << "wrote      " << flags.output << '\n';
  return kExitYes;
}

ir::Error checkOutput(const CaptureFlags& flags) {
  if (flags.output.empty()) return ir::success();
  llvm::SmallString<256> beside(flags.source);
  llvm::sys::path::replace_extension(beside, ".json");
  const bool isArchive = ir::endsWith(flags.source, ".pt2");
  const std::string names = isArchive && flags.names.empty() ? beside.str().str() : flags.names;
  if (ir::Error error = checkIsNoInput(flags.output, {flags.source, names})) return error;
  return checkWritable(flags.output, flags.replace);
}

VerbResult runCapture(const CaptureFlags& flags) {
  if (flags.list) {
    if (flags.json) printJson(catalogueJson());
    if (!flags.json) printCatalogue(answers());
    return kExitYes;
  }
  if (flags.source.empty()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "nothing to capture: expected a model's name (see 'stowage capture "
                         "--list') or a .pt2 file");
  }
  if (ir::Error error = checkOutput(flags)) return error;
  ir::Expected<ir::Target> target =
      findCaptureTarget(flags.device, flags.target, !flags.nondeterministic);
  if (!target) return target.takeError();
  const auto begin = std::chrono::steady_clock::now();
  ir::Expected<Captured> captured = captureWaiting(flags, *target);
  if (!captured) return captured.takeError();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!flags.output.empty()) {
    if (ir::Error error = writeWholeFile(flags.output, flags.replace, [&](llvm::raw_ostream& os) {
          writeStepFile(captured->graph, os);
        })) {
      return error;
    }
  }
  return report(flags, *captured, seconds.count());
}

}  // namespace

Verb addCaptureVerb(CLI::App& app) {
  auto flags = std::make_shared<CaptureFlags>();
  CLI::App* command =
      app.add_subcommand("capture", "trace a whole training step, without memory, into a graph");
  command->add_option("source", flags->source,
                      "an example model's name, or a training step exported as .pt2");
  command->add_option("--set", flags->settings, "a model's setting, key=value; may be repeated");
  command->add_option("--names", flags->names,
                      "what the inputs of a .pt2 file are; default: the .json beside it, if any");
  command->add_option("--bucket", flags->bucket,
                      "bytes of parameters that one optimizer op works on, e.g. 4MiB; smaller ones "
                      "let a step fit smaller budgets; default: 64MiB");
  command->add_option("--device", flags->device, "cpu or cuda; no GPU is needed")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command->add_option("--target", flags->target,
                      "target profile; it decides which kernels are chosen");
  command->add_flag("--nondeterministic", flags->nondeterministic,
                    "use libtorch's default kernels, not those of its deterministic mode: faster, "
                    "but results vary from run to run");
  command->add_option("-o,--output", flags->output, "file to write ('-': standard output)");
  command->add_flag("--list", flags->list, "list the example models and their settings");
  addCommonFlags(*command, *flags, /*writesFiles=*/true);
  return {.command = command, .run = [flags] { return runCapture(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
