// SPDX-License-Identifier: Apache-2.0
//
// From a graph and a budget to a verified schedule, over the orders that are allowed: the program's
// order; the one in which each optimizer update runs as early as legal; of steps with micro-batches
// the one that also runs them layer by layer; and of steps whose updates are held to the end of
// backward the one that defers them into the next step (passes/normalise/defer_updates.h). Each as
// captured and in several numbers of row blocks (passes/normalise/block_rows.h), and, if that is
// allowed, with shares of the updates on the host (passes/normalise/host_updates.h). Each of these
// is a graph of its own with its own frontier; the fastest plan wins (the more promising graph's
// when equal). A graph is left out only if it has no faster plan (planner::Planner::leastTime), so
// whatever a smaller budget can use, a larger one has too: more budget never hurts. In: a
// normalised graph, costs, a target, what is allowed. Out: the chosen graph with a schedule of it.
// Not here: files, capture, running.
#ifndef STOWAGE_PASSES_PLAN_STEP_H_
#define STOWAGE_PASSES_PLAN_STEP_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "passes/arrange_graph.h"
#include "planner/plan.h"
#include "planner/problem/problem.h"

namespace stowage::passes {

struct PlanStepOptions {
  Bytes budget;  // the device arena, exactly
  planner::Allowed allowed;
  planner::Limits limits;
  std::vector<planner::Pin> pins;
  std::vector<ir::DecisionRow> pinnedRows;  // positions in `orders.front()`; only with one order
  /// An order counts only where it gives the step another graph.
  std::vector<Order> orders = {kAllOrders.begin(), kAllOrders.end()};
  /// Numbers of row blocks that may be used besides none; empty: none. Not with `pinnedRows`.
  std::vector<int64_t> rowBlocks = {16, 64};
  /// Shares of the updates that may run on the host besides none, in per cent of the parameters'
  /// bytes; empty: none. Such a step has other bits: those of the host's kernels. Not with a CUDA
  /// graph or `pinnedRows`.
  std::vector<int64_t> hostUpdates = {};
  bool mustUpdateOnHost = false;  // with `hostUpdates`: no share at all is no choice
  /// How much of a step will be one CUDA graph. With kNoUpdate only the program's order is
  /// considered: a graph ends before the first update.
  ir::GraphMode graphMode = ir::GraphMode::kNone;
  /// True from some moment on: then the fastest plan so far is the answer, as soon as there is one;
  /// or, where the host has too little and no plan is left to look for, a host limit that works.
  /// Null: a search goes to its end, and its answer depends on the step alone.
  std::function<bool()> isOver;
  /// Told of each plan that is faster than those before; under a host limit, of each order's best.
  /// Null: nobody.
  std::function<void(Nanoseconds stepTime, Nanoseconds bound)> found;
};

struct PlannedStep {
  Order order = Order::kProgram;
  int64_t rowBlocks = 1;    // 1: none
  int64_t hostUpdates = 0;  // per cent; 0: none
  ir::Graph graph;          // in that order and in these blocks: what the schedule's node ids mean
  ir::Schedule schedule;
  planner::PlanResult result;
  std::string boundScope;  // what result.bound holds for: "program,hoisted,row-blocks=16"
  /// With row blocks or updates on the host: the costs of this graph. Null: the caller's table has
  /// them.
  std::shared_ptr<const ir::CostTable> costs;
  int64_t estimatedCosts = 0;  // rows of `costs` that the caller's table does not have
  bool wasEnded = false;       // by `isOver`: a faster plan may have been missed
};
/// The costs that a step was planned with: its own, or the caller's.
const ir::CostTable& costsOf(const PlannedStep& planned, const ir::CostTable& given);

/// Plans one step for any number of budgets and reuses what earlier calls computed. The answer for
/// a budget does not depend on earlier calls. `graph`, `target` and `costs` must outlive it.
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
  struct Variant;
  struct Source;
  struct Search;
  struct Prospect;
  StepPlanner();
  ir::Error addVariant(Order order, int64_t rowBlocks, int64_t hostUpdates);
  ir::Error prepare(Variant& variant);
  static ir::Error withoutVariant(const Variant& variant, ir::Error error);
  /// Of all graphs, the most promising first.
  std::vector<Prospect> findProspects(Bytes budget);
  static void findSlowest(llvm::ArrayRef<Prospect> prospects, Search& search);
  static Nanoseconds leastBound(llvm::ArrayRef<Prospect> prospects);
  static bool isOfUse(const Prospect& prospect, const Search& search);
  static ir::Error tryVariant(Variant& variant, Search& search);
  ir::Error tryVariants(llvm::ArrayRef<Prospect> prospects, Search& search) const;
  std::string orders() const;  // by name, separated by commas

  std::unique_ptr<Source> source_;
  std::vector<std::unique_ptr<Variant>> variants_;  // those without row blocks first
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
