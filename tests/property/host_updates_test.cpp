// SPDX-License-Identifier: Apache-2.0
//
// Updates on the host, on random steps: whatever share of them is marked, plans are proven, and on
// the fake device, under random delays and with freed bytes poisoned, a planned step gives what the
// plain execution gives.
#include <gtest/gtest.h>

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <array>

#include "ir/graph/check_graph.h"
#include "passes/normalise/hoist_updates.h"
#include "passes/normalise/host_updates.h"
#include "passes/plan_step.h"
#include "tests/support/expect_sound.h"
#include "tests/support/or_fail.h"
#include "tests/support/random_graph.h"

namespace stowage::tests {
namespace {

constexpr uint64_t kSeeds = 60;
constexpr int kSteps = 4;
constexpr std::array<int64_t, 3> kPercents = {100, 50, 10};

/// A random step with updates on the host, hoisted or as it came.
class HostStep {
 public:
  explicit HostStep(uint64_t seed) : seed_(seed), target_(makeTestTarget()) {
    passes::PassState state;
    state.graph = makeRandomStep(seed, {.maxLayers = 4});
    if (seed % 2 == 0) orFail(passes::HoistUpdates().run(state));
    orFail(passes::HostUpdates({kPercents[seed % kPercents.size()]}).run(state));
    graph_ = std::move(state.graph);
    costs_ = makeRandomCosts(graph_, seed);
  }

  const ir::Graph& graph() const { return graph_; }
  int64_t countMarked() const {
    return llvm::count_if(graph_.nodes(), [](const ir::Node& node) { return node.onHost; });
  }

  ir::Expected<passes::PlannedStep> plan(Bytes budget) const {
    return passes::planStep(
        graph_, target_, costs_,
        {.budget = budget, .orders = {passes::Order::kProgram}, .rowBlocks = {}});
  }

  Bytes smallestBudget() const {
    ir::Expected<passes::PlannedStep> infeasible = plan(Bytes(1));
    if (infeasible) return Bytes(1);
    const ir::PlanError answer = ir::takePayload(infeasible.takeError());
    EXPECT_TRUE(answer.infeasible().has_value()) << "seed " << seed_ << ": " << answer.text();
    return answer.infeasible() ? answer.infeasible()->smallestBudget : Bytes(1);
  }

  void expectRight(const passes::PlannedStep& planned, Bytes budget) const {
    const ir::NodeCosts costs = orFail(ir::resolveCosts(planned.graph, costs_));
    expectSound({planned.graph, planned.schedule, target_, costs, budget, seed_}, kSteps);
  }

 private:
  uint64_t seed_;
  ir::Target target_;
  ir::Graph graph_;
  ir::CostTable costs_;
};

TEST(HostUpdatesProperty, PlansWithUpdatesOnTheHostGiveTheBitsOfThePlainStep) {
  int64_t marked = 0;
  int64_t onHost = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const HostStep step(seed);
    ASSERT_EQ(ir::describe(ir::checkGraph(step.graph())), "") << "seed " << seed;
    if (step.countMarked() == 0) continue;
    marked += step.countMarked();
    const Bytes smallest = step.smallestBudget();
    for (const Bytes budget : {smallest, Bytes(smallest.value() * 2)}) {
      const passes::PlannedStep planned = orFail(step.plan(budget));
      step.expectRight(planned, budget);
      onHost += llvm::count_if(planned.schedule.commands, [](const ir::Command& command) {
        return command.stream == ir::Stream::kHostCompute;
      });
    }
  }
  EXPECT_EQ(onHost, 2 * marked);
  EXPECT_GT(marked, 100);
}

}  // namespace
}  // namespace stowage::tests
