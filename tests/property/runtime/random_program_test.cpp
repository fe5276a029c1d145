// SPDX-License-Identifier: Apache-2.0
//
// A hundred training programs from seeds, each run by plain libtorch and by its plan: equal bits in
// every loss, parameter, buffer and tensor from outside, or a refusal that leaves the state of the
// steps before it. Never anything else.
// More of them by STOWAGE_PROGRAM_SEEDS.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "tests/support/random_program.h"

namespace stowage::tests {
namespace {

int seeds() {
  const char* asked = std::getenv("STOWAGE_PROGRAM_SEEDS");
  return asked == nullptr ? 100 : std::atoi(asked);
}

bool isAnAnswer(ir::ErrorCode code) {
  return code == ir::ErrorCode::kUnsupported || code == ir::ErrorCode::kPlanMismatch ||
         code == ir::ErrorCode::kInvalidArgument;
}

TwiceOptions optionsOf(uint64_t seed) {
  TwiceOptions options{.steps = kProgramSteps, .run = {.checkEvery = 1}};
  if (seed % 3 == 1) options.share = 0.7;
  if (seed % 3 == 2) options.share = 0.5;
  return options;
}

TEST(RandomProgram, HasTheBitsOfPlainLibtorchOrIsRefused) {
  int whole = 0, refusedAtCapture = 0, refusedLater = 0;
  for (int seed = 0; seed < seeds(); ++seed) {
    const RandomProgram program = makeRandomProgram(static_cast<uint64_t>(seed));
    const Trained trained = trainTwice(program.make, optionsOf(static_cast<uint64_t>(seed)));
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + program.text() + "\n" +
                 trained.refusal.text);
    // Where host state is hidden and numbers of the loss change, the first steps are not compared;
    // the refusal of a later one says so.
    const bool isSaid = trained.refusal.text.find("were not compared") != std::string::npos;
    EXPECT_TRUE(isSaid || trained.difference.empty())
        << trained.difference << " after " << trained.steps << " steps";
    if (!trained.isRefused()) {
      EXPECT_EQ(trained.steps, kProgramSteps);
      ++whole;
      continue;
    }
    EXPECT_TRUE(isAnAnswer(trained.refusal.code));
    ++(trained.wasCaptured ? refusedLater : refusedAtCapture);
  }
  RecordProperty("whole", whole);
  RecordProperty("refused_at_capture", refusedAtCapture);
  RecordProperty("refused_later", refusedLater);
  // A generator whose programs are all refused, or never are, shows nothing.
  EXPECT_GT(whole, seeds() * 25 / 100);
  EXPECT_GT(refusedAtCapture, seeds() * 5 / 100);
  EXPECT_GT(refusedLater, seeds() * 10 / 100);
}

// The control: without the checks, some of them have other bits and nobody says so.
TEST(RandomProgram, IsSilentlyWrongSomewhereWhenNoStepIsChecked) {
  int wrong = 0;
  for (int seed = 0; seed < 40; ++seed) {
    TwiceOptions options = optionsOf(static_cast<uint64_t>(seed));
    options.run.checkEvery = 0;
    const RandomProgram program = makeRandomProgram(static_cast<uint64_t>(seed));
    const Trained trained = trainTwice(program.make, options);
    if (!trained.isRefused() && !trained.difference.empty()) ++wrong;
  }
  EXPECT_GE(wrong, 3);
}

}  // namespace
}  // namespace stowage::tests
