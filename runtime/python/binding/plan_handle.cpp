// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/binding/plan_handle.h"

#include <llvm/Support/raw_ostream.h>

#include <nlohmann/json.hpp>

#include "planner/report/plan_summary.h"
#include "runtime/python/binding/throw_error.h"
#include "runtime/session_impl.h"

namespace stowage::python {
namespace {

Plan makePlan(StepHandle& step, int64_t budget, bool ofPeak, int64_t host) {
  PlanOptions options;
  options.budget = Size(Bytes(budget));
  if (ofPeak) {
    options.budget.of = Size::Of::kPeak;
    options.budget.partPerMillion = budget;
  }
  if (host >= 0) options.limits.host = Bytes(host);
  return takeOrThrow(stowage::plan(step.step(), options));
}

planner::PlanSummary summaryOf(const Plan& plan) {
  const planner::PlanFile& file = plan.internals().file;
  return {.graph = plan.graph(),
          .schedule = plan.schedule(),
          .budget = plan.budget(),
          .keepAll = plan.keepAll(),
          .stalls = file.stalls,
          .costs = file.costs.source,
          .outside = file.target.outside,
          .outsideMeasured = file.costs.source == ir::CostSource::kMeasured,
          .planNeeded = plan.keepAll() > plan.budget()};
}

}  // namespace

PlanHandle::PlanHandle(const c10::intrusive_ptr<StepHandle>& step, int64_t budget, bool ofPeak,
                       int64_t host)
    : step_(step), plan_(makePlan(*step, budget, ofPeak, host)) {}

std::string PlanHandle::summaryText() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  planner::printPlanSummary(summaryOf(plan_), stream);
  return text;
}

std::string PlanHandle::summaryJson() const {
  return planner::planSummaryJson(summaryOf(plan_)).dump();
}

void PlanHandle::save(const std::string& path) const { throwError(plan_.trySave(path)); }

}  // namespace stowage::python
