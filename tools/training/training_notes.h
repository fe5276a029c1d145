// SPDX-License-Identifier: Apache-2.0
//
// What makes a training the one that it is, beside the budget that it runs in: the step's recipe,
// the seed, the data, a rate from the command line. Kept as notes in every checkpoint, so that
// --resume goes on with the same training and says what is different from it. Buckets of list ops
// may differ, like budgets: they leave the bits alone. Threads, deterministic mode and libtorch
// decide about bits without making it another training.
#ifndef STOWAGE_TOOLS_TRAINING_TRAINING_NOTES_H_
#define STOWAGE_TOOLS_TRAINING_TRAINING_NOTES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ir/base/error.h"
#include "ir/schedule/target.h"

namespace stowage::tools {

using TrainingNotes = std::map<std::string, std::string>;

struct TrainingIdentity {
  std::string recipe;  // tools/training/model_step.h
  uint64_t seed = 0;
  std::string data;  // RunData::identity
  std::optional<double> learningRate;
  std::string numerics;  // describeNumerics
};
TrainingNotes toNotes(const TrainingIdentity& identity);

/// "2 threads, deterministic, torch 2.11.0".
std::string describeNumerics(const ir::Target& target, const std::string& torchVersion);

/// What a checkpoint notes; nothing where it does not, or not as a number.
std::optional<uint64_t> notedSeed(const TrainingNotes& notes);
std::optional<double> notedLearningRate(const TrainingNotes& notes);

struct ResumeCheck {
  std::string folder;  // of the checkpoint, for messages
  const TrainingNotes& saved;
  const TrainingNotes& now;
  bool otherData = false;  // asked for
};
/// Errors: kPlanMismatch with a note for everything that is not as in the checkpoint's training.
/// What a checkpoint does not note is not compared.
ir::Error checkSameTraining(const ResumeCheck& check);
/// "" when the bits will be those of one run without a stop; else a sentence that says why not.
std::string otherNumerics(const ResumeCheck& check);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_TRAINING_TRAINING_NOTES_H_
