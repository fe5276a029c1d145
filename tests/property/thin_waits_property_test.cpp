// SPDX-License-Identifier: Apache-2.0
//
// Thinning on random schedules with all their waits: the verifier still proves them, and nothing is
// left to remove: without any one of the waits that stay, some order that the full set gave is
// lost.

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "ir/verify/verify.h"
#include "passes/lowering/thin_waits.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_schedule.h"

namespace stowage::passes {
namespace {

constexpr uint64_t kSeeds = 60;

/// For every command of the second of two steps: what is finished before it starts, by plain
/// search.
std::vector<std::set<size_t>> computeBefore(const ir::Schedule& schedule) {
  const size_t count = schedule.commands.size();
  std::vector<std::set<size_t>> before(2 * count);
  std::vector<size_t> lastOnStream(ir::kStreamCount, SIZE_MAX);
  const auto follow = [&](size_t command, size_t other) {
    before[command].insert(before[other].begin(), before[other].end());
    before[command].insert(other);
  };
  for (size_t i = 0; i < 2 * count; ++i) {
    const ir::Command& command = schedule.commands[i % count];
    size_t& last = lastOnStream[static_cast<size_t>(command.stream)];
    if (last != SIZE_MAX) follow(i, last);
    last = i;
    const size_t step = i / count * count;
    for (const ir::CommandId wait : command.wait) follow(i, step + wait.index());
    if (step == 0) continue;
    for (const ir::CommandId wait : command.prev) follow(i, step - count + wait.index());
  }
  before.erase(before.begin(), before.begin() + static_cast<ptrdiff_t>(count));
  return before;
}

struct Sample {
  ir::Graph graph;
  ir::Schedule schedule;
};

Sample makeSample(uint64_t seed) {
  Sample sample;
  sample.graph = tests::makeRandomStep(seed, {.maxLayers = 3, .maxMicroBatches = 1});
  tests::ScheduleStyle style = tests::randomStyle(seed);
  style.thinWaits = false;
  style.serialWaits = false;
  sample.schedule = tests::makeRandomSchedule(sample.graph, tests::makeTestTarget(), style);
  return sample;
}

ir::Schedule thin(const Sample& sample) {
  PassState state;
  state.graph = sample.graph;
  state.target = tests::makeTestTarget();
  state.schedule = sample.schedule;
  EXPECT_TRUE(static_cast<bool>(ThinWaits().run(state)));
  return std::move(*state.schedule);
}

size_t countWaits(const ir::Schedule& schedule) {
  size_t waits = 0;
  for (const ir::Command& command : schedule.commands) {
    waits += command.wait.size() + command.prev.size();
  }
  return waits;
}

TEST(ThinWaitsProperty, TheOrderStaysAndTheScheduleIsStillProven) {
  size_t removed = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Sample sample = makeSample(seed);
    const ir::Schedule thinned = thin(sample);
    removed += countWaits(sample.schedule) - countWaits(thinned);
    ASSERT_EQ(computeBefore(thinned), computeBefore(sample.schedule)) << "seed " << seed;
    EXPECT_EQ(ir::describe(ir::verifyOrError({.graph = sample.graph,
                                              .schedule = thinned,
                                              .target = tests::makeTestTarget(),
                                              .budget = Bytes()})),
              "")
        << "seed " << seed;
  }
  EXPECT_GT(removed, 100U);
}

template <typename Waits>
bool canDropOne(ir::Schedule& schedule, Waits ir::Command::*waits,
                const std::vector<std::set<size_t>>& order) {
  for (ir::Command& command : schedule.commands) {
    const Waits all = command.*waits;
    for (size_t i = 0; i < all.size(); ++i) {
      command.*waits = all;
      (command.*waits).erase((command.*waits).begin() + i);
      if (computeBefore(schedule) == order) return true;
    }
    command.*waits = all;
  }
  return false;
}

TEST(ThinWaitsProperty, NoWaitThatStaysIsImplied) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Sample sample = makeSample(seed);
    ir::Schedule thinned = thin(sample);
    if (thinned.commands.size() > 60) continue;
    const auto order = computeBefore(thinned);
    EXPECT_FALSE(canDropOne(thinned, &ir::Command::wait, order)) << "seed " << seed;
    EXPECT_FALSE(canDropOne(thinned, &ir::Command::prev, order)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace stowage::passes
