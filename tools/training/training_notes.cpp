// SPDX-License-Identifier: Apache-2.0
#include "tools/training/training_notes.h"

#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringRef.h>

#include <utility>

#include "tools/models/model.h"
#include "tools/training/model_step.h"

namespace stowage::tools {

namespace {

constexpr const char* kRecipe = "recipe";
constexpr const char* kSeed = "seed";
constexpr const char* kData = "data";
constexpr const char* kLearningRate = "learning_rate";
constexpr const char* kNumerics = "numerics";

using Kind = SettingInfo::Kind;

class Differences {
 public:
  void compare(const std::string& what, const std::string& found, const std::string& saved) {
    if (found == saved) return;
    notes_.push_back(what + ": found " + found + ", expected " + saved);
  }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::vector<std::string> notes_;
};

const ModelInfo* findModel(const std::string& name) {
  const auto found =
      llvm::find_if(modelCatalogue(), [&](const ModelInfo& model) { return model.name == name; });
  return found == modelCatalogue().end() ? nullptr : &*found;
}

/// Values, not texts: 1e-3 is 0.001.
bool isSame(const SettingInfo& info, const Settings& a, const Settings& b) {
  if (info.kind == Kind::kChoice) return a.text(info.name) == b.text(info.name);
  return a.number(info.name) == b.number(info.name);
}

/// False when a recipe is none of this model's.
bool compareSettings(const ModelInfo& model, const Recipe& now, const Recipe& saved,
                     Differences& differences) {
  ir::Expected<Settings> found = parseSettings(model, now.settings);
  ir::Expected<Settings> expected = parseSettings(model, saved.settings);
  if (!found || !expected) {
    if (!found) llvm::consumeError(found.takeError());
    if (!expected) llvm::consumeError(expected.takeError());
    return false;
  }
  for (const SettingInfo& info : model.settings) {
    if (isSame(info, *found, *expected)) continue;
    differences.compare(info.name, found->text(info.name), expected->text(info.name));
  }
  return true;
}

void compareRecipes(const std::string& nowText, const std::string& savedText,
                    Differences& differences) {
  ir::Expected<Recipe> now = parseRecipe(nowText);
  ir::Expected<Recipe> saved = parseRecipe(savedText);
  if (!now || !saved) {
    if (!now) llvm::consumeError(now.takeError());
    if (!saved) llvm::consumeError(saved.takeError());
    return differences.compare(kRecipe, "'" + nowText + "'", "'" + savedText + "'");
  }
  now->bucketBytes = saved->bucketBytes;
  // An archive that was renamed is the same one.
  if (!now->fingerprint.empty() && now->fingerprint == saved->fingerprint) return;
  const ModelInfo* model = now->model == saved->model ? findModel(now->model) : nullptr;
  if (model != nullptr && compareSettings(*model, *now, *saved, differences)) return;
  differences.compare(kRecipe, "'" + now->text() + "'", "'" + saved->text() + "'");
}

std::string valueOf(const TrainingNotes& notes, const char* key) {
  const auto found = notes.find(key);
  return found == notes.end() ? "" : found->second;
}

}  // namespace

TrainingNotes toNotes(const TrainingIdentity& identity) {
  TrainingNotes notes = {{kRecipe, identity.recipe},
                         {kSeed, std::to_string(identity.seed)},
                         {kData, identity.data},
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

ir::Error checkSameTraining(const ResumeCheck& check) {
  Differences differences;
  const std::string recipe = valueOf(check.saved, kRecipe);
  if (recipe.empty()) return ir::success();
  compareRecipes(valueOf(check.now, kRecipe), recipe, differences);
  const auto compare = [&](const char* key) {
    const std::string found = valueOf(check.now, key);
    const std::string saved = valueOf(check.saved, key);
    differences.compare(key, found.empty() ? "none" : found, saved.empty() ? "none" : saved);
  };
  compare(kSeed);
  compare(kLearningRate);
  if (!check.otherData) compare(kData);
  if (differences.notes().empty()) return ir::success();
  ir::PlanError error(ir::ErrorCode::kPlanMismatch,
                      "is the checkpoint of another training, not only of another budget; to begin "
                      "a new one from its values, give its model.safetensors as --weights");
  error.at({.file = check.folder});
  for (const std::string& note : differences.notes()) error.note(note);
  if (valueOf(check.now, kData) != valueOf(check.saved, kData) && !check.otherData)
    error.note("--other-data goes on with the data that was found");
  return ir::makeError(std::move(error));
}

std::string otherNumerics(const ResumeCheck& check) {
  const std::string found = valueOf(check.now, kNumerics);
  const std::string saved = valueOf(check.saved, kNumerics);
  if (saved.empty() || found == saved) return "";
  return check.folder + ": the training so far ran with " + saved + ", now with " + found +
         ": its bits will not be those of one run without a stop";
}

}  // namespace stowage::tools
