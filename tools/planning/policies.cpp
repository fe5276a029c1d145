// SPDX-License-Identifier: Apache-2.0
#include "tools/planning/policies.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "ir/base/nearest_name.h"
#include "passes/arrange_graph.h"
#include "passes/normalise/host_updates.h"
#include "planner/report/plan_summary.h"
#include "tools/cli/progress.h"

namespace stowage::tools {

namespace {

constexpr Policy kPolicies[] = {Policy::kKeepAll,
                                Policy::kOffloadOnly,
                                Policy::kRecomputeOnly,
                                Policy::kFullRecompute,
                                Policy::kStreamStates,
                                Policy::kHostStepOnly,
                                Policy::kAll};

/// A person tries some: few segments are large, many leave much alive between them.
constexpr int32_t kSegments[] = {1, 4, 16, 32, 64};

bool isStreamed(const ir::Storage& storage) {
  const bool isState = storage.role == ir::Role::kParameter || storage.role == ir::Role::kFrozen ||
                       storage.role == ir::Role::kState || storage.role == ir::Role::kMaster;
  return isState && storage.persistent && storage.bytes > Bytes(0);
}

/// Of the plan that is compared with.
std::string describeStep(Nanoseconds stepTime, Nanoseconds plan) {
  const std::string excess = planner::formatExcess(stepTime, plan, /*sign=*/true);
  return formatDuration(stepTime) + (excess.empty() ? "" : " (" + excess + " against the plan)");
}

std::string describeAnswer(const PolicyAnswer& answer, Nanoseconds plan) {
  const char* bits = answer.hostUpdated > Bytes(0) ? ", with the bits of the host's kernels" : "";
  if (answer.stepTime) return describeStep(*answer.stepTime, plan) + bits;
  if (answer.smallestBudget) {
    return "does not fit, needs " + formatBytes(*answer.smallestBudget) + " at least";
  }
  return "does not fit: " + answer.reason;
}

}  // namespace

const char* policyName(Policy policy) {
  switch (policy) {
    case Policy::kKeepAll:
      return "keep-all";
    case Policy::kOffloadOnly:
      return "offload-only";
    case Policy::kRecomputeOnly:
      return "recompute-only";
    case Policy::kFullRecompute:
      return "full-recompute";
    case Policy::kStreamStates:
      return "stream-states";
    case Policy::kHostStepOnly:
      return "host-step-only";
    case Policy::kAll:
      return "all";
  }
  return "";
}

std::string listPolicies() {
  std::string names;
  for (const Policy policy : kPolicies) {
    names += (names.empty() ? "" : ", ") + std::string(policyName(policy));
  }
  return names;
}

ir::Expected<Policy> parsePolicy(const std::string& name) {
  std::vector<std::string> names;
  for (const Policy policy : kPolicies) {
    if (name == policyName(policy)) return policy;
    names.emplace_back(policyName(policy));
  }
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "--policy: " + ir::describeUnknown("policy", name, "one of", names));
}

std::vector<passes::PlanStepOptions> narrowTo(Policy policy, const PlanningInputs& inputs) {
  passes::PlanStepOptions options = inputs.options;
  options.hostUpdates.clear();
  if (policy == Policy::kAll) return {options};
  if (policy == Policy::kStreamStates) {
    // Later pins count, so what the caller pinned stays pinned.
    std::vector<planner::Pin> pins;
    for (const ir::Storage& storage : inputs.graph.storages()) {
      if (isStreamed(storage))
        pins.push_back({.pattern = storage.name, .action = ir::GapAction::kHost});
    }
    pins.insert(pins.end(), options.pins.begin(), options.pins.end());
    options.pins = std::move(pins);
    return {options};
  }
  options.rowBlocks.clear();
  const bool recomputes = policy == Policy::kRecomputeOnly || policy == Policy::kFullRecompute;
  if (policy != Policy::kOffloadOnly) options.allowed.offload = options.allowed.disk = false;
  options.allowed.recompute = options.allowed.recompute && recomputes;
  if (policy == Policy::kHostStepOnly) {
    options.hostUpdates = {100};
    options.mustUpdateOnHost = true;
  }
  if (policy != Policy::kFullRecompute) return {options};
  std::vector<passes::PlanStepOptions> ways;
  for (const int32_t segments : kSegments) {
    ways.push_back(options);
    ways.back().allowed.segments = segments;
  }
  return ways;
}

ir::Error checkHostUpdates(const PlanningInputs& inputs) {
  const auto refuse = [](const std::string& why) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "no update of this step may run on the host: " + why);
  };
  if (inputs.options.graphMode != ir::GraphMode::kNone) {
    return refuse("a CUDA graph cannot hold it, found --launch " +
                  std::string(ir::graphModeName(inputs.options.graphMode)));
  }
  ir::Expected<ir::Graph> hoisted = passes::arrangeGraph(inputs.graph, passes::Order::kHoisted);
  if (!hoisted) return hoisted.takeError();
  passes::PassState state;
  state.graph = std::move(*hoisted);
  ir::Expected<passes::PassReport> report = passes::HostUpdates().run(state);
  if (!report) return report.takeError();
  if (report->changed) return ir::success();
  return refuse(report->remarks.empty() ? "it updates no parameter" : report->remarks.front());
}

