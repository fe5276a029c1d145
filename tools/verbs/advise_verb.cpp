// SPDX-License-Identifier: Apache-2.0
//
// stowage advise step.stow --budget 24GiB: what each choice costs on this machine (checkpointing,
// offload, updates on the host, all of it), in one table, and which one is the fastest that fits.
#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "planner/report/plan_summary.h"
#include "planner/targets/roofline.h"
#include "tools/cli/budget_flag.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/number_flag.h"
#include "tools/cli/printable_stream.h"
#include "tools/cli/progress.h"
#include "tools/planning/advice.h"
#include "tools/planning/planning_flags.h"
#include "tools/verbs/verbs.h"

namespace stowage::tools {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostBudgets = 4;  // that a screen of 100 columns shows

struct AdviseFlags : PlanningFlags {
  std::string budgets = "100%peak,75%peak,50%peak,35%peak";
  double timeLimit = 0;  // seconds; 0: none
};

/// A column of the table.
struct AskedBudget {
  std::string asked;  // as on the command line
  Bytes arena;
  Bytes outside;  // what lies beside the arena, where the budget asked for holds it
  Bytes whole() const { return arena + outside; }
};

struct Advice {
  const PlanningInputs& inputs;
  std::vector<AskedBudget> budgets;
  std::vector<ChoiceAnswer> answers;

  const ChoiceAnswer* fastest(size_t budget, bool hostKernels) const {
    return findFastest(answers, budget, hostKernels);
  }
  /// Beside the arena, where all budgets hold it.
  Bytes outside() const {
    const bool isAsked =
        llvm::all_of(budgets, [](const AskedBudget& budget) { return budget.outside > Bytes(0); });
    return isAsked ? inputs.target.outside : Bytes(0);
  }
  /// The smallest budget in which something fits; none where nothing does.
  std::optional<size_t> tightest() const {
    std::optional<size_t> found;
    for (size_t i = 0; i < budgets.size(); ++i) {
      if (fastest(i, true) == nullptr) continue;
      if (!found || budgets[i].arena < budgets[*found].arena) found = i;
    }
    return found;
  }
};

ir::Expected<std::vector<Size>> parseBudgets(llvm::ArrayRef<llvm::StringRef> texts) {
  if (texts.size() > kMostBudgets) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         fmt::format("--budget: found {} budgets, expected at most {} ('stowage "
                                     "sweep' takes more)",
                                     texts.size(), kMostBudgets));
  }
  std::vector<Size> sizes;
  for (const llvm::StringRef text : texts) {
    ir::Expected<Size> size = parseSizeFlag(text);
    if (!size) return size.takeError();
    sizes.push_back(*size);
  }
  return sizes;
}

ir::Expected<std::vector<AskedBudget>> resolveBudgets(llvm::ArrayRef<llvm::StringRef> texts,
                                                      llvm::ArrayRef<Size> sizes,
                                                      const PlanningInputs& inputs) {
  std::vector<AskedBudget> budgets;
  for (size_t i = 0; i < sizes.size(); ++i) {
    ir::Expected<Bytes> arena = resolveBudget(sizes[i], inputs);
    if (!arena) return arena.takeError();
    budgets.push_back({.asked = texts[i].trim().str(),
                       .arena = *arena,
                       .outside = sizes[i].withOutside ? inputs.target.outside : Bytes(0)});
  }
  return budgets;
}

ir::Error answerAll(const AdviseFlags& flags, Advice& advice) {
  std::vector<Bytes> arenas;
  for (const AskedBudget& budget : advice.budgets) arenas.push_back(budget.arena);
  for (const Choice& choice : allChoices()) {
    const Waiting waiting(!flags.quiet, std::string("planning by ") + choice.name);
    ir::Expected<ChoiceAnswer> answer =
        answerChoice(choice, advice.inputs, arenas, flags.timeLimit);
    if (!answer) return answer.takeError();
    advice.answers.push_back(std::move(*answer));
  }
  return ir::success();
}

