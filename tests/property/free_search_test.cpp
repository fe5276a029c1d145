// SPDX-License-Identifier: Apache-2.0
//
// Whoever narrows what the planner may do hardly ever gets a faster step: policies and random sets
// of pins on random steps against the plan that may do anything.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "planner/plan.h"
#include "tests/support/random_step.h"

namespace stowage::planner {
namespace {

constexpr double kBeaten = 1.01;
constexpr int kPinSets = 4;

std::optional<Nanoseconds> timeOf(const Problem& problem, Bytes budget) {
  ir::Expected<PlanResult> result = plan(problem, budget);
  if (result) return result->timetable.stepTime;
  llvm::consumeError(result.takeError());
  return std::nullopt;
}

std::vector<Pin> drawPins(const ir::Graph& graph, std::mt19937_64& random) {
  constexpr ir::GapAction kActions[] = {ir::GapAction::kKeep, ir::GapAction::kHost,
                                        ir::GapAction::kHost, ir::GapAction::kRecompute};
  std::vector<Pin> pins;
  const size_t count = 1 + random() % 8;
  for (size_t i = 0; i < count; ++i) {
    const ir::Storage& storage = graph.storages()[random() % graph.storages().size()];
    pins.push_back({.pattern = storage.name, .action = kActions[random() % 4]});
  }
  return pins;
}

struct Tally {
  int compared = 0;
  int beaten = 0;  // by more than 1 %
  double worst = 1;
};

void compareOne(uint64_t seed, Tally& tally) {
  const ir::Graph graph = tests::makeRandomStep({.seed = seed, .layers = 8});
  const ir::Target target = tests::makeSmallTarget(seed);
  const ir::CostTable costs = tests::makeRandomCosts(graph, seed, 600);
  const auto problemWith = [&](Allowed allowed, std::vector<Pin> pins) {
    return llvm::cantFail(makeProblem(graph, target, costs, allowed, {}, std::move(pins)));
  };
  std::mt19937_64 random(seed);
  const Problem free = problemWith({}, {});
  const Bytes all = llvm::cantFail(plan(free, Bytes(INT64_MAX / 4))).keepAllPeak;
  for (const int64_t percent : {90, 80, 70}) {
    const Bytes budget(all.value() * percent / 100);
    const std::optional<Nanoseconds> time = timeOf(free, budget);
    if (!time) continue;
    std::vector<Problem> narrowed = {problemWith({.recompute = false}, {}),
                                     problemWith({.offload = false}, {})};
    for (int i = 0; i < kPinSets; ++i) narrowed.push_back(problemWith({}, drawPins(graph, random)));
    for (const Problem& problem : narrowed) {
      const std::optional<Nanoseconds> other = timeOf(problem, budget);
      if (!other) continue;
      const double ratio = static_cast<double>(time->value()) / static_cast<double>(other->value());
      ++tally.compared;
      if (ratio > kBeaten) ++tally.beaten;
      tally.worst = std::max(tally.worst, ratio);
    }
  }
}

// In steps of some dozen nodes single copies matter, so a pin is a lucky guess now and then.
TEST(FreeSearch, IsHardlyEverBeatenByPoliciesOrPins) {
  Tally tally;
  for (uint64_t seed = 1; seed <= 8; ++seed) compareOne(seed, tally);
  EXPECT_GT(tally.compared, 40);
  EXPECT_LE(tally.beaten, tally.compared / 25) << "of " << tally.compared;
  EXPECT_LE(tally.worst, 1.02);
}

}  // namespace
}  // namespace stowage::planner
