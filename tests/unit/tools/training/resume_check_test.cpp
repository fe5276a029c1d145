// SPDX-License-Identifier: Apache-2.0
#include "tools/training/resume_check.h"

#include <gtest/gtest.h>

#include "ir/base/error.h"
#include "runtime/training/training_notes.h"

namespace stowage::tools {
namespace {

using runtime::toNotes;
using runtime::TrainingIdentity;
using runtime::TrainingNotes;

TrainingIdentity sample() {
  return {.recipe = "gpt2 preset=tiny lr=1e-3",
          .seed = 5,
          .data = "random numbers",
          .learningRate = std::nullopt,
          .numerics = "2 threads, deterministic, torch 2.11.0"};
}

/// What is refused when `now` goes on from a checkpoint of `saved`; "" when nothing is.
std::string refusalOf(const TrainingIdentity& now, const TrainingIdentity& saved,
                      bool otherData = false) {
  const TrainingNotes nowNotes = toNotes(now);
  const TrainingNotes savedNotes = toNotes(saved);
  return ir::describe(checkSameTraining(
      {.folder = "out", .saved = savedNotes, .now = nowNotes, .otherData = otherData}));
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ResumeCheck, TheSameTrainingMayBeWrittenInOtherWords) {
  TrainingIdentity now = sample();
  EXPECT_EQ(refusalOf(now, sample()), "");
  now.recipe = "gpt2 lr=0.001 layers=2";  // the preset's value, the same number
  EXPECT_EQ(refusalOf(now, sample()), "");
  now.recipe = "gpt2 preset=tiny lr=1e-3 bucket_bytes=4096";
  EXPECT_EQ(refusalOf(now, sample()), "");
  TrainingIdentity archive = sample();
  archive.recipe = "a step.pt2 fingerprint=xxh64:12";
  now.recipe = "renamed.pt2 fingerprint=xxh64:12";
  EXPECT_EQ(refusalOf(now, archive), "");
}

TEST(ResumeCheck, AnotherTrainingIsRefusedWithAllThatDiffers) {
  TrainingIdentity now = sample();
  now.recipe = "gpt2 preset=tiny lr=2e-3 schedule=step";
  now.seed = 6;
  now.data = "503 bytes of text, xxh64:1";
  now.learningRate = 0.25;
  const std::string error = refusalOf(now, sample());
  EXPECT_EQ(error.find("out: is the checkpoint of another training"), 0U) << error;
  for (const char* part : {"lr: found 2e-3, expected 1e-3", "schedule: found step, expected none",
                           "seed: found 6, expected 5", "learning_rate: found 0.25, expected none",
                           "data: found 503 bytes of text, xxh64:1, expected random numbers"}) {
    EXPECT_TRUE(says(error, part)) << part << '\n' << error;
  }
  now = sample();
  now.recipe = "llama preset=tiny lr=1e-3";
  EXPECT_TRUE(says(refusalOf(now, sample()),
                   "recipe: found 'llama preset=tiny lr=1e-3', expected 'gpt2 preset=tiny"));
}

TEST(ResumeCheck, OtherDataMayBeAskedFor) {
  TrainingIdentity now = sample();
  now.data = "4 batches, xxh64:2";
  EXPECT_TRUE(says(refusalOf(now, sample()), "--other-data goes on"));
  EXPECT_EQ(refusalOf(now, sample(), /*otherData=*/true), "");
  now.seed = 6;
  EXPECT_FALSE(says(refusalOf(now, sample(), /*otherData=*/true), "--other-data"));
}

TEST(ResumeCheck, ACheckpointWithoutNotesIsNotCompared) {
  const TrainingNotes now = toNotes(sample());
  const TrainingNotes seedAlone = {{"seed", "9"}};
  EXPECT_EQ(ir::describe(checkSameTraining({.folder = "out", .saved = seedAlone, .now = now})), "");
}

TEST(ResumeCheck, OtherThreadsAreNoOtherTraining) {
  TrainingIdentity now = sample();
  now.numerics = "1 threads, deterministic, torch 2.11.0";
  EXPECT_EQ(refusalOf(now, sample()), "");
}

}  // namespace
}  // namespace stowage::tools
