// SPDX-License-Identifier: Apache-2.0
#include "tools/run/step_costs.h"

#include <llvm/ADT/STLFunctionalExtras.h>

#include <algorithm>

#include "planner/evaluate/timeline.h"
#include "planner/evaluate/timing.h"

namespace stowage::tools {

namespace {

constexpr int kHalvings = 12;  // of a share between 0 and 1

ir::Expected<Nanoseconds> predictStep(const StepsOfPlan& plan, const ir::CostTable& costs) {
  ir::Expected<ir::NodeCosts> nodes = ir::resolveCosts(plan.graph, costs, plan.schedule.graphMode);
  if (!nodes) return nodes.takeError();
  return planner::computeTimeline(plan.graph, plan.schedule, *nodes, plan.target.alignBytes)
      .stepTime;
}

/// The largest share with which the step is predicted to take no longer than `stepTime`, or than
/// without any. Prediction rises with the share.
ir::Expected<double> largestShareWithin(
    Nanoseconds stepTime, llvm::function_ref<ir::Expected<Nanoseconds>(double share)> predict) {
  ir::Expected<Nanoseconds> least = predict(0);
  if (!least) return least.takeError();
  const Nanoseconds limit = std::max(stepTime, *least);
  ir::Expected<Nanoseconds> most = predict(1);
  if (!most) return most.takeError();
  if (*most <= limit) return 1.0;
  double within = 0;
  double step = 1;
  for (int i = 0; i < kHalvings; ++i) {
    step /= 2;
    ir::Expected<Nanoseconds> time = predict(within + step);
    if (!time) return time.takeError();
    if (*time <= limit) within += step;
  }
  return within;
}

}  // namespace

ir::Expected<ir::CostTable> correctCosts(const ir::CostTable& alone, const StepsOfPlan& measured) {
  ir::CostTable known = alone;
  known.scalars = Nanoseconds(0);
  ir::Expected<ir::NodeCosts> work = ir::resolveCosts(measured.graph, known, ir::GraphMode::kWhole);
  if (!work) return work.takeError();
  const size_t firstUpdate = planner::findUpdate(measured.graph, measured.schedule.commands);
  const runtime::TypicalTimes times =
      runtime::typicalTimes(measured.schedule, measured.steps, *work, firstUpdate);
  const auto tableWith = [&](double share) {
    return runtime::correctTimes(known, measured.graph, measured.schedule, times, share);
  };
  known.scalars = measured.pace.scalars.value_or(alone.scalars);
  if (!measured.pace.untimed) return tableWith(1);
  ir::Expected<double> share = largestShareWithin(
      *measured.pace.untimed, [&](double part) { return predictStep(measured, tableWith(part)); });
  if (!share) return share.takeError();
  return tableWith(*share);
}

}  // namespace stowage::tools