ir::Expected<PolicyPlanner> PolicyPlanner::make(Policy policy, const PlanningInputs& inputs) {
  if (policy == Policy::kHostStepOnly) {
    if (ir::Error error = checkHostUpdates(inputs)) return error;
  }
  return make(narrowTo(policy, inputs), inputs);
}

ir::Expected<PolicyPlanner> PolicyPlanner::make(const std::vector<passes::PlanStepOptions>& ways,
                                                const PlanningInputs& inputs) {
  PolicyPlanner made;
  for (const passes::PlanStepOptions& options : ways) {
    ir::Expected<passes::StepPlanner> way =
        passes::StepPlanner::make(inputs.graph, inputs.target, inputs.costs, options);
    if (!way) return way.takeError();
    made.ways_.push_back(std::move(*way));
  }
  return made;
}

ir::Expected<passes::PlannedStep> PolicyPlanner::plan(Bytes budget) {
  std::optional<passes::PlannedStep> best;
  std::optional<ir::PlanError> closest;
  for (passes::StepPlanner& way : ways_) {
    ir::Expected<passes::PlannedStep> planned = way.plan(budget);
    if (planned) {
      const auto time = [](const passes::PlannedStep& step) {
        return step.schedule.predicted.stepTime;
      };
      if (!best || time(*planned) < time(*best)) best = std::move(*planned);
      continue;
    }
    ir::PlanError error = ir::takePayload(planned.takeError());
    if (error.code() != ir::ErrorCode::kInfeasible) return ir::makeError(std::move(error));
    const bool isCloser =
        !closest || (error.infeasible() && closest->infeasible() &&
                     error.infeasible()->smallestBudget < closest->infeasible()->smallestBudget);
    if (isCloser) closest = std::move(error);
  }
  if (best) return std::move(*best);
  return ir::makeError(std::move(*closest));
}

ir::Expected<passes::PlannedStep> planBy(Policy policy, const PlanningInputs& inputs) {
  ir::Expected<PolicyPlanner> planner = PolicyPlanner::make(policy, inputs);
  if (!planner) return planner.takeError();
  return planner->plan(inputs.options.budget);
}

ir::Expected<std::vector<PolicyAnswer>> comparePolicies(const PlanningInputs& inputs, bool quiet) {
  std::vector<PolicyAnswer> answers;
  for (const Policy policy : kPolicies) {
    if (policy == Policy::kAll) continue;
    const Waiting waiting(!quiet, std::string("planning by ") + policyName(policy));
    PolicyAnswer answer{.policy = policy};
    ir::Expected<passes::PlannedStep> planned = planBy(policy, inputs);
    if (planned) {
      answer.stepTime = planned->schedule.predicted.stepTime;
      answer.hostUpdated = planner::updatedBytes(planned->graph, /*onHost=*/true);
    } else {
      ir::PlanError error = ir::takePayload(planned.takeError());
      const bool isAnswer = error.code() == ir::ErrorCode::kInfeasible ||
                            error.code() == ir::ErrorCode::kInvalidArgument;
      if (!isAnswer) return ir::makeError(std::move(error));
      const auto& infeasible = error.infeasible();
      if (infeasible && infeasible->space == ir::spaceName(ir::Space::kDevice)) {
        answer.smallestBudget = infeasible->smallestBudget;
      } else {
        answer.reason = error.text();
      }
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

void printPolicies(llvm::ArrayRef<PolicyAnswer> answers, Nanoseconds stepTime,
                   llvm::raw_ostream& os) {
  for (const PolicyAnswer& answer : answers) {
    os << fmt::format("{:<11}{:<15}{}\n", &answer == answers.begin() ? "compare" : "",
                      policyName(answer.policy), describeAnswer(answer, stepTime));
  }
}

nlohmann::ordered_json policiesJson(llvm::ArrayRef<PolicyAnswer> answers) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PolicyAnswer& answer : answers) {
    nlohmann::ordered_json one;
    one["policy"] = policyName(answer.policy);
    one["fits"] = answer.stepTime.has_value();
    if (answer.stepTime) one["step_ns"] = answer.stepTime->value();
    if (answer.hostUpdated > Bytes(0)) one["host_updated_bytes"] = answer.hostUpdated.value();
    if (answer.smallestBudget) one["smallest_budget_bytes"] = answer.smallestBudget->value();
    if (!answer.reason.empty()) one["reason"] = answer.reason;
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace stowage::tools
