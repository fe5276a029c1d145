// SPDX-License-Identifier: Apache-2.0
#include "tools/planning/advice.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "planner/report/plan_summary.h"
#include "tools/planning/time_limit.h"

namespace stowage::tools {

namespace {

constexpr Choice kChoices[] = {
    {.name = "keep-all",
     .summary = "nothing moves",
     .flags = "--policy keep-all",
     .policy = Policy::kKeepAll},
    {.name = "full-recompute",
     .summary = "checkpointing",
     .flags = "--policy full-recompute",
     .policy = Policy::kFullRecompute},
    {.name = "recompute-only",
     .summary = "recompute",
     .flags = "--policy recompute-only",
     .policy = Policy::kRecomputeOnly},
    {.name = "offload-only",
     .summary = "offload",
     .flags = "--policy offload-only",
     .policy = Policy::kOffloadOnly},
    {.name = "stream-states",
     .summary = "states on host",
     .flags = "--policy stream-states",
     .policy = Policy::kStreamStates},
    {.name = "host-step-only",
     .summary = "host updates",
     .flags = "--policy host-step-only",
     .policy = Policy::kHostStepOnly,
     .mayUseHostKernels = true},
    {.name = "all", .summary = "per tensor", .flags = "", .policy = Policy::kAll},
    {.name = "host-step",
     .summary = "all+host upd.",
     .flags = "--allow host-step",
     .policy = std::nullopt,
     .mayUseHostKernels = true},
};

std::vector<passes::PlanStepOptions> waysOf(const Choice& choice, const PlanningInputs& inputs) {
  if (choice.policy) return narrowTo(*choice.policy, inputs);
  passes::PlanStepOptions options = inputs.options;
  options.hostUpdates = {passes::kHostShares.begin(), passes::kHostShares.end()};
  return {options};
}

ir::Expected<PolicyPlanner> makePlanner(const Choice& choice, const PlanningInputs& inputs,
                                        const TimeLimit& limit) {
  if (choice.mayUseHostKernels) {
    if (ir::Error error = checkHostUpdates(inputs)) return error;
  }
  std::vector<passes::PlanStepOptions> ways = waysOf(choice, inputs);
  for (passes::PlanStepOptions& way : ways) way.isOver = limit.isOver();
  return PolicyPlanner::make(ways, inputs);
}

/// Errors that are answers: why there is no plan, whatever the budget.
ir::Expected<std::string> readReason(ir::Error error) {
  ir::PlanError found = ir::takePayload(std::move(error));
  const bool isAnswer =
      found.code() == ir::ErrorCode::kInfeasible || found.code() == ir::ErrorCode::kInvalidArgument;
  if (!isAnswer) return ir::makeError(std::move(found));
  return found.text();
}

ir::Expected<ChoicePlan> planAt(PolicyPlanner& planner, Bytes budget) {
  ir::Expected<passes::PlannedStep> planned = planner.plan(budget);
  if (planned) {
    return ChoicePlan{.predicted = planned->schedule.predicted,
                      .hostUpdated = planner::updatedBytes(planned->graph, /*onHost=*/true),
                      .wasEnded = planned->wasEnded,
                      .space = "",
                      .smallestBudget = {}};
  }
  ir::PlanError error = ir::takePayload(planned.takeError());
  if (!error.infeasible()) return ir::makeError(std::move(error));
  return ChoicePlan{.predicted = std::nullopt,
                    .hostUpdated = {},
                    .wasEnded = false,
                    .space = error.infeasible()->space,
                    .smallestBudget = error.infeasible()->smallestBudget};
}

bool needsMoreDevice(const ChoicePlan& plan) {
  return !plan.predicted && plan.space == ir::spaceName(ir::Space::kDevice);
}

/// Every budget that is too small names it; where all are large enough, one of nothing does.
ir::Expected<std::optional<Bytes>> findSmallest(PolicyPlanner& planner,
                                                llvm::ArrayRef<ChoicePlan> plans) {
  for (const ChoicePlan& plan : plans) {
    if (needsMoreDevice(plan)) return plan.smallestBudget;
  }
  ir::Expected<ChoicePlan> least = planAt(planner, Bytes(0));
  if (!least) return least.takeError();
  if (least->predicted) return Bytes(0);
  return needsMoreDevice(*least) ? std::optional(least->smallestBudget) : std::nullopt;
}

ir::Error addPlans(PolicyPlanner& planner, llvm::ArrayRef<Bytes> budgets, TimeLimit& limit,
                   ChoiceAnswer& answer) {
  for (const Bytes budget : budgets) {
    limit.restart();
    ir::Expected<ChoicePlan> plan = planAt(planner, budget);
    if (!plan) return plan.takeError();
    answer.plans.push_back(std::move(*plan));
  }
  ir::Expected<std::optional<Bytes>> smallest = findSmallest(planner, answer.plans);
  if (!smallest) return smallest.takeError();
  answer.smallestBudget = *smallest;
  return ir::success();
}

/// What is preferred of equally fast choices comes first.
int rankOf(const Choice& choice) {
  if (choice.policy == Policy::kKeepAll) return 0;
  return choice.flags[0] == '\0' ? 1 : 2;
}

}  // namespace

llvm::ArrayRef<Choice> allChoices() { return kChoices; }

std::optional<Bytes> ChoiceAnswer::hostPeak() const {
  std::optional<Bytes> peak;
  for (const ChoicePlan& plan : plans) {
    if (plan.predicted) peak = std::max(peak.value_or(Bytes(0)), plan.predicted->hostPeakBytes);
  }
  return peak;
}

ir::Expected<ChoiceAnswer> answerChoice(const Choice& choice, const PlanningInputs& inputs,
                                        llvm::ArrayRef<Bytes> budgets, double timeLimit) {
  ChoiceAnswer answer{.choice = choice, .plans = {}, .smallestBudget = std::nullopt, .reason = ""};
  TimeLimit limit(timeLimit);
  ir::Expected<PolicyPlanner> planner = makePlanner(choice, inputs, limit);
  ir::Error error =
      planner ? addPlans(*planner, budgets, limit, answer) : ir::Error(planner.takeError());
  if (!error) return answer;
  ir::Expected<std::string> reason = readReason(std::move(error));
  if (!reason) return reason.takeError();
  answer.plans.clear();
  answer.reason = std::move(*reason);
  return answer;
}

const ChoiceAnswer* findFastest(llvm::ArrayRef<ChoiceAnswer> answers, size_t budget,
                                bool hostKernels) {
  const ChoiceAnswer* fastest = nullptr;
  const auto key = [&](const ChoiceAnswer& answer) {
    return std::tuple(answer.plans[budget].predicted->stepTime, answer.choice.mayUseHostKernels,
                      rankOf(answer.choice));
  };
  for (const ChoiceAnswer& answer : answers) {
    if (answer.choice.mayUseHostKernels && !hostKernels) continue;
    if (answer.plans.empty() || !answer.plans[budget].predicted) continue;
    if (fastest == nullptr || key(answer) < key(*fastest)) fastest = &answer;
  }
  return fastest;
}

}  // namespace stowage::tools
