// SPDX-License-Identifier: Apache-2.0
//
// Planner, passes and executor together, on random steps: what planStep answers under a budget is
// proven by the verifier and, on the fake device, under random delays and with freed bytes
// poisoned, gives what the plain execution gives.
#include <gtest/gtest.h>

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "passes/plan_step.h"
#include "planner/evaluate/timing.h"
#include "runtime/executor/enqueue_plan.h"
#include "runtime/fake/fake_device.h"
#include "tests/support/expect_sound.h"
#include "tests/support/fake_training.h"
#include "tests/support/or_fail.h"
#include "tests/support/random_graph.h"
#include "tests/support/recording_device.h"

namespace stowage::tests {
namespace {

// STOWAGE_PLANNED_SEEDS asks for more.
uint64_t seedCount() {
  const char* asked = std::getenv("STOWAGE_PLANNED_SEEDS");
  return asked == nullptr ? 40 : std::strtoull(asked, nullptr, 10);
}

constexpr int kSteps = 3;
constexpr std::array<planner::Allowed, 4> kAllowed = {
    {{}, {.recompute = false}, {.offload = false}, {.inPlaceReuse = false}}};

/// What the schedules that ran had in them.
struct Met {
  int64_t copies = 0;
  int64_t recomputes = 0;
  int64_t inPlaceReuses = 0;
  std::vector<double> shares;  // of played and predicted step times

  void add(const ir::Schedule& schedule) {
    for (const ir::Command& command : schedule.commands) {
      copies += command.kind == ir::CommandKind::kCopy ? 1 : 0;
      recomputes += command.recompute > 0 ? 1 : 0;
      inPlaceReuses += command.takes.isValid() ? 1 : 0;
    }
  }
};

/// A random step with costs whose links differ from seed to seed.
class PlannedRun {
 public:
  explicit PlannedRun(uint64_t seed)
      : seed_(seed),
        target_(makeTestTarget()),
        graph_(seed % 2 == 0 ? makeRandomStep(seed, {.maxLayers = 4}) : makeTinyGraph(seed)),
        costs_(makeRandomCosts(graph_, seed)) {}

  ir::Expected<passes::PlannedStep> plan(Bytes budget,
                                         ir::GraphMode mode = ir::GraphMode::kNone) const {
    return passes::planStep(
        graph_, target_, costs_,
        {.budget = budget, .allowed = kAllowed[seed_ % kAllowed.size()], .graphMode = mode});
  }
  bool hasScalars() const { return !graph_.scalars().empty(); }
  /// That the update writes, such as step counters.
  bool hasHostState() const {
    return llvm::any_of(graph_.storages(), [](const ir::Storage& storage) {
      return storage.home == ir::Space::kHost && storage.persistent;
    });
  }

  Bytes smallestBudget() const {
    ir::Expected<passes::PlannedStep> infeasible = plan(Bytes(1));
    EXPECT_FALSE(infeasible) << "seed " << seed_;
    if (infeasible) return Bytes(1);
    const ir::PlanError answer = ir::takePayload(infeasible.takeError());
    EXPECT_TRUE(answer.infeasible().has_value()) << "seed " << seed_ << ": " << answer.text();
    return answer.infeasible() ? answer.infeasible()->smallestBudget : Bytes(1);
  }

  void expectRight(Bytes budget, Met& met) const {
    const passes::PlannedStep planned = orFail(plan(budget));
    const ir::NodeCosts costs = costsOf(planned);
    expectSound({planned.graph, planned.schedule, target_, costs, budget, seed_}, kSteps);
    met.shares.push_back(playedShare(planned, costs));
    EXPECT_GE(met.shares.back(), 0.99) << "seed " << seed_;
    met.add(planned.schedule);
  }

