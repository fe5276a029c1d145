// SPDX-License-Identifier: Apache-2.0
//
// The disk below the host, on random steps: whatever is sent there by pins or for want of host
// memory, plans are proven, keep to their limits, and give what the plain execution gives. And
// what a refusal asks for under limits of the host.
#include <gtest/gtest.h>

#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "passes/plan_step.h"
#include "tests/support/expect_sound.h"
#include "tests/support/or_fail.h"
#include "tests/support/random_graph.h"

namespace stowage::tests {
namespace {

constexpr uint64_t kSeeds = 6;
constexpr int kSteps = 4;
constexpr Bytes kDisk(int64_t{1} << 40);

int64_t diskCommands(const ir::Schedule& schedule) {
  return llvm::count_if(schedule.commands, [](const ir::Command& command) {
    return command.stream == ir::Stream::kDiskRead || command.stream == ir::Stream::kDiskWrite;
  });
}

/// A random step, planned with a disk.
class DiskStep {
 public:
  explicit DiskStep(uint64_t seed)
      : seed_(seed),
        target_(makeTestTarget()),
        graph_(makeRandomStep(seed, {.maxLayers = 4})),
        costs_(makeRandomCosts(graph_, seed)) {}

  ir::Expected<passes::PlannedStep> plan(Bytes budget, Bytes host, Bytes disk,
                                         std::vector<planner::Pin> pins = {}) const {
    return passes::planStep(
        graph_, target_, costs_,
        {.budget = budget,
         .allowed = {.disk = true, .recompute = seed_ % 4 < 2},
         .limits = {.host = host, .disk = disk},
         .pins = std::move(pins),
         .orders = {seed_ % 2 == 0 ? passes::Order::kProgram : passes::Order::kHoisted},
         .rowBlocks = {}});
  }
  ir::Expected<passes::PlannedStep> planWithoutLimit(Bytes budget) const {
    return plan(budget, Bytes(INT64_MAX), Bytes(0));
  }