size_t widthOf(const AskedBudget& budget) { return std::max<size_t>(12, budget.asked.size() + 2); }

std::string rowStart(const std::string& name, const std::string& summary,
                     const std::string& smallest, const std::string& host) {
  return fmt::format("{:<15}{:<15}{:>11}{:>11}", name, summary, smallest, host);
}

void printHeading(const Advice& advice, llvm::raw_ostream& os) {
  if (advice.inputs.costs.source == ir::CostSource::kRoofline) {
    os << "estimated  " << planner::describeEstimate(advice.inputs.target) << '\n';
  }
  os << "unplanned peak " << formatBytes(advice.inputs.keepAll) << "; a step's time by budget:\n\n";
  std::string asked = rowStart("", "", "smallest", "most host");
  std::string bytes = rowStart("choice", "what it does", "budget", "memory");
  for (const AskedBudget& budget : advice.budgets) {
    asked += fmt::format("{:>{}} ", budget.asked, widthOf(budget) - 1);
    bytes += fmt::format("{:>{}} ", formatBytes(budget.whole()), widthOf(budget) - 1);
  }
  os << llvm::StringRef(asked).rtrim() << '\n' << llvm::StringRef(bytes).rtrim() << '\n';
}

std::string cellOf(const ChoiceAnswer& answer, const Advice& advice, size_t budget) {
  if (answer.plans.empty()) return "- ";
  const ChoicePlan& plan = answer.plans[budget];
  if (!plan.predicted) {
    return plan.space == ir::spaceName(ir::Space::kDevice) ? "- " : plan.space + " ";
  }
  const ChoiceAnswer* fastest = advice.fastest(budget, /*hostKernels=*/false);
  const bool isBest = fastest != nullptr && !answer.choice.mayUseHostKernels &&
                      plan.predicted->stepTime == fastest->plans[budget].predicted->stepTime;
  return formatDuration(plan.predicted->stepTime) + (isBest ? "*" : " ");
}

void printRow(const ChoiceAnswer& answer, const Advice& advice, llvm::raw_ostream& os) {
  const std::optional<Bytes> host = answer.hostPeak();
  std::string line =
      rowStart(answer.choice.name, answer.choice.summary,
               answer.smallestBudget ? formatBytes(*answer.smallestBudget + advice.outside())
                                     : std::string("-"),
               host ? formatBytes(*host) : std::string("-"));
  for (size_t i = 0; i < advice.budgets.size(); ++i) {
    line += fmt::format("{:>{}}", cellOf(answer, advice, i), widthOf(advice.budgets[i]));
  }
  os << llvm::StringRef(line).rtrim() << '\n';
}

/// "host-step-only, host-step: why", a line for each reason.
void printReasons(const Advice& advice, llvm::raw_ostream& os) {
  std::vector<std::string> seen;
  for (const ChoiceAnswer& answer : advice.answers) {
    if (answer.reason.empty() || llvm::is_contained(seen, answer.reason)) continue;
    seen.push_back(answer.reason);
    std::vector<std::string> names;
    for (const ChoiceAnswer& other : advice.answers) {
      if (other.reason == answer.reason) names.emplace_back(other.choice.name);
    }
    os << llvm::join(names, ", ") << ": " << answer.reason << '\n';
  }
}

