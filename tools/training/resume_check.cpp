// SPDX-License-Identifier: Apache-2.0
#include "tools/training/resume_check.h"

#include <llvm/ADT/STLExtras.h>

#include <optional>
#include <utility>
#include <vector>

#include "tools/models/model.h"
#include "tools/training/model_step.h"

namespace stowage::tools {

namespace {

using runtime::NoteDifference;
using Differences = std::vector<NoteDifference>;

const ModelInfo* findModel(const std::string& name) {
  const auto found =
      llvm::find_if(modelCatalogue(), [&](const ModelInfo& model) { return model.name == name; });
  return found == modelCatalogue().end() ? nullptr : &*found;
}

/// Values, not texts: 1e-3 is 0.001.
bool isSame(const SettingInfo& info, const Settings& a, const Settings& b) {
  if (info.kind == SettingInfo::Kind::kChoice) return a.text(info.name) == b.text(info.name);
  return a.number(info.name) == b.number(info.name);
}

/// Nothing when a recipe is none of this model's.
std::optional<Differences> compareSettings(const ModelInfo& model, const Recipe& now,
                                           const Recipe& saved) {
  ir::Expected<Settings> found = parseSettings(model, now.settings);
  ir::Expected<Settings> expected = parseSettings(model, saved.settings);
  if (!found || !expected) {
    if (!found) llvm::consumeError(found.takeError());
    if (!expected) llvm::consumeError(expected.takeError());
    return std::nullopt;
  }
  Differences differences;
  for (const SettingInfo& info : model.settings) {
    if (isSame(info, *found, *expected)) continue;
    const std::string here = found->text(info.name);
    const std::string there = expected->text(info.name);
    if (here != there) differences.push_back({info.name, here, there});
  }
  return differences;
}

/// `texts`: the two recipes, which differ as texts.
Differences compareRecipes(const NoteDifference& texts) {
  const auto asWhole = [&](const std::string& now, const std::string& saved) -> Differences {
    return {{texts.what, "'" + now + "'", "'" + saved + "'"}};
  };
  ir::Expected<Recipe> now = parseRecipe(texts.found);
  ir::Expected<Recipe> saved = parseRecipe(texts.saved);
  if (!now || !saved) {
    if (!now) llvm::consumeError(now.takeError());
    if (!saved) llvm::consumeError(saved.takeError());
    return asWhole(texts.found, texts.saved);
  }
  now->bucketBytes = saved->bucketBytes;
  if (!now->fingerprint.empty() && now->fingerprint == saved->fingerprint) return {};
  const ModelInfo* model = now->model == saved->model ? findModel(now->model) : nullptr;
  std::optional<Differences> differences;
  if (model != nullptr) differences = compareSettings(*model, *now, *saved);
  if (differences) return *differences;
  if (now->text() == saved->text()) return {};
  return asWhole(now->text(), saved->text());
}

}  // namespace

ir::Error checkSameTraining(const ResumeCheck& check) {
  Differences differences;
  bool hasOtherData = false;
  for (const NoteDifference& difference : runtime::compareNotes(check.now, check.saved)) {
    if (difference.what == runtime::kRecipeNote) {
      llvm::append_range(differences, compareRecipes(difference));
      continue;
    }
    const bool isData = difference.what == runtime::kDataNote;
    if (isData && check.otherData) continue;
    hasOtherData |= isData;
    differences.push_back(difference);
  }
  if (differences.empty()) return ir::success();
  ir::PlanError error(ir::ErrorCode::kPlanMismatch,
                      "is the checkpoint of another training, not only of another budget; to begin "
                      "a new one from its values, give its model.safetensors as --weights");
  error.at({.file = check.folder});
  for (const NoteDifference& difference : differences) error.note(difference.text());
  if (hasOtherData) error.note("--other-data goes on with the data that was found");
  return ir::makeError(std::move(error));
}

}  // namespace stowage::tools
