// SPDX-License-Identifier: Apache-2.0
#include "tests/support/chain.h"

#include "planner/roofline.h"
#include "runtime/calibrate.h"

namespace stowage::tests {

namespace {

constexpr uint64_t kSeed = 11;

ir::Target cpuTarget(const std::optional<ir::LinkModel>& links) {
  ir::Target target = orFail(planner::findTargetProfile("cpu"));
  if (links) target.links = *links;
  return target;
}

tools::BatchSource sourceOf(const std::vector<tools::Batch>& batches) {
  return [&](int64_t i) -> ir::Expected<tools::Batch> { return batches[static_cast<size_t>(i)]; };
}

}  // namespace

Chain::Chain(tools::Recipe recipe, int64_t steps, std::optional<ir::LinkModel> links)
    : recipe_(std::move(recipe)), steps_(steps), target_(cpuTarget(links)) {
  const std::unique_ptr<tools::ModelStep> step = capture();
  graph_ = step->graph;
  costs_ = orFail(runtime::calibrate(graph_, {.intraOpThreads = target_.intraOpThreads,
                                              .deterministic = target_.deterministic,
                                              .runs = 1,
                                              .known = {}}));
  costs_.links = target_.links;
  for (int64_t i = 0; i < steps; ++i) {
    batches_.push_back(tools::makeInputs(step->training, kSeed + static_cast<uint64_t>(i)));
  }
  eager_ = trainEagerly(kSeed);
  keepAll_ = orFail(plan(Bytes(int64_t{1} << 36))).result.keepAllHeight;
}

std::unique_ptr<tools::ModelStep> Chain::capture() const {
  return orFail(
      tools::captureModel(recipe_, {.target = target_, .seed = kSeed, .withoutMemory = false}));
}

Bytes Chain::share(int64_t percent) const {
  return Bytes(keepAll_.value() * percent / 100 / target_.alignBytes * target_.alignBytes);
}

ir::Expected<passes::PlannedStep> Chain::plan(Bytes budget, planner::Allowed allowed) const {
  return passes::planStep(graph_, target_, costs_, {.budget = budget, .allowed = allowed});
}

tools::TrainingRecord Chain::train(const passes::PlannedStep& planned,
                                   runtime::RunnerOptions options) const {
  const std::unique_ptr<tools::ModelStep> step = capture();
  const ir::NodeCosts costs = orFail(ir::resolveCosts(planned.graph, costs_));
  return orFail(tools::trainByPlan(*step,
                                   {.graph = planned.graph,
                                    .schedule = planned.schedule,
                                    .target = target_,
                                    .costs = &costs,
                                    .options = options},
                                   kSeed, steps_, sourceOf(batches_)));
}

std::string Chain::difference(const passes::PlannedStep& planned,
                              runtime::RunnerOptions options) const {
  return tools::firstDifference(eager_, train(planned, options));
}

tools::TrainingRecord Chain::trainEagerly(uint64_t seed) const {
  return orFail(tools::trainEagerly(recipe_, target_, seed, steps_, sourceOf(batches_)));
}

}  // namespace stowage::tests