/// What the marks of the table mean, those that are in it.
void printLegend(const Advice& advice, llvm::raw_ostream& os) {
  bool isHostShort = false;
  bool wasEnded = false;
  bool usesHost = false;
  for (const ChoiceAnswer& answer : advice.answers) {
    for (const ChoicePlan& plan : answer.plans) {
      isHostShort |= !plan.predicted && plan.space == ir::spaceName(ir::Space::kHost);
      wasEnded |= plan.wasEnded;
      usesHost |= plan.hostUpdated > Bytes(0);
    }
  }
  os << "* the fastest with the bits of the unplanned step; - does not fit"
     << (isHostShort ? "; host: more than --host\n" : "\n");
  if (usesHost) {
    os << "host-step-only, host-step: updates on the host, with the bits of the host's kernels\n";
    if (advice.inputs.target.device == ir::DeviceKind::kCpu)
      os << "  on a CPU backend the host is the same processor: such steps are faster only where "
            "cores are idle\n";
  }
  printReasons(advice, os);
  if (wasEnded) os << "stopped    by --time-limit: longer searches may find faster steps\n";
}

/// That give the plan.
std::string flagsOf(const AskedBudget& budget, const Choice& choice) {
  const std::string flags = choice.flags;
  return "--budget " + budget.asked + (flags.empty() ? "" : " " + flags);
}

/// The smallest budget of all choices.
const ChoiceAnswer* findSmallest(const Advice& advice) {
  const ChoiceAnswer* smallest = nullptr;
  for (const ChoiceAnswer& answer : advice.answers) {
    if (!answer.smallestBudget) continue;
    if (smallest == nullptr || *answer.smallestBudget < *smallest->smallestBudget)
      smallest = &answer;
  }
  return smallest;
}

void printVerdict(const Advice& advice, llvm::raw_ostream& os) {
  const std::optional<size_t> at = advice.tightest();
  if (!at) {
    const ChoiceAnswer* smallest = findSmallest(advice);
    os << "nothing fits";
    if (smallest != nullptr) {
      os << "; smallest device budget that works: "
         << formatBytes(*smallest->smallestBudget + advice.outside()) << " ("
         << smallest->choice.name << ")";
    }
    os << '\n';
    return;
  }
  const AskedBudget& budget = advice.budgets[*at];
  const auto stepTime = [&](const ChoiceAnswer& answer) {
    return answer.plans[*at].predicted->stepTime;
  };
  const ChoiceAnswer* same = advice.fastest(*at, /*hostKernels=*/false);
  const ChoiceAnswer* any = advice.fastest(*at, /*hostKernels=*/true);
  os << "fastest    in " << formatBytes(budget.whole()) << ": ";
  if (same == nullptr) {
    os << "nothing with the bits of the unplanned step fits\n";
  } else {
    os << same->choice.name << ", " << formatDuration(stepTime(*same)) << ": "
       << flagsOf(budget, same->choice) << '\n';
  }
  if (same == any) return;
  os << "other bits " << any->choice.name << ", " << formatDuration(stepTime(*any));
  if (same != nullptr) {
    os << " (" << planner::formatExcess(stepTime(*any), stepTime(*same), /*sign=*/true) << ")";
  }
  os << ": " << flagsOf(budget, any->choice) << '\n';
}

void print(const Advice& advice, llvm::raw_ostream& os) {
  printHeading(advice, os);
  for (const ChoiceAnswer& answer : advice.answers) printRow(answer, advice, os);
  printLegend(advice, os);
  printVerdict(advice, os);
}

Json planJson(const ChoicePlan& plan, Bytes budget) {
  if (!plan.predicted) {
    return {{"fits", false},
            {"budget_bytes", budget.value()},
            {"space", plan.space},
            {"smallest_budget_bytes", plan.smallestBudget.value()}};
  }
  return {{"fits", true},
          {"budget_bytes", budget.value()},
          {"predicted",
           {{"peak_bytes", plan.predicted->peakBytes.value()},
            {"host_peak_bytes", plan.predicted->hostPeakBytes.value()},
            {"step_ns", plan.predicted->stepTime.value()},
            {"bound_ns", plan.predicted->bound.value()}}},
          {"host_updated_bytes", plan.hostUpdated.value()},
          {"stopped_by_time_limit", plan.wasEnded}};
}