  struct Recorded {
    int64_t launches = 0;
    int64_t records = 0;
  };
  /// From records, of steps whose numbers change after every third.
  Recorded expectRightFromARecord(Bytes budget, ir::GraphMode mode) const {
    const passes::PlannedStep planned = orFail(plan(budget, mode));
    EXPECT_EQ(planned.schedule.graphMode, mode);
    expectOneBoundary(planned, mode);
    const ir::NodeCosts costs = costsOf(planned);
    expectProven({planned.graph, planned.schedule, target_, costs, budget, seed_});
    runtime::FakeDevice device(planned.schedule.arenas,
                               {.seed = seed_, .most = Nanoseconds(100'000), .commands = {}});
    RecordingDevice recording(device);
    EXPECT_EQ(compareWithReference(recording,
                                   {planned.graph, planned.schedule, target_, &costs, nullptr}, 8,
                                   /*stepsPerNumber=*/3),
              "")
        << "seed " << seed_ << ", " << budget.value() << " bytes, " << ir::graphModeName(mode);
    expectPredictedTime(planned, costs);
    return {recording.launches(), recording.records()};
  }

 private:
  ir::NodeCosts costsOf(const passes::PlannedStep& planned) const {
    return orFail(ir::resolveCosts(planned.graph, passes::costsOf(planned, costs_),
                                   planned.schedule.graphMode));
  }

  /// Planner and executor end a graph at the same command.
  void expectOneBoundary(const passes::PlannedStep& planned, ir::GraphMode mode) const {
    if (mode != ir::GraphMode::kNoUpdate) return;
    const runtime::EnqueuePlan enqueued =
        orFail(runtime::makeEnqueuePlan(planned.graph, planned.schedule));
    const size_t commands = planned.schedule.commands.size();
    EXPECT_EQ(planner::findMeetings(planned.graph, mode, planned.schedule.commands).back(),
              enqueued.firstUpdate < commands ? enqueued.firstUpdate : 0)
        << "seed " << seed_;
  }

  /// What a step takes by the fake device's clock, its host's included, as a share of the
  /// prediction.
  double playedShare(const passes::PlannedStep& planned, const ir::NodeCosts& costs) const {
    constexpr int kRun = 20;
    constexpr int kSettled = 10;
    runtime::FakeDevice device(planned.schedule.arenas);
    RecordingDevice recording(device);
    EXPECT_EQ(compareWithReference(
                  recording, {planned.graph, planned.schedule, target_, &costs, nullptr}, kRun),
              "");
    const std::vector<runtime::StepSpan>& spans = device.stepSpans();
    if (spans.size() < kRun) return 0;
    const int64_t passed = (spans[kRun - 1].end - spans[kSettled - 1].end).value();
    return static_cast<double>(passed) / (kRun - kSettled) /
           static_cast<double>(planned.schedule.predicted.stepTime.value());
  }

  /// Streams meet around what is recorded: the plan's time knows it.
  void expectPredictedTime(const passes::PlannedStep& planned, const ir::NodeCosts& costs) const {
    EXPECT_NEAR(playedShare(planned, costs), 1, 0.01)
        << "seed " << seed_ << ", " << ir::graphModeName(planned.schedule.graphMode);
  }

  uint64_t seed_;
  ir::Target target_;
  ir::Graph graph_;
  ir::CostTable costs_;
};

TEST(PlannedRun, IsProvenAndGivesWhatThePlainStepGives) {
  Met met;
  for (uint64_t seed = 0; seed < seedCount() && !HasFailure(); ++seed) {
    const PlannedRun run(seed);
    const int64_t smallest = run.smallestBudget().value();
    for (const int64_t quarters : {4, 5, 7}) run.expectRight(Bytes(smallest * quarters / 4), met);
  }
  std::printf("%ld copies, %ld recomputes, %ld in-place reuses\n", met.copies, met.recomputes,
              met.inPlaceReuses);
  // For some the caller waits for an input's place or for an output, which no prediction counts.
  std::sort(met.shares.begin(), met.shares.end());
  EXPECT_LE(met.shares[met.shares.size() * 3 / 4], 1.01);
  EXPECT_LE(met.shares.back(), 1.5);
  EXPECT_GT(met.copies, 0);
  EXPECT_GT(met.recomputes, 0);
  EXPECT_GT(met.inPlaceReuses, 0);
}

TEST(PlannedRun, GivesTheSameFromARecordedStep) {
  int64_t withNumbers = 0;
  int64_t without = 0;
  for (uint64_t seed = 0; seed < seedCount() && !HasFailure(); ++seed) {
    const PlannedRun run(seed);
    const Bytes budget(run.smallestBudget().value() * 3 / 2);
    EXPECT_EQ(run.expectRightFromARecord(budget, ir::GraphMode::kNoUpdate).records, 1);
    ir::Expected<passes::PlannedStep> asked = run.plan(budget, ir::GraphMode::kWhole);
    if (!asked) {
      const ir::PlanError error = ir::takePayload(asked.takeError());
      // Either more is needed when nothing crosses the step boundary, or results stay on the host.
      EXPECT_EQ(error.code(), ir::ErrorCode::kInfeasible);
      EXPECT_EQ(run.hasHostState(), error.text().find("on the host, which") != std::string::npos);
      continue;
    }
    EXPECT_FALSE(run.hasHostState()) << "seed " << seed;
    EXPECT_TRUE(asked->schedule.joined) << "seed " << seed;
    const PlannedRun::Recorded whole = run.expectRightFromARecord(budget, ir::GraphMode::kWhole);
    EXPECT_EQ(whole.launches, 7);
    EXPECT_EQ(whole.records, run.hasScalars() ? 3 : 1);
    ++(run.hasScalars() ? withNumbers : without);
  }
  EXPECT_GT(withNumbers, 0);
  EXPECT_GT(without, 0);
}

}  // namespace
}  // namespace stowage::tests
