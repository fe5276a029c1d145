// SPDX-License-Identifier: Apache-2.0
//
// Random decisions on random steps, evaluated, lowered and written to a file: every level is
// proven (the manager verifies after each pass), the arena is the budget to the byte, and the file
// gives the same schedule back.

#include <gtest/gtest.h>
#include <llvm/Support/raw_ostream.h>

#include <utility>

#include "ir/graph/liveness.h"
#include "ir/verify/verify.h"
#include "passes/lower.h"
#include "planner/evaluate/evaluate.h"
#include "planner/files/plan_json.h"
#include "tests/support/random.h"
#include "tests/support/random_graph.h"

namespace stowage::passes {
namespace {

constexpr uint64_t kSeeds = 60;
constexpr Bytes kAmple{int64_t{1} << 40};

/// Every gap of every storage, with a random action.
std::vector<ir::DecisionRow> makeRows(const ir::Graph& graph, tests::Random& random) {
  std::vector<ir::DecisionRow> rows;
  const std::vector<ir::StorageLife> lives = ir::computeLives(graph);
  const auto nodes = static_cast<int64_t>(graph.nodes().size());
  for (size_t i = 0; i < lives.size(); ++i) {
    const std::vector<ir::Touch>& touches = lives[i].touches;
    for (size_t k = 0; k < touches.size(); ++k) {
      const bool isLast = k + 1 == touches.size();
      if (isLast && !graph.storages()[i].persistent) continue;
      const int64_t end = isLast ? touches[0].position + nodes : touches[k + 1].position;
      const auto action = random.chance(50) ? ir::GapAction::kHost : ir::GapAction::kRecompute;
      rows.push_back({ir::StorageId(i), touches[k].position, end, action, false, ""});
    }
  }
  return rows;
}

/// Those of the rows that may be decided together, tried one after the other.
planner::Timetable evaluateWhatIsLegal(const planner::Problem& problem,
                                       const std::vector<ir::DecisionRow>& rows) {
  planner::Decisions decisions;
  ir::Expected<planner::Timetable> best = planner::evaluate(problem, decisions, kAmple);
  EXPECT_TRUE(static_cast<bool>(best));
  for (const ir::DecisionRow& row : rows) {
    decisions.rows.push_back(row);
    ir::Expected<planner::Timetable> next = planner::evaluate(problem, decisions, kAmple);
    if (next) {
      best = std::move(next);
    } else {
      llvm::consumeError(next.takeError());
      decisions.rows.pop_back();
    }
  }
  return std::move(*best);
}

class Lowered {
 public:
  explicit Lowered(uint64_t seed)
      : graph_(tests::makeRandomStep(seed, {.maxLayers = 3, .maxMicroBatches = 1})),
        target_(tests::makeTestTarget()),
        costs_(tests::makeRandomCosts(graph_, seed)) {
    tests::Random random(seed);
    ir::Expected<planner::Problem> problem = planner::makeProblem(graph_, target_, costs_);
    EXPECT_TRUE(static_cast<bool>(problem));
    std::vector<ir::DecisionRow> rows = makeRows(graph_, random);
    // A sample, in order: all of them would take the search's time.
    std::erase_if(rows, [&](const ir::DecisionRow&) { return !random.chance(15); });
    timetable = evaluateWhatIsLegal(*problem, rows);
    nodeCosts_ = problem->costs;
  }

  ir::Expected<ir::Schedule> lower(Bytes budget) const {
    return lowerTimetable(graph_, target_, timetable, budget);
  }

  ir::Error prove(const ir::Schedule& schedule, Bytes budget) const {
    return ir::verifyOrError({.graph = graph_,
                              .schedule = schedule,
                              .target = target_,
                              .costs = &nodeCosts_,
                              .budget = budget});
  }

  planner::PlanFile file(ir::Schedule schedule, Bytes budget) const {
    return planner::makePlanFile(graph_, target_, std::move(schedule), budget);
  }

  planner::Timetable timetable;

 private:
  ir::Graph graph_;
  ir::Target target_;
  ir::CostTable costs_;
  ir::NodeCosts nodeCosts_;
};

TEST(LowerProperty, EveryTimetableLowersToAProvenSchedule) {
  size_t decided = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Lowered step(seed);
    decided += step.timetable.decisions.rows.size();
    const Bytes budget = step.timetable.devicePeak + Bytes(seed % 2 == 0 ? 0 : 4096);
    ir::Expected<ir::Schedule> schedule = step.lower(budget);
    ASSERT_TRUE(static_cast<bool>(schedule))
        << "seed " << seed << ": " << ir::describe(schedule.takeError());
    EXPECT_EQ(schedule->arenaBytes(ir::Space::kDevice), budget);
    EXPECT_EQ(schedule->predicted.peakBytes, step.timetable.devicePeak);
    EXPECT_EQ(schedule->predicted.stepTime, step.timetable.stepTime);
    EXPECT_EQ(schedule->predicted.bytesOut, step.timetable.bytesOut);
    EXPECT_EQ(schedule->predicted.bytesIn, step.timetable.bytesIn);
    EXPECT_EQ(schedule->decisions, step.timetable.decisions.rows);
    ASSERT_EQ(ir::describe(step.prove(*schedule, budget)), "") << "seed " << seed;
  }
  EXPECT_GT(decided, 100U);
}

TEST(LowerProperty, TheFileGivesTheScheduleBack) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Lowered step(seed);
    const Bytes budget = step.timetable.devicePeak;
    ir::Expected<ir::Schedule> schedule = step.lower(budget);
    ASSERT_TRUE(static_cast<bool>(schedule));
    std::string text;
    llvm::raw_string_ostream os(text);
    ASSERT_EQ(ir::describe(planner::writePlan(step.file(*schedule, budget), os)), "");
    ir::Expected<planner::PlanFile> again = planner::readPlan(os.str());
    ASSERT_TRUE(static_cast<bool>(again)) << ir::describe(again.takeError());
    EXPECT_EQ(again->schedule, *schedule) << "seed " << seed;
  }
}

TEST(LowerProperty, ABudgetBelowThePeakIsInfeasible) {
  const Lowered step(3);
  const Bytes peak = step.timetable.devicePeak;
  ir::Expected<ir::Schedule> schedule = step.lower(peak - Bytes(1));
  ASSERT_FALSE(static_cast<bool>(schedule));
  const ir::PlanError error = ir::takePayload(schedule.takeError());
  EXPECT_EQ(error.code(), ir::ErrorCode::kInfeasible);
  ASSERT_TRUE(error.infeasible().has_value());
  EXPECT_EQ(error.infeasible()->smallestBudget, peak);
}

}  // namespace
}  // namespace stowage::passes
