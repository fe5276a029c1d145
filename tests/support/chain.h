// SPDX-License-Identifier: Apache-2.0
//
// The whole chain for tests: an example model captured and measured once, trained eagerly once, and
// then planned and trained again under as many budgets as a test likes, each time compared byte for
// byte with the eager training. What goes wrong ends the test with the error's text.
#ifndef STOWAGE_TESTS_SUPPORT_CHAIN_H_
#define STOWAGE_TESTS_SUPPORT_CHAIN_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "passes/plan_step.h"
#include "runtime/runner/runner.h"
#include "tests/support/or_fail.h"
#include "tools/training/model_training.h"

namespace stowage::tests {

class Chain {
 public:
  /// Captures, measures each op's temporaries, trains `steps` steps eagerly.
  Chain(tools::Recipe recipe, int64_t steps);

  const ir::Target& target() const { return target_; }
  const runtime::TrainingRecord& eager() const { return eager_; }
  Bytes keepAll() const { return keepAll_; }
  ir::NodeCosts costsOf(const ir::Graph& planned) const {
    return orFail(ir::resolveCosts(planned, costs_));
  }
  /// `percent` of what the step needs when nothing is moved, in whole alignment units.
  Bytes share(int64_t percent) const;

  ir::Expected<passes::PlannedStep> plan(Bytes budget, planner::Allowed allowed = {},
                                         std::vector<planner::Pin> pins = {}) const;
  /// In this order alone, without row blocks.
  ir::Expected<passes::PlannedStep> planIn(passes::Order order, Bytes budget) const;
  ir::Expected<passes::PlannedStep> planWith(const passes::PlanStepOptions& options) const;
  /// Trains by a plan that may have been tampered with. The first difference from the eager
  /// training, or from the plan's peak; "" if there is none.
  std::string difference(const passes::PlannedStep& planned,
                         runtime::RunnerOptions options = {}) const;
  /// The same with the device arena released and restored after every step.
  std::string differenceWithReleases(const passes::PlannedStep& planned,
                                     runtime::RunnerOptions options = {}) const;
  /// The same with every copy as slow as a link of `bytesPerSecond`.
  std::string differenceOnSlowLinks(const passes::PlannedStep& planned,
                                    int64_t bytesPerSecond) const;
  /// Trains by a plan; `afterStep` is called with every step's number, from 0, while the next one
  /// is not enqueued yet. Steps are not compared with their code: that takes the host's memory.
  void run(const passes::PlannedStep& planned,
           const std::function<void(int64_t step)>& afterStep) const;
  /// Another eager training, with another random state.
  runtime::TrainingRecord trainEagerly(uint64_t seed) const;
  /// The recipe, captured afresh with the same first values: what a Runner uses up.
  std::unique_ptr<tools::ModelStep> capture() const;

 private:
  std::string differenceOf(const passes::PlannedStep& planned, const runtime::RunRecord& run) const;
  /// With this chain's seed, steps and batches.
  runtime::RunRecord runPlanned(const passes::PlannedStep& planned, runtime::RunnerOptions runner,
                                runtime::TrainingOptions options) const;

  tools::Recipe recipe_;
  int64_t steps_;
  ir::Target target_;
  ir::Graph graph_;
  ir::CostTable costs_;
  std::vector<runtime::Batch> batches_;
  runtime::TrainingRecord eager_;
  Bytes keepAll_;
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_CHAIN_H_
