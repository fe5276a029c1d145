// SPDX-License-Identifier: Apache-2.0
#include "runtime/training/training_notes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stowage::runtime {
namespace {

TrainingIdentity sample() {
  return {.recipe = "gpt2 preset=tiny lr=1e-3",
          .seed = 5,
          .data = "random numbers",
          .learningRate = std::nullopt,
          .numerics = "2 threads, deterministic, torch 2.11.0"};
}

std::vector<std::string> differencesOf(const TrainingNotes& now, const TrainingNotes& saved) {
  std::vector<std::string> texts;
  for (const NoteDifference& difference : compareNotes(now, saved)) {
    texts.push_back(difference.text());
  }
  return texts;
}

TEST(TrainingNotes, NumbersReadBackAsTheyWere) {
  TrainingIdentity identity = sample();
  identity.learningRate = 0.1 + 0.2;
  const TrainingNotes notes = toNotes(identity);
  EXPECT_EQ(notedSeed(notes), 5U);
  EXPECT_EQ(notedLearningRate(notes), 0.1 + 0.2);
  EXPECT_EQ(notedSeed({}), std::nullopt);
  EXPECT_EQ(notedLearningRate(toNotes(sample())), std::nullopt);
}

TEST(TrainingNotes, AllDifferencesAreListed) {
  TrainingIdentity now = sample();
  EXPECT_EQ(differencesOf(toNotes(now), toNotes(sample())), std::vector<std::string>{});
  now.recipe = "llama preset=tiny";
  now.seed = 6;
  now.data = "4 batches, xxh64:2";
  now.learningRate = 0.25;
  EXPECT_EQ(differencesOf(toNotes(now), toNotes(sample())),
            (std::vector<std::string>{
                "recipe: found llama preset=tiny, expected gpt2 preset=tiny lr=1e-3",
                "seed: found 6, expected 5", "learning_rate: found 0.25, expected none",
                "data: found 4 batches, xxh64:2, expected random numbers"}));
}

TEST(TrainingNotes, ACheckpointWithoutARecipeIsNotCompared) {
  EXPECT_EQ(differencesOf(toNotes(sample()), {{"seed", "9"}}), std::vector<std::string>{});
}

TEST(TrainingNotes, OtherNumericsAreNoDifferenceButGiveOtherBits) {
  TrainingIdentity now = sample();
  now.numerics = "1 threads, deterministic, torch 2.11.0";
  EXPECT_EQ(differencesOf(toNotes(now), toNotes(sample())), std::vector<std::string>{});
  EXPECT_EQ(otherNumerics(toNotes(now), toNotes(sample())),
            "the training so far ran with 2 threads, deterministic, torch 2.11.0, now with 1 "
            "threads, deterministic, torch 2.11.0: its bits will not be those of one run without a "
            "stop");
  EXPECT_EQ(otherNumerics(toNotes(sample()), toNotes(sample())), "");
}

}  // namespace
}  // namespace stowage::runtime
