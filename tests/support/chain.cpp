// SPDX-License-Identifier: Apache-2.0
#include "tests/support/chain.h"

#include "passes/planned_file.h"
#include "planner/targets/roofline.h"
#include "tests/support/repeatable_costs.h"

namespace stowage::tests {

namespace {

constexpr uint64_t kSeed = 11;

runtime::BatchSource sourceOf(const std::vector<runtime::Batch>& batches) {
  return [&](int64_t i) -> ir::Expected<runtime::Batch> { return batches[static_cast<size_t>(i)]; };
}

}  // namespace

Chain::Chain(tools::Recipe recipe, int64_t steps)
    : recipe_(std::move(recipe)),
      steps_(steps),
      target_(orFail(planner::findTargetProfile("cpu"))) {
  const std::unique_ptr<tools::ModelStep> step = capture();
  graph_ = step->graph;
  costs_ = repeatableCosts(graph_, target_);
  const auto measure = [&](const ir::Graph& blocked) -> ir::Expected<ir::CostTable> {
    return repeatableCosts(blocked, target_);
  };
  orFail(passes::addRowBlockCosts(graph_, costs_, measure));
  for (int64_t i = 0; i < steps; ++i) {
    batches_.push_back(tools::makeInputs(step->training, kSeed + static_cast<uint64_t>(i)));
  }
  eager_ = trainEagerly(kSeed);
  keepAll_ = orFail(plan(Bytes(int64_t{1} << 36))).result.keepAllPeak;
}

std::unique_ptr<tools::ModelStep> Chain::capture() const {
  return orFail(
      tools::captureModel(recipe_, {.target = target_, .seed = kSeed, .withoutMemory = false}));
}

Bytes Chain::share(int64_t percent) const {
  return Bytes(keepAll_.value() * percent / 100 / target_.alignBytes * target_.alignBytes);
}

ir::Expected<passes::PlannedStep> Chain::plan(Bytes budget, planner::Allowed allowed,
                                              std::vector<planner::Pin> pins) const {
  // Asked between searches, so that the same plan is the answer on a slow machine.
  constexpr int kSearches = 40;
  return passes::planStep(graph_, target_, costs_,
                          {.budget = budget,
                           .allowed = allowed,
                           .limits = {},
                           .pins = std::move(pins),
                           .isOver = [asked = 0]() mutable { return ++asked > kSearches; }});
}

ir::Expected<passes::PlannedStep> Chain::planIn(passes::Order order, Bytes budget) const {
  return passes::planStep(graph_, target_, costs_,
                          {.budget = budget,
                           .allowed = {},
                           .limits = {},
                           .pins = {},
                           .pinnedRows = {},
                           .orders = {order},
                           .rowBlocks = {}});
}

ir::Expected<passes::PlannedStep> Chain::planWith(const passes::PlanStepOptions& options) const {
  return passes::planStep(graph_, target_, costs_, options);
}

std::string Chain::differenceOnSlowLinks(const passes::PlannedStep& planned,
                                         int64_t bytesPerSecond) const {
  ir::LinkModel slow;
  slow.deviceToHost = {.bandwidth = BytesPerSecond(bytesPerSecond), .latency = {}};
  slow.hostToDevice = slow.deviceToHost;
  runtime::RunnerOptions options;
  options.links = slow;
  return difference(planned, std::move(options));
}

runtime::RunRecord Chain::runPlanned(const passes::PlannedStep& planned,
                                     runtime::RunnerOptions runner,
                                     runtime::TrainingOptions options) const {
  const std::unique_ptr<tools::ModelStep> step = capture();
  const ir::NodeCosts costs =
      orFail(ir::resolveCosts(planned.graph, passes::costsOf(planned, costs_)));
  if (!runner.checkEvery) runner.checkEvery = 1;
  options.seed = kSeed;
  options.steps = steps_;
  options.batches = sourceOf(batches_);
  return orFail(tools::runByPlan(*step,
                                 {.graph = planned.graph,
                                  .schedule = planned.schedule,
                                  .target = target_,
                                  .costs = &costs,
                                  .options = std::move(runner)},
                                 options));
}

std::string Chain::difference(const passes::PlannedStep& planned,
                              runtime::RunnerOptions options) const {
  runtime::TrainingOptions keeping;
  keeping.keepState = true;
  return differenceOf(planned, runPlanned(planned, std::move(options), std::move(keeping)));
}

std::string Chain::differenceWithReleases(const passes::PlannedStep& planned,
                                          runtime::RunnerOptions options) const {
  runtime::TrainingOptions releasing;
  releasing.keepState = true;
  releasing.releaseEvery = 1;
  const runtime::RunRecord run = runPlanned(planned, std::move(options), std::move(releasing));
  if (static_cast<int64_t>(run.releases.size()) != steps_) {
    return std::to_string(run.releases.size()) + " releases";
  }
  return differenceOf(planned, run);
}

std::string Chain::differenceOf(const passes::PlannedStep& planned,
                                const runtime::RunRecord& run) const {
  const Bytes predicted = planned.schedule.predicted.peakBytes;
  const Bytes peak = run.peak.value_or(Bytes(-1));
  if (peak != predicted) {
    return "its peak is " + std::to_string(peak.value()) + " bytes, predicted " +
           std::to_string(predicted.value());
  }
  return runtime::firstDifference(eager_, run.training);
}

void Chain::run(const passes::PlannedStep& planned,
                const std::function<void(int64_t step)>& afterStep) const {
  runtime::TrainingOptions options;
  options.report = [&](int64_t number, double /*loss*/) { afterStep(number); };
  runtime::RunnerOptions runner;
  runner.checkEvery = 0;
  runPlanned(planned, std::move(runner), std::move(options));
}

runtime::TrainingRecord Chain::trainEagerly(uint64_t seed) const {
  return orFail(tools::trainEagerly(recipe_, target_, seed, steps_, sourceOf(batches_)));
}

}  // namespace stowage::tests
