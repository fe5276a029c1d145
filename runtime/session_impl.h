// SPDX-License-Identifier: Apache-2.0
//
// What a Step and a Plan keep. Private to session.cpp (capture, runs) and session_plan.cpp (plans).
#ifndef STOWAGE_RUNTIME_SESSION_IMPL_H_
#define STOWAGE_RUNTIME_SESSION_IMPL_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "passes/plan_step.h"
#include "planner/files/plan_file.h"
#include "runtime/session.h"

namespace stowage {

/// Plans of one step for any number of budgets: later ones take less time.
struct KeptPlanner {
  passes::PlanStepOptions options;  // but for the budget
  passes::StepPlanner planner;
};

struct Step::Impl {
  std::unique_ptr<runtime::CapturedStep> captured;
  std::shared_ptr<torch::nn::Module> module;
  ir::Graph graph;  // normalised
  ir::Target target;
  std::optional<ir::CostTable> costs;  // measured when first needed
  std::string diskFolder;              // whose rates the costs have; "": the target's
  std::mutex planning;                 // one plan at a time
  std::optional<KeptPlanner> planner;  // until the step runs; refers to what is above
};

struct Plan::Impl {
  planner::PlanFile file;  // without the graph's text
  ir::Graph graph;         // in the schedule's order
  ir::NodeCosts costs;     // of this machine
  Bytes keepAll;
  Nanoseconds unlimited;   // of the step as captured, with room for all
  std::string diskFolder;  // that it was planned with
};

/// The plan that all ranks run: costs that each measures differ, and so do plans made from them. On
/// rank 0 it is `own`. Errors: as Communicator::allGather, as Plan::load.
ir::Expected<Plan> takeFirstRanksPlan(const Plan& own, const Step& step,
                                      const runtime::TrainingRanks& ranks);

}  // namespace stowage

#endif  // STOWAGE_RUNTIME_SESSION_IMPL_H_
