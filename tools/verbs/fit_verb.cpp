// SPDX-License-Identifier: Apache-2.0
//
// stowage fit gpt2 --budget 24GiB: the largest batch, or the longest sequence, of an example model
// that fits, the time per token of each size tried, and what larger budgets would bring.
#include <fmt/format.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "passes/plan_step.h"
#include "planner/targets/roofline.h"
#include "tools/cli/budget_flag.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/printable_stream.h"
#include "tools/cli/progress.h"
#include "tools/files/load_files.h"
#include "tools/planning/fit_search.h"
#include "tools/planning/planning_flags.h"
#include "tools/training/model_step.h"
#include "tools/verbs/verbs.h"

namespace stowage::tools {

namespace {

using Json = nlohmann::ordered_json;

/// Larger budgets that the answer is also about, in percent of the one asked for.
constexpr std::array<int64_t, 2> kLarger = {125, 150};

struct FitFlags : CommonFlags {
  std::string model;
  std::string budget;
  std::string vary = "batch";
  std::vector<std::string> settings;
  std::string device;
  std::string target;
  std::string host;
  std::string disk;
  int64_t most = 4096;
  int64_t multipleOf = 0;
  bool nondeterministic = false;
};

/// What all sizes have in common.
struct Fitting {
  const FitFlags& flags;
  FitSizes sizes;
  ir::Target target;
  passes::PlanStepOptions options;
  Bytes budget;           // `outside` included
  Bytes outside;          // of a budget that holds it
  std::string unit = "";  // "token", or "example" for images
};

ir::Error badFlag(const std::string& message) {
  return ir::makeError(ir::ErrorCode::kInvalidArgument, message);
}

/// Sizes that a model cannot have end the search with an error of the model.
ir::Error suggestMost(ir::Error error, int64_t size) {
  ir::PlanError found = ir::takePayload(std::move(error));
  if (found.code() == ir::ErrorCode::kInvalidArgument && size > 1) {
    found.note("--most limits the sizes that are tried");
  }
  return ir::makeError(std::move(found));
}

/// As in the Python package: of images and the like, examples are counted.
bool countsTokens(const std::vector<int64_t>& sizes) {
  return sizes.size() == 2 || sizes.size() == 3;
}

int64_t countTokens(const std::vector<int64_t>& sizes) {
  return countsTokens(sizes) ? sizes[0] * sizes[1] : sizes.front();
}

ir::Expected<std::unique_ptr<ModelStep>> captureSize(const Fitting& fitting, int64_t size) {
  Recipe recipe{.model = fitting.flags.model, .settings = fitting.flags.settings};
  recipe.settings.push_back(fitting.flags.vary + "=" + std::to_string(size));
  ir::Expected<std::unique_ptr<ModelStep>> step = captureModel(recipe, {.target = fitting.target});
  if (!step) return suggestMost(step.takeError(), size);
  return step;
}

ir::Expected<FitAnswer> planSize(Fitting& fitting, int64_t size, Bytes budget) {
  const Waiting waiting(
      !fitting.flags.quiet,
      fmt::format("{} {}: planning for {}", fitting.flags.vary, size, formatBytes(budget)));
  ir::Expected<std::unique_ptr<ModelStep>> step = captureSize(fitting, size);
  if (!step) return step.takeError();
  ir::Expected<ir::Target> target = chooseTarget((*step)->graph, "", 0);
  if (!target) return target.takeError();
  passes::PlanStepOptions options = fitting.options;
  const int64_t arena = (budget - fitting.outside).value();
  options.budget = Bytes(arena / target->alignBytes * target->alignBytes);
  const ir::CostTable costs = planner::rooflineCosts((*step)->graph, *target);
  const std::vector<int64_t>& sizes = (*step)->training.inputs.front().sizes;
  fitting.unit = countsTokens(sizes) ? "token" : "example";
  ir::Expected<passes::PlannedStep> planned =
      passes::planStep((*step)->graph, *target, costs, options);
  if (planned) {
    const ir::Prediction& claim = planned->schedule.predicted;
    return FitAnswer(FitRow{.size = size,
                            .tokens = countTokens(sizes),
                            .peak = claim.peakBytes,
                            .stepTime = claim.stepTime});
  }
  const ir::PlanError error = ir::takePayload(planned.takeError());
  if (!error.infeasible()) return ir::makeError(error);
  const bool isDevice = error.infeasible()->space == ir::spaceName(ir::Space::kDevice);
  return FitAnswer(FitLack{
      .isDevice = isDevice,
      .smallest = error.infeasible()->smallestBudget + (isDevice ? fitting.outside : Bytes(0))});
}

/// What the model's table and its settings allow. A model or setting that is not there: any size,
/// whose capture says so.
ir::Expected<FitSizes> readSizes(const FitFlags& flags) {
  FitSizes sizes = {.most = flags.most, .multipleOf = std::max<int64_t>(flags.multipleOf, 1)};
  for (const ModelInfo& model : modelCatalogue()) {
    if (model.name != flags.model) continue;
    ir::Expected<Settings> settings = parseSettings(model, flags.settings);
    if (!settings) return settings.takeError();
    for (const SettingInfo& info : model.settings) {
      if (info.name == flags.vary) sizes.least = static_cast<int64_t>(std::max(info.least, 1.0));
      const bool cuts = info.name == "micro_batches" && flags.vary == "batch";
      if (cuts && flags.multipleOf == 0) sizes.multipleOf = settings->integer(info.name);
    }
  }
  if (sizes.first() <= sizes.last()) return sizes;
  return badFlag("--most: found " + std::to_string(flags.most) + ", expected at least " +
                 std::to_string(sizes.first()) + ", the smallest " + flags.vary +
                 " of these settings");
}

ir::Expected<Fitting> readFlags(const FitFlags& flags) {
  for (const std::string& setting : flags.settings) {
    if (setting.rfind(flags.vary + "=", 0) == 0) {
      return badFlag("--set " + setting + ": --vary " + flags.vary + " sets that one");
    }
  }
  ir::Expected<Size> size = parseSizeFlag(flags.budget);
  if (!size) return size.takeError();
  if (size->of == Size::Of::kPeak) {
    return badFlag("--budget: found a share of the unplanned peak, which grows with the " +
                   flags.vary + ", expected bytes such as 24GiB");
  }
  ir::Expected<ir::Target> target =
      findCaptureTarget(flags.device, flags.target, !flags.nondeterministic);
  if (!target) return target.takeError();
  PlanningInputs inputs;
  inputs.target = *target;
  ir::Expected<Bytes> arena = resolveBudget(*size, inputs);
  if (!arena) return arena.takeError();
  Fitting fitting{
      .flags = flags, .sizes = {}, .target = std::move(*target), .options = {}, .budget = *arena};
  if (size->withOutside) fitting.outside = fitting.target.outside;
  fitting.budget = *arena + fitting.outside;
  if (ir::Error error = readHostLimit(flags.host, fitting.options)) return error;
  if (ir::Error error = readDiskLimit(flags.disk, fitting.options)) return error;
  ir::Expected<FitSizes> sizes = readSizes(flags);
  if (!sizes) return sizes.takeError();
  fitting.sizes = *sizes;
  return fitting;
}

/// What the search found.
struct Answer {
  int64_t largest = 0;
  std::vector<FitRow> rows;
  std::vector<std::pair<Bytes, std::optional<FitRow>>> larger;  // by budget
  int64_t next = 0;                                             // the size that follows
  std::optional<FitLack> lack;                                  // of it
};

ir::Expected<Answer> search(Fitting& fitting) {
  FitSearch search([&](int64_t size, Bytes budget) { return planSize(fitting, size, budget); },
                   fitting.sizes);
  Answer answer;
  ir::Expected<int64_t> largest = search.find(fitting.budget);
  if (!largest) return largest.takeError();
  answer.largest = *largest;
  answer.rows = search.rows(fitting.budget);
  answer.next = search.sizeAfter(*largest);
  answer.lack = search.lackOf(answer.next, fitting.budget);
  for (const int64_t percent : kLarger) {
    const Bytes budget(fitting.budget.value() * percent / 100);
    ir::Expected<std::optional<FitRow>> row = search.findRow(budget);
    if (!row) return row.takeError();
    answer.larger.emplace_back(budget, *row);
  }
  return answer;
}

std::string line(const std::string& budget, const std::string& size, const std::string& peak,
                 const std::string& step, const std::string& each) {
  return fmt::format("{:>12}{:>14}{:>14}{:>14}{:>14}\n", budget, size, peak, step, each);
}

void printRow(Bytes budget, const FitRow& row, llvm::raw_ostream& os) {
  os << line(formatBytes(budget), std::to_string(row.size), formatBytes(row.peak),
             formatDuration(row.stepTime),
             formatDuration(Nanoseconds(std::llround(row.nsPerToken()))));
}

void print(const Fitting& fitting, const Answer& answer, llvm::raw_ostream& os) {
  const std::string& vary = fitting.flags.vary;
  os << line("budget", vary, "peak", "step", "per " + fitting.unit);
  for (const FitRow& row : answer.rows) printRow(fitting.budget, row, os);
  for (const auto& [budget, row] : answer.larger) {
    if (row) printRow(budget, *row, os);
    if (!row) os << fmt::format("{:>12}{:>14}\n", formatBytes(budget), "nothing fits");
  }
  if (answer.largest > 0) {
    os << "largest " << vary << " that fits in " << formatBytes(fitting.budget) << ": "
       << answer.largest
       << (answer.largest == fitting.sizes.last() ? ", the most that was tried\n" : "\n");
  } else {
    os << "nothing fits in " << formatBytes(fitting.budget) << '\n';
  }
  if (!answer.lack) return;
  os << answer.next << " would take " << formatBytes(answer.lack->smallest)
     << (answer.lack->isDevice ? "\n" : " of host memory\n");
}

Json rowJson(const FitRow& row) {
  return {{"size", row.size},
          {"tokens", row.tokens},
          {"peak_bytes", row.peak.value()},
          {"step_ns", row.stepTime.value()},
          {"ns_per_token", row.nsPerToken()}};
}

Json toJson(const Fitting& fitting, const Answer& answer) {
  Json rows = Json::array();
  for (const FitRow& row : answer.rows) rows.push_back(rowJson(row));
  Json larger = Json::array();
  for (const auto& [budget, row] : answer.larger) {
    Json one = row ? rowJson(*row) : Json{{"size", 0}};
    one["budget_bytes"] = budget.value();
    larger.push_back(std::move(one));
  }
  Json json = {{"model", fitting.flags.model},
               {"target", fitting.target.profile},
               {"vary", fitting.flags.vary},
               {"budget_bytes", fitting.budget.value()},
               {"largest", answer.largest},
               {"unit", fitting.unit},
               {"rows", rows},
               {"larger", larger}};
  if (fitting.outside.value() > 0) json["outside_bytes"] = fitting.outside.value();
  if (answer.lack) {
    json[answer.lack->isDevice ? "next_budget_bytes" : "next_host_bytes"] =
        answer.lack->smallest.value();
  }
  return json;
}

VerbResult runFit(const FitFlags& flags) {
  ir::Expected<Fitting> fitting = readFlags(flags);
  if (!fitting) return fitting.takeError();
  ir::Expected<Answer> answer = search(*fitting);
  if (!answer) return answer.takeError();
  if (flags.json) printJson(toJson(*fitting, *answer));
  if (!flags.json) print(*fitting, *answer, answers());
  remark("times are estimates " + planner::describeEstimate(fitting->target), flags);
  return answer->largest > 0 ? kExitYes : kExitNo;
}

}  // namespace

Verb addFitVerb(CLI::App& app) {
  auto flags = std::make_shared<FitFlags>();
  CLI::App* command =
      app.add_subcommand("fit", "the largest batch or sequence of a model that fits a budget");
  command->add_option("model", flags->model, "an example model's name ('stowage capture --list')")
      ->required();
  command
      ->add_option("--budget", flags->budget,
                   "bytes of the device arena, e.g. 24GiB; for GPU targets also 80% of the device, "
                   "and device:24GiB for arena, context, kernels and libraries together")
      ->required();
  command->add_option("--vary", flags->vary, "the setting to enlarge: batch or sequence")
      ->check(CLI::IsMember({"batch", "sequence"}))
      ->capture_default_str();
  command->add_option("--set", flags->settings, "a model's setting, key=value; may be repeated");
  command->add_option("--most", flags->most, "the largest size that is tried")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--multiple-of", flags->multipleOf,
                   "try only multiples of this; default: the micro-batches for a batch, else 1")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--host", flags->host,
                      "most host memory for offloaded tensors, e.g. 96GiB; default: no limit");
  command->add_option(
      "--disk", flags->disk,
      "most bytes on disk for what --host has no room for, e.g. 500GiB; default: none");
  command->add_option("--device", flags->device, "cpu or cuda; no GPU is needed")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command->add_option("--target", flags->target, "target profile; no GPU is needed");
  command->add_flag("--nondeterministic", flags->nondeterministic,
                    "with libtorch's default kernels, not those of its deterministic mode");
  addCommonFlags(*command, *flags, /*writesFiles=*/false);
  return {.command = command, .run = [flags] { return runFit(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
