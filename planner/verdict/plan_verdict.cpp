// SPDX-License-Identifier: Apache-2.0
#include "planner/verdict/plan_verdict.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/evaluate/timeline.h"

namespace stowage::planner {

namespace {

/// What a plan says of itself beyond the verifier's rules.
class ClaimCheck {
 public:
  ClaimCheck(const PlanFile& plan, const ir::Graph& graph, const ir::NodeCosts* costs,
             std::vector<ir::Violation>& violations)
      : plan_(plan),
        claim_(plan.schedule.predicted),
        graph_(graph),
        costs_(costs),
        violations_(violations) {}

  void run() {
    if (claim_ == ir::Prediction{}) return;
    if (costs_ != nullptr) checkStepTime();
    checkBound();
    checkStalls();
  }

 private:
  void violate(std::string message) {
    violations_.push_back({.rule = 30, .message = std::move(message), .command = {}});
  }

  bool hasRule(int rule) const {
    return llvm::any_of(violations_,
                        [&](const ir::Violation& violation) { return violation.rule == rule; });
  }

  /// V30 knows by itself which times are impossible; this is the time that the schedule takes.
  void checkStepTime() {
    // Only what has ids in range and waits for what was enqueued before has a time.
    if (hasRule(1) || hasRule(14)) return;
    const Nanoseconds found =
        computeTimeline(graph_, plan_.schedule, *costs_, plan_.target.alignBytes).stepTime;
    if (found == claim_.stepTime) return;
    violate("step of " + std::to_string(claim_.stepTime.value()) + " ns claimed, expected " +
            std::to_string(found.value()));
  }

  /// What compute works, as far as it is known: without waits for launches, which depend on the
  /// order of nodes.
  Nanoseconds work() const {
    Nanoseconds sum;
    for (size_t i = 0; costs_ != nullptr && i < costs_->nodes.size(); ++i) {
      if (!costs_->isCollective(ir::NodeId(i))) sum += costs_->nodes[i].work;
    }
    return sum;
  }

  /// No schedule is faster than its kernels.
  void checkBound() {
    const Nanoseconds least = std::max(work(), Nanoseconds(1));
    if (claim_.bound >= least) return;
    violate("bound of " + std::to_string(claim_.bound.value()) +
            " ns claimed, expected at least what its ops take, " + std::to_string(least.value()) +
            " ns");
  }

  /// Compute waits when it does not work.
  void checkStalls() {
    int64_t room = claim_.stepTime.value();
    room -= std::min(room, work().value());
    const Stalls& stalls = plan_.stalls;
    for (const Nanoseconds part :
         {stalls.deviceToHost, stalls.hostToDevice, stalls.disk, stalls.ranks}) {
      if (part.value() > room) {
        violate("stall of " + std::to_string(part.value()) + " ns claimed, expected at most " +
                std::to_string(room) + ", what compute and other stalls leave of the step");
      }
      room -= std::min(room, part.value());
    }
  }

  const PlanFile& plan_;
  const ir::Prediction& claim_;
  const ir::Graph& graph_;
  const ir::NodeCosts* costs_;
  std::vector<ir::Violation>& violations_;
};

/// Nothing where the table is not at hand.
ir::Expected<std::optional<ir::NodeCosts>> resolve(const PlanFile& plan, const ir::Graph& graph,
                                                   const PlansCosts& costs) {
  if (!costs.file) return std::optional<ir::NodeCosts>();
  ir::Expected<ir::NodeCosts> nodes =
      ir::resolveCosts(graph, costs.file->table, plan.schedule.graphMode);
  if (nodes) return std::optional<ir::NodeCosts>(std::move(*nodes));
  const ir::PlanError found = ir::takePayload(nodes.takeError());
  ir::PlanError problem(ir::ErrorCode::kPlanMismatch, found.text());
  problem.at({.file = costs.path.empty() ? plan.path : costs.path}).notesOf(found);
  return ir::makeError(std::move(problem));
}

}  // namespace

ir::Expected<PlanVerdict> judgePlan(const PlanFile& plan, const ir::Graph& graph,
                                    const PlansCosts& costs) {
  ir::Expected<std::optional<ir::NodeCosts>> nodes = resolve(plan, graph, costs);
  if (!nodes) return nodes.takeError();
  const ir::NodeCosts* known = *nodes ? &**nodes : nullptr;
  PlanVerdict verdict;
  verdict.unchecked = costs.missing;
  verdict.violations = ir::verify({.graph = graph,
                                   .schedule = plan.schedule,
                                   .target = plan.target,
                                   .costs = known,
                                   .budget = plan.budget,
                                   .hostLimit = plan.hostLimit,
                                   .diskLimit = plan.diskLimit});
  ClaimCheck(plan, graph, known, verdict.violations).run();
  llvm::stable_sort(verdict.violations,
                    [](const ir::Violation& x, const ir::Violation& y) { return x.rule < y.rule; });
  return verdict;
}

ir::Error checkPlan(const PlanFile& plan, const ir::Graph& graph, const PlansCosts& costs) {
  ir::Expected<PlanVerdict> verdict = judgePlan(plan, graph, costs);
  if (!verdict) return verdict.takeError();
  if (verdict->violations.empty()) return ir::success();
  ir::PlanError error(ir::ErrorCode::kViolation, "the plan breaks the verifier's rules");
  error.at({.file = plan.path});
  for (const ir::Violation& violation : verdict->violations) {
    error.note("V" + std::to_string(violation.rule) + ": " + violation.message);
  }
  return ir::makeError(std::move(error));
}

}  // namespace stowage::planner
