// SPDX-License-Identifier: Apache-2.0
//
// Whatever is decided, the timetable is sound: random decisions on random steps, played with random
// delays. And the player itself notices when a wait is missing or a byte is shared.
#include <gtest/gtest.h>

#include <random>

#include "planner/bound/bound_solver.h"
#include "planner/evaluate/evaluation.h"
#include "planner/evaluate/timeline.h"
#include "tests/support/random_step.h"
#include "tests/support/schedule_player.h"

namespace stowage::planner {
namespace {

struct Case {
  explicit Case(uint64_t seed, int layers)
      : graph(tests::makeRandomStep({.seed = seed, .layers = layers})),
        target(tests::makeSmallTarget(seed)),
        problem(llvm::cantFail(makeProblem(
            graph, target,
            tests::makeRandomCosts(graph, seed, 20 + 50 * static_cast<int64_t>(seed % 7))))) {
    problem.graphMode = seed % 5 == 0   ? ir::GraphMode::kWhole
                        : seed % 5 == 1 ? ir::GraphMode::kNoUpdate
                                        : ir::GraphMode::kNone;
  }
  ir::Graph graph;
  ir::Target target;
  Problem problem;
};

Actions drawActions(const GapTable& table, uint64_t seed) {
  std::mt19937_64 random(seed);
  const uint64_t host = random() % 100;
  const uint64_t recompute = random() % 100;
  Actions actions;
  for (const Gap& gap : table.gaps()) {
    ir::GapAction action = ir::GapAction::kKeep;
    if (gap.mayRecompute && random() % 100 < recompute) action = ir::GapAction::kRecompute;
    if (gap.mayHost && random() % 100 < host) action = ir::GapAction::kHost;
    actions.push_back(action);
  }
  return actions;
}

TEST(EvaluateProperty, AnyDecisionsGiveASoundTimetable) {
  int evaluated = 0;
  int64_t recomputes = 0;
  int64_t copies = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const Case c(seed, 1 + static_cast<int>(seed % 9));
    const GapTable table(c.problem);
    const auto prefetchLimit = static_cast<int64_t>(seed * 7919 % 300000);
    ir::Expected<Timetable> timetable =
        evaluateActions(table, drawActions(table, seed), prefetchLimit);
    if (!timetable) {  // a version that is gone
      EXPECT_EQ(ir::takePayload(timetable.takeError()).code(), ir::ErrorCode::kInvalidArgument);
      continue;
    }
    ++evaluated;
    EXPECT_GE(timetable->stepTime.value(), BoundSolver(table).bound(timetable->devicePeak.value()))
        << "seed " << seed;
    ir::NodeId before(0);
    Nanoseconds waited;
    for (const StallAt& stall : timetable->stallsAt) {
      EXPECT_LE(before, stall.node) << "seed " << seed;
      before = stall.node;
      waited += stall.time;
    }
    EXPECT_EQ(waited, timetable->stalls.deviceToHost + timetable->stalls.hostToDevice);
    ir::Schedule schedule = tests::toSchedule(c.graph, c.target, *timetable);
    schedule.graphMode = c.problem.graphMode;
    for (const ir::Command& command : schedule.commands) {
      recomputes += command.recompute > 0 ? 1 : 0;
      copies += command.kind == ir::CommandKind::kCopy ? 1 : 0;
    }
    for (uint64_t play = 0; play < 3; ++play) {
      ASSERT_EQ(tests::playSchedule(c.graph, c.target, schedule, seed + play), "")
          << "seed " << seed;
    }
    EXPECT_EQ(computeTimeline(c.graph, schedule, c.problem.costs, c.target.alignBytes).stepTime,
              timetable->stepTime)
        << "seed " << seed;
  }
  EXPECT_GT(evaluated, 300);
  EXPECT_GT(recomputes, 1000);
  EXPECT_GT(copies, 5000);
}

TEST(EvaluateProperty, ThePlayerNoticesMissingWaits) {
  int noticed = 0;
  int dropped = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Case c(seed, 3);
    const GapTable table(c.problem);
    ir::Expected<Timetable> timetable = evaluateActions(table, drawActions(table, seed), 20000);
    if (!timetable) {
      llvm::consumeError(timetable.takeError());
      continue;
    }
    ir::Schedule schedule = tests::toSchedule(c.graph, c.target, *timetable);
    for (ir::Command& command : schedule.commands) {
      for (int part = 0; part < 2; ++part) {
        auto saved = command.wait;
        if (part == 0 && saved.empty()) continue;
        if (part == 1 && command.prev.empty()) continue;
        auto savedPrev = command.prev;
        (part == 0 ? command.wait.clear() : command.prev.clear());
        ++dropped;
        bool bad = false;
        for (uint64_t play = 0; play < 20 && !bad; ++play) {
          bad = !tests::playSchedule(c.graph, c.target, schedule, play).empty();
        }
        noticed += bad ? 1 : 0;
        command.wait = saved;
        command.prev = savedPrev;
      }
    }
  }
  EXPECT_GT(dropped, 100);
  // Some waits are implied by others.
  EXPECT_GT(noticed, dropped / 3);
}

}  // namespace
}  // namespace stowage::planner
