// SPDX-License-Identifier: Apache-2.0
//
// What identifies a training, besides the budget that it runs in: what the step was captured from,
// the seed, the data, a learning rate from outside of the step. Every checkpoint keeps it as notes,
// so that a resumed training can be compared with it. Threads, deterministic mode and libtorch's
// version (numerics) decide about bits; with others it is still the same training.
// Not here: what a recipe means, and what to do about a difference.
#ifndef STOWAGE_RUNTIME_TRAINING_TRAINING_NOTES_H_
#define STOWAGE_RUNTIME_TRAINING_TRAINING_NOTES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/schedule/target.h"

namespace stowage::runtime {

using TrainingNotes = std::map<std::string, std::string>;
inline constexpr const char* kRecipeNote = "recipe";
inline constexpr const char* kDataNote = "data";

struct TrainingIdentity {
  std::string recipe;  // ir::Provenance::recipe of the step
  uint64_t seed = 0;
  std::string data;  // "812 batches, xxh64:..."
  std::optional<double> learningRate;
  std::string numerics;  // describeNumerics
};
TrainingNotes toNotes(const TrainingIdentity& identity);

/// "2 threads, deterministic, torch 2.11.0".
std::string describeNumerics(const ir::Target& target, const std::string& torchVersion);

/// What a checkpoint notes; nothing where it does not, or not as a number.
std::optional<uint64_t> notedSeed(const TrainingNotes& notes);
std::optional<double> notedLearningRate(const TrainingNotes& notes);

/// One thing that differs between a training and that of a checkpoint.
struct NoteDifference {
  std::string what;  // kRecipeNote, "seed", "learning_rate", kDataNote
  std::string found;
  std::string saved;
  std::string text() const;  // "seed: found 6, expected 5"
};
/// In the order above; "none" for what is not noted. A checkpoint without a recipe is not compared.
/// Numerics are not compared.
std::vector<NoteDifference> compareNotes(const TrainingNotes& now, const TrainingNotes& saved);
/// "" when the bits will be those of one run without a stop; else a sentence that says why not.
std::string otherNumerics(const TrainingNotes& now, const TrainingNotes& saved);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TRAINING_TRAINING_NOTES_H_
