// SPDX-License-Identifier: Apache-2.0
//
// The comparison with plain libtorch turns red when something that makes bits equal is taken away:
// the random state of recomputed ops, the fed step scalars, one wait between a copy and its reader.
#include <gtest/gtest.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "runtime/executor/scalar_feed.h"
#include "tests/support/chain.h"

namespace stowage::tests {
namespace {

constexpr int64_t kSteps = 4;
const tools::Recipe kRecipe = {.model = "gpt2", .settings = {"schedule=step", "clip=1"}};

const Chain& chain() {
  static const Chain chain(kRecipe, kSteps);
  return chain;
}

TEST(NegativeControl, TheRecordHoldsEverythingThatTrainingLeaves) {
  const auto holds = [&](const std::string& name) {
    for (const auto& [found, digest] : chain().eager().state) {
      if (found == name && digest.bytes > 0) return true;
    }
    return false;
  };
  EXPECT_TRUE(holds("wte.weight"));
  EXPECT_TRUE(holds("m(wte.weight)"));
  EXPECT_TRUE(holds("v(wte.weight)"));
}

TEST(NegativeControl, AnotherRandomStateShows) {
  EXPECT_NE(runtime::firstDifference(chain().eager(), chain().trainEagerly(12345)), "");
}

TEST(NegativeControl, RecomputesWithoutTheirRandomStateShow) {
  // Masks are what dropout draws.
  passes::PlannedStep planned =
      orFail(chain().plan(chain().share(100), {}, {{"*empty_like.*", ir::GapAction::kRecompute}}));
  EXPECT_EQ(chain().difference(planned), "");
  int taken = 0;
  for (ir::Command& command : planned.schedule.commands) {
    if (command.recompute == 0 || command.rngSlot < 0) continue;
    command.rngSlot = -1;
    ++taken;
  }
  ASSERT_GT(taken, 0) << "the plan recomputes no dropout";
  EXPECT_NE(chain().difference(planned), "");
}

TEST(NegativeControl, FrozenStepScalarsShow) {
  const passes::PlannedStep planned = orFail(chain().plan(chain().share(50)));
  EXPECT_EQ(chain().difference(planned), "");
  runtime::CapturedScalars frozen(planned.graph);
  runtime::RunnerOptions options;
  options.feed = &frozen;
  EXPECT_NE(chain().difference(planned, options), "");
}

/// Launches that read what a copy to the device brings in the same step, and wait for it.
std::vector<std::pair<size_t, ir::CommandId>> waitsForArrivals(const ir::Schedule& schedule) {
  std::vector<std::pair<size_t, ir::CommandId>> found;
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    const ir::Command& run = schedule.commands[i];
    if (run.kind != ir::CommandKind::kRun) continue;
    for (const ir::CommandId id : run.wait) {
      const ir::Command& copy = schedule.command(id);
      if (copy.stream == ir::Stream::kHostToDevice && llvm::is_contained(run.in, copy.to)) {
        found.emplace_back(i, id);
      }
    }
  }
  return found;
}

// All copies are equally late: the first launch without a wait for its bytes comes too early.
TEST(NegativeControl, ADroppedWaitShowsWhenItsCopyIsLate) {
  constexpr int64_t kSlow = int64_t{50} << 20;
  const passes::PlannedStep planned = orFail(
      chain().plan(chain().share(50), {.offload = true, .recompute = false, .inPlaceReuse = true}));
  EXPECT_EQ(chain().differenceOnSlowLinks(planned, kSlow), "");
  auto waits = waitsForArrivals(planned.schedule);
  ASSERT_FALSE(waits.empty());
  const auto bytes = [&](const auto& wait) {
    const ir::Residency& to = planned.schedule.residency(planned.schedule.command(wait.second).to);
    return planned.graph.storage(to.storage).bytes;
  };
  // The largest are under way for longest. What they bring may lie there already from an earlier
  // stay, and a busy machine may compute more slowly than they copy, so not each of them shows.
  std::stable_sort(waits.begin(), waits.end(),
                   [&](const auto& a, const auto& b) { return bytes(a) > bytes(b); });
  int shown = 0;
  constexpr size_t kTried = 12;
  for (size_t i = 0; i < std::min(waits.size(), kTried) && shown < 2; ++i) {
    passes::PlannedStep broken = planned;
    auto& wait = broken.schedule.commands[waits[i].first].wait;
    wait.erase(std::remove(wait.begin(), wait.end(), waits[i].second), wait.end());
    shown += chain().differenceOnSlowLinks(broken, kSlow).empty() ? 0 : 1;
  }
  EXPECT_EQ(shown, 2);
}

}  // namespace
}  // namespace stowage::tests
