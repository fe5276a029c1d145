// SPDX-License-Identifier: Apache-2.0
#include "runtime/training/training_notes.h"

#include <fmt/format.h>
#include <llvm/ADT/StringRef.h>

namespace stowage::runtime {

namespace {

constexpr const char* kSeed = "seed";
constexpr const char* kLearningRate = "learning_rate";
constexpr const char* kNumerics = "numerics";

std::string valueOf(const TrainingNotes& notes, const char* key) {
  const auto found = notes.find(key);
  return found == notes.end() ? "" : found->second;
}

}  // namespace

TrainingNotes toNotes(const TrainingIdentity& identity) {
  TrainingNotes notes = {{kRecipeNote, identity.recipe},
                         {kSeed, std::to_string(identity.seed)},
                         {kDataNote, identity.data},
                         {kNumerics, identity.numerics}};
  // The shortest text that reads back as the same number.
  if (identity.learningRate) notes[kLearningRate] = fmt::format("{}", *identity.learningRate);
  return notes;
}

std::string describeNumerics(const ir::Target& target, const std::string& torchVersion) {
  return fmt::format("{} threads, {}, torch {}", target.intraOpThreads,
                     target.deterministic ? "deterministic" : "not deterministic", torchVersion);
}

std::optional<uint64_t> notedSeed(const TrainingNotes& notes) {
  uint64_t seed = 0;
  if (llvm::StringRef(valueOf(notes, kSeed)).getAsInteger(10, seed)) return std::nullopt;
  return seed;
}

std::optional<double> notedLearningRate(const TrainingNotes& notes) {
  double rate = 0;
  const std::string text = valueOf(notes, kLearningRate);
  if (text.empty() || llvm::StringRef(text).getAsDouble(rate)) return std::nullopt;
  return rate;
}

std::string NoteDifference::text() const {
  return what + ": found " + found + ", expected " + saved;
}

std::vector<NoteDifference> compareNotes(const TrainingNotes& now, const TrainingNotes& saved) {
  std::vector<NoteDifference> differences;
  if (valueOf(saved, kRecipeNote).empty()) return differences;
  for (const char* key : {kRecipeNote, kSeed, kLearningRate, kDataNote}) {
    const std::string here = valueOf(now, key);
    const std::string there = valueOf(saved, key);
    if (here == there) continue;
    differences.push_back({.what = key,
                           .found = here.empty() ? "none" : here,
                           .saved = there.empty() ? "none" : there});
  }
  return differences;
}

std::string otherNumerics(const TrainingNotes& now, const TrainingNotes& saved) {
  const std::string here = valueOf(now, kNumerics);
  const std::string there = valueOf(saved, kNumerics);
  if (there.empty() || here == there) return "";
  return "the training so far ran with " + there + ", now with " + here +
         ": its bits will not be those of one run without a stop";
}

}  // namespace stowage::runtime