Json choiceJson(const ChoiceAnswer& answer, const Advice& advice) {
  Json json = {{"choice", answer.choice.name}, {"flags", answer.choice.flags}};
  if (answer.smallestBudget) json["smallest_budget_bytes"] = answer.smallestBudget->value();
  if (!answer.reason.empty()) json["reason"] = answer.reason;
  json["plans"] = Json::array();
  for (size_t i = 0; i < answer.plans.size(); ++i) {
    json["plans"].push_back(planJson(answer.plans[i], advice.budgets[i].arena));
  }
  return json;
}

Json budgetJson(const Advice& advice, size_t i) {
  const AskedBudget& budget = advice.budgets[i];
  Json json = {{"asked", budget.asked}, {"budget_bytes", budget.arena.value()}};
  if (budget.outside > Bytes(0)) json["outside_bytes"] = budget.outside.value();
  const ChoiceAnswer* same = advice.fastest(i, /*hostKernels=*/false);
  const ChoiceAnswer* any = advice.fastest(i, /*hostKernels=*/true);
  if (same != nullptr) json["fastest"] = same->choice.name;
  if (any != same) json["fastest_with_host_updates"] = any->choice.name;
  return json;
}

Json toJson(const Advice& advice) {
  Json json = Json::object();
  if (advice.inputs.costs.source == ir::CostSource::kRoofline) {
    json["estimated"] = planner::describeEstimate(advice.inputs.target);
  }
  json["unplanned_bytes"] = advice.inputs.keepAll.value();
  json["budgets"] = Json::array();
  for (size_t i = 0; i < advice.budgets.size(); ++i) {
    json["budgets"].push_back(budgetJson(advice, i));
  }
  json["choices"] = Json::array();
  for (const ChoiceAnswer& answer : advice.answers) {
    json["choices"].push_back(choiceJson(answer, advice));
  }
  return json;
}

VerbResult runAdvise(const AdviseFlags& flags) {
  llvm::SmallVector<llvm::StringRef> texts;
  llvm::StringRef(flags.budgets).split(texts, ',');
  ir::Expected<std::vector<Size>> sizes = parseBudgets(texts);
  if (!sizes) return sizes.takeError();
  if (flags.hostUpdates >= 0) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "--host-updates: 'stowage advise' shows all updates on the host and the "
                         "planner's own share, expected 'stowage plan' for another one");
  }
  ir::Expected<PlanningInputs> inputs = readPlanningInputs(flags);
  if (!inputs) return inputs.takeError();
  addGraphMemory(*inputs);
  ir::Expected<std::vector<AskedBudget>> budgets = resolveBudgets(texts, *sizes, *inputs);
  if (!budgets) return budgets.takeError();
  Advice advice{.inputs = *inputs, .budgets = std::move(*budgets), .answers = {}};
  if (ir::Error error = answerAll(flags, advice)) return error;
  if (flags.json) {
    printJson(toJson(advice));
  } else {
    print(advice, answers());
  }
  return advice.tightest() ? kExitYes : kExitNo;
}

}  // namespace

Verb addAdviseVerb(CLI::App& app) {
  auto flags = std::make_shared<AdviseFlags>();
  CLI::App* command = app.add_subcommand(
      "advise", "compare checkpointing, offload, updates on the host and all of it for a step");
  addPlanningFlags(*command, *flags);
  command->remove_option(command->get_option("--allow"));
  command
      ->add_option("--budget", flags->budgets,
                   "bytes of the device arena, or a comma list of up to 4, each as in 'stowage "
                   "plan': 24GiB, 50%peak, and for GPU targets 80% or device:24GiB")
      ->capture_default_str();
  command
      ->add_option("--time-limit", flags->timeLimit,
                   "seconds for each plan, after which the fastest so far counts, as soon as there "
                   "is one; default: none")
      ->check(describeBadSeconds);
  addCommonFlags(*command, *flags, /*writesFiles=*/false);
  return {.command = command, .run = [flags] { return runAdvise(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
