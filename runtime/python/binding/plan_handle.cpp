// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/binding/plan_handle.h"

#include <llvm/Support/raw_ostream.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "planner/report/memory_chart.h"
#include "planner/report/plan_summary.h"
#include "planner/targets/roofline.h"
#include "runtime/python/binding/throw_error.h"
#include "runtime/session_impl.h"

namespace stowage::python {
namespace {

PlanOptions makeOptions(int64_t budget, bool ofPeak, int64_t host) {
  PlanOptions options;
  options.budget = Size(Bytes(budget));
  if (ofPeak) {
    options.budget.of = Size::Of::kPeak;
    options.budget.partPerMillion = budget;
  }
  if (host >= 0) options.limits.host = Bytes(host);
  return options;
}

planner::PlanSummary summaryOf(const Plan& plan) {
  const planner::PlanFile& file = plan.internals().file;
  return {.graph = plan.graph(),
          .schedule = plan.schedule(),
          .budget = plan.budget(),
          .keepAll = plan.keepAll(),
          .stalls = file.stalls,
          .costs = {.source = file.costs.source,
                    .estimate = planner::describeEstimate(file.target),
                    .errorPercent = planner::estimateErrorPercent(file.target)},
          .outside = file.target.outside,
          .outsideMeasured = file.costs.source == ir::CostSource::kMeasured,
          .planNeeded = plan.keepAll() > plan.budget()};
}

}  // namespace

PlanHandle::PlanHandle(const c10::intrusive_ptr<StepHandle>& step, int64_t budget, bool ofPeak,
                       int64_t host)
    : step_(step),
      options_(makeOptions(budget, ofPeak, host)),
      plan_(takeOrThrow(stowage::plan(step->step(), options_))) {}

std::string PlanHandle::summaryText() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  planner::printPlanSummary(summaryOf(plan_), stream);
  return text;
}

std::string PlanHandle::summaryJson() const {
  return planner::planSummaryJson(summaryOf(plan_)).dump();
}

std::string PlanHandle::memorySvg() const {
  const Plan::Impl& plan = plan_.internals();
  const planner::ExplainInput input = {.graph = plan.graph,
                                       .schedule = plan.file.schedule,
                                       .costs = plan.costs,
                                       .alignBytes = plan.file.target.alignBytes};
  std::string text;
  llvm::raw_string_ostream stream(text);
  planner::drawMemory(planner::makeMemoryChart(input, plan.file.target, plan.file.budget), stream);
  return stream.str();
}

int64_t PlanHandle::smallestBudget() const {
  PlanOptions options = options_;
  options.budget = Size(Bytes(plan_.internals().file.target.alignBytes));
  std::optional<KeptPlanner>& kept = step_->step().internals().planner;
  const bool isKept = kept.has_value();
  ir::Expected<Plan> none = stowage::plan(step_->step(), options);
  if (!isKept) kept.reset();  // the step runs
  if (none) return none->budget().value();
  const ir::PlanError error = ir::takePayload(none.takeError());
  if (!error.infeasible()) throwError(ir::makeError(error));
  const bool isDevice = error.infeasible()->space == ir::spaceName(ir::Space::kDevice);
  return isDevice ? error.infeasible()->smallestBudget.value() : 0;
}

void PlanHandle::save(const std::string& path) const { throwError(plan_.trySave(path)); }

}  // namespace stowage::python
