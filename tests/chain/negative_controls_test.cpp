// SPDX-License-Identifier: Apache-2.0
//
// The comparison with plain libtorch turns red when something that makes bits equal is taken away:
// the random state of re-run ops, the fed step scalars, one wait between a copy and its reader.
#include <gtest/gtest.h>

#include "runtime/scalar_feed.h"
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
    for (const auto& [found, tensor] : chain().eager().state) {
      if (found == name && tensor.nbytes() > 0) return true;
    }
    return false;
  };
  EXPECT_TRUE(holds("wte.weight"));
  EXPECT_TRUE(holds("m(wte.weight)"));
  EXPECT_TRUE(holds("v(wte.weight)"));
}

TEST(NegativeControl, AnotherRandomStateShows) {
  EXPECT_NE(tools::firstDifference(chain().eager(), chain().trainEagerly(12345)), "");
}

TEST(NegativeControl, ClonesWithoutTheirRandomStateShow) {
  passes::PlannedStep planned =
      orFail(chain().plan(chain().share(80), {.offload = false, .takeOver = false}));
  EXPECT_EQ(chain().difference(planned), "");
  int taken = 0;
  for (ir::Command& command : planned.schedule.commands) {
    if (command.clone == 0 || command.rngSlot < 0) continue;
    command.rngSlot = -1;
    ++taken;
  }
  ASSERT_GT(taken, 0) << "the plan runs no dropout again";
  EXPECT_NE(chain().difference(planned), "");
}

TEST(NegativeControl, FrozenStepScalarsShow) {
  const passes::PlannedStep planned = orFail(chain().plan(chain().share(50)));
  EXPECT_EQ(chain().difference(planned), "");
  runtime::CapturedScalars frozen(planned.graph);
  EXPECT_NE(chain().difference(planned, {.feed = &frozen}), "");
}

}  // namespace
}  // namespace stowage::tests
