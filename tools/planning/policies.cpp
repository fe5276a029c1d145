// SPDX-License-Identifier: Apache-2.0
#include "tools/planning/policies.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "tools/cli/nearest_name.h"
#include "tools/cli/progress.h"

namespace stowage::tools {

namespace {

constexpr Policy kAll[] = {Policy::kKeepAll, Policy::kOffloadOnly, Policy::kRecomputeOnly,
                           Policy::kFullRecompute, Policy::kStreamStates};

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
  if (answer.stepTime) return describeStep(*answer.stepTime, plan);
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
  }
  return "";
}

std::string listPolicies() {
  std::string names;
  for (const Policy policy : kAll) {
    names += (names.empty() ? "" : ", ") + std::string(policyName(policy));
  }
  return names;
}

ir::Expected<Policy> parsePolicy(const std::string& name) {
  std::vector<std::string> names;
  for (const Policy policy : kAll) {
    if (name == policyName(policy)) return policy;
    names.emplace_back(policyName(policy));
  }
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "--policy: " + describeUnknown("policy", name, "one of", names));
}

std::vector<passes::PlanStepOptions> narrowTo(Policy policy, const PlanningInputs& inputs) {
  passes::PlanStepOptions options = inputs.options;
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
  if (policy != Policy::kFullRecompute) return {options};
  std::vector<passes::PlanStepOptions> ways;
  for (const int32_t segments : kSegments) {
    ways.push_back(options);
    ways.back().allowed.segments = segments;
  }
  return ways;
}

ir::Expected<passes::PlannedStep> planBy(Policy policy, const PlanningInputs& inputs) {
  std::optional<passes::PlannedStep> best;
  std::optional<ir::PlanError> closest;
  for (const passes::PlanStepOptions& options : narrowTo(policy, inputs)) {
    ir::Expected<passes::PlannedStep> planned =
        passes::planStep(inputs.graph, inputs.target, inputs.costs, options);
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

ir::Expected<std::vector<PolicyAnswer>> comparePolicies(const PlanningInputs& inputs, bool quiet) {
  std::vector<PolicyAnswer> answers;
  for (const Policy policy : kAll) {
    const Waiting waiting(!quiet, std::string("planning by ") + policyName(policy));
    PolicyAnswer answer{.policy = policy};
    ir::Expected<passes::PlannedStep> planned = planBy(policy, inputs);
    if (planned) {
      answer.stepTime = planned->schedule.predicted.stepTime;
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
    if (answer.smallestBudget) one["smallest_budget_bytes"] = answer.smallestBudget->value();
    if (!answer.reason.empty()) one["reason"] = answer.reason;
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace stowage::tools
