// SPDX-License-Identifier: Apache-2.0
//
// From a graph and a budget to a verified schedule, over the orders that are allowed: the program's
// order, and the one in which each optimizer update runs as early as legal. Each order is a graph
// of its own with its own frontier; the faster plan wins (the program's order when equal), so that
// more budget never hurts here either. In: a normalised graph, costs, a target, what is allowed.
// Out: the graph in the chosen order with a schedule of it. Not here: files, capture, running.
#ifndef STOWAGE_PASSES_PLAN_STEP_H_
#define STOWAGE_PASSES_PLAN_STEP_H_

#include <memory>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "planner/plan.h"
#include "planner/problem/problem.h"

namespace stowage::passes {

enum class Order : uint8_t {
  kProgram,  // as captured
  kHoisted   // updates as early as legal
};
const char* orderName(Order order);
std::optional<Order> findOrder(llvm::StringRef name);

struct PlanStepOptions {
  Bytes budget;  // the device arena, exactly
  planner::Allowed allowed;
  planner::Limits limits;
  std::vector<planner::Pin> pins;
  std::vector<ir::DecisionRow> pinnedRows;  // positions in `orders.front()`; only with one order
  std::vector<Order> orders = {Order::kProgram, Order::kHoisted};
  /// How much of a step will be one CUDA graph. With kNoUpdate only the program's order is
  /// considered: a graph ends before the first update.
  ir::GraphMode graphMode = ir::GraphMode::kNone;
};

struct PlannedStep {
  Order order = Order::kProgram;
  ir::Graph graph;  // in that order: what the schedule's node ids mean
  ir::Schedule schedule;
  planner::PlanResult result;
  std::string boundScope;  // the orders that result.bound holds for: "program,hoisted"
};

/// The graph that plans of `order` are about. `graph` must be normalised. Equal input, equal
/// output.
ir::Expected<ir::Graph> arrangeGraph(const ir::Graph& graph, Order order);

/// Plans one step for any number of budgets and reuses what earlier calls computed. The answer for
/// a budget does not depend on earlier calls. `graph` and `target` must outlive it.
class StepPlanner {
 public:
  /// `options.budget` is not used. Errors: of makeProblem and Planner::make; kInfeasible naming the
  /// first node that a graph of the whole step cannot hold.
  static ir::Expected<StepPlanner> make(const ir::Graph& graph, const ir::Target& target,
                                        const ir::CostTable& costs, const PlanStepOptions& options);
  StepPlanner(StepPlanner&&) noexcept;
  StepPlanner& operator=(StepPlanner&&) noexcept;
  ~StepPlanner();
  /// As planStep.
  ir::Expected<PlannedStep> plan(Bytes budget);

 private:
  struct OrderPlanner;
  StepPlanner();
  std::vector<std::unique_ptr<OrderPlanner>> orders_;
  const ir::Target* target_ = nullptr;
  ir::GraphMode graphMode_ = ir::GraphMode::kNone;
};

/// Checks before planning that CUDA graphs can hold the part of the step that `mode` records (V25).
/// A CUDA graph does not repeat an op's work on host memory.
/// Errors: kInfeasible naming the node.
ir::Error checkGraphMode(const ir::Graph& graph, ir::GraphMode mode);

/// A StepPlanner for one budget. Errors: kInfeasible when no order has a plan, with the smallest
/// budget over all of them; whatever planner::plan and lowerTimetable report.
ir::Expected<PlannedStep> planStep(const ir::Graph& graph, const ir::Target& target,
                                   const ir::CostTable& costs, const PlanStepOptions& options);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_PLAN_STEP_H_
