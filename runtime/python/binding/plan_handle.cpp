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
          .planNeeded = plan.keepAll() > plan.budget() || file.graph.hasOtherOps(),
          .unlimited = file.graph.hasOtherOps() ? plan.internals().unlimited : Nanoseconds(0),
          .rowBlocks = file.graph.rowBlocks};
}

}  // namespace

PlanHandle::Request PlanHandle::parse(const std::string& text) {
  const nlohmann::json given = nlohmann::json::parse(text);
  Request request;
  PlanOptions& options = request.options;
  options.budget = Size(Bytes(given.at("budget").get<int64_t>()));
  if (given.at("of_peak").get<bool>()) {
    options.budget.of = Size::Of::kPeak;
    options.budget.partPerMillion = given.at("budget").get<int64_t>();
  }
  if (given.contains("host")) options.limits.host = Bytes(given["host"].get<int64_t>());
  if (given.contains("allow")) {
    ir::Expected<passes::AllowedActions> allowed =
        passes::parseAllowed(given["allow"].get<std::string>());
    if (!allowed) {
      throwError(ir::makeError(ir::ErrorCode::kInvalidArgument,
                               "allow: " + ir::takePayload(allowed.takeError()).text()));
    }
    options.allowed = *allowed;
  }
  options.limits.disk = Bytes(given.value("disk", int64_t{0}));
  options.diskFolder = given.value("disk_folder", "");
  request.verifyDisk = given.value("verify_disk", false);
  request.ways = given.at("ways").get<bool>();
  return request;
}

Plan PlanHandle::makePlan(const Step& step, const Request& request) {
  ir::Expected<Plan> plan = stowage::plan(step, request.options);
  if (!plan && request.ways) throwError(addWaysOut(plan.takeError(), step, request.options));
  return takeOrThrow(std::move(plan));
}

PlanHandle::PlanHandle(const c10::intrusive_ptr<StepHandle>& step, const std::string& request)
    : step_(step), request_(parse(request)), plan_(makePlan(step->step(), request_)) {}

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
  PlanOptions options = request_.options;
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