  Bytes smallestBudget() const {
    ir::Expected<passes::PlannedStep> infeasible = planWithoutLimit(Bytes(1));
    if (infeasible) return Bytes(1);
    const ir::PlanError answer = ir::takePayload(infeasible.takeError());
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

// The smallest host limit of a refusal works, and nothing below it.
TEST(DiskProperty, TakesWhatTheHostHasNoRoomFor) {
  int64_t onDisk = 0;
  int64_t lower = 0;
  for (uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    const DiskStep step(seed);
    const Bytes smallest = step.smallestBudget();
    for (const Bytes budget : {smallest, Bytes(smallest.value() * 3 / 2)}) {
      const passes::PlannedStep free = orFail(step.planWithoutLimit(budget));
      const int64_t host = free.result.timetable.hostPeak.value();
      for (const Bytes limit : {Bytes(host * 2 / 3), Bytes(host / 3), Bytes(0)}) {
        ir::Expected<passes::PlannedStep> planned = step.plan(budget, limit, kDisk);
        Bytes kept = limit;
        if (!planned) {
          const ir::PlanError error = ir::takePayload(planned.takeError());
          ASSERT_TRUE(error.infeasible()) << "seed " << seed << ": " << error.text();
          ASSERT_EQ(error.infeasible()->space, "host") << "seed " << seed << ": " << error.text();
          kept = error.infeasible()->smallestBudget;
          ASSERT_GT(kept, limit);
          planned = step.plan(budget, kept, kDisk);
          ASSERT_TRUE(static_cast<bool>(planned)) << "seed " << seed << ": " << error.text() << "\n"
                                                  << ir::takePayload(planned.takeError()).text();
        }
        EXPECT_LE(planned->result.timetable.hostPeak, kept) << "seed " << seed;
        onDisk += diskCommands(planned->schedule);
        lower += planned->result.timetable.diskPeak > Bytes(0) ? 1 : 0;
        step.expectRight(*planned, budget);
      }
    }
  }
  EXPECT_GT(onDisk, 200);
  EXPECT_GT(lower, 10);
}

// As if there were none: the host's bytes that a refusal names are enough.
TEST(DiskProperty, ADiskThatIsTooSmallIsNoneAtAll) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const DiskStep step(seed);
    const Bytes budget(step.smallestBudget().value() * 3 / 2);
    ir::Expected<passes::PlannedStep> refused = step.plan(budget, Bytes(0), Bytes(4096));
    if (refused) continue;
    const ir::PlanError error = ir::takePayload(refused.takeError());
    ASSERT_TRUE(error.infeasible()) << error.text();
    if (error.infeasible()->space != "host") continue;
    const Bytes host = error.infeasible()->smallestBudget;
    ir::Expected<passes::PlannedStep> fits = step.plan(budget, host, Bytes(4096));
    EXPECT_TRUE(static_cast<bool>(fits)) << "seed " << seed << ": " << error.text();
    if (!fits) llvm::consumeError(fits.takeError());
    EXPECT_LT(host, Bytes(int64_t{1} << 40)) << "seed " << seed;
  }
}

// The orders of a step lack different things. What the refusal asks for is enough for one of them.
TEST(HostLimitProperty, ARefusalOfSeveralOrdersNamesWhatWorks) {
  int hosts = 0;
  for (uint64_t seed = 0; seed < 12 && !HasFailure(); ++seed) {
    const ir::Target target = makeTestTarget();
    const ir::Graph graph = makeRandomStep(seed, {.maxLayers = 1, .maxMicroBatches = 1});
    const ir::CostTable costs = makeRandomCosts(graph, seed);
    const auto plan = [&](Bytes budget, Bytes host) {
      return passes::planStep(graph, target, costs,
                              {.budget = budget, .limits = {.host = host}, .rowBlocks = {}});
    };
    ir::Expected<passes::PlannedStep> none = plan(Bytes(1), Bytes(INT64_MAX));
    ASSERT_FALSE(static_cast<bool>(none));
    const ir::PlanError least = ir::takePayload(none.takeError());
    if (!least.infeasible()) continue;  // an op that no plan can hold
    const Bytes smallest = least.infeasible()->smallestBudget;
    for (const int percent : {90, 110}) {
      const Bytes budget(smallest.value() * percent / 100);
      ir::Expected<passes::PlannedStep> refused = plan(budget, Bytes(0));
      if (refused) continue;
      const ir::PlanError error = ir::takePayload(refused.takeError());
      ASSERT_TRUE(error.infeasible()) << error.text();
      const ir::Infeasible& asked = *error.infeasible();
      if (asked.lacksDevice) continue;
      const bool isHost = asked.space == "host";
      hosts += isHost ? 1 : 0;
      ir::Expected<passes::PlannedStep> fits =
          isHost ? plan(budget, asked.smallestBudget) : plan(asked.smallestBudget, Bytes(0));
      EXPECT_TRUE(static_cast<bool>(fits)) << "seed " << seed << ": " << error.text();
      if (!fits) llvm::consumeError(fits.takeError());
    }
  }
  EXPECT_GT(hosts, 3);
}

TEST(DiskProperty, PinsSendThere) {
  int64_t onDisk = 0;
  for (uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    const DiskStep step(seed);
    const Bytes budget(step.smallestBudget().value() * 2);
    for (const char* pattern : {"*", "m*", "*1*"}) {
      ir::Expected<passes::PlannedStep> planned =
          step.plan(budget, Bytes(INT64_MAX), kDisk, {{pattern, ir::GapAction::kDisk}});
      if (!planned) {
        // A name may match nothing that can go there.
        const ir::PlanError error = ir::takePayload(planned.takeError());
        EXPECT_NE(error.text().find("pin"), std::string::npos) << error.text();
        continue;
      }
      onDisk += diskCommands(planned->schedule);
      step.expectRight(*planned, budget);
    }
  }
  EXPECT_GT(onDisk, 200);
}

}  // namespace
}  // namespace stowage::tests
