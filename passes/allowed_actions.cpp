// SPDX-License-Identifier: Apache-2.0
#include "passes/allowed_actions.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>

#include <array>
#include <string>
#include <vector>

#include "ir/base/nearest_name.h"
#include "passes/plan_step.h"

namespace stowage::passes {

namespace {

struct Word {
  const char* name;
  bool AllowedActions::*action;
};
constexpr std::array<Word, 6> kWords = {{{"offload", &AllowedActions::offload},
                                         {"recompute", &AllowedActions::recompute},
                                         {"in-place-reuse", &AllowedActions::inPlaceReuse},
                                         {"reorder", &AllowedActions::reorder},
                                         {"row-blocks", &AllowedActions::rowBlocks},
                                         {"host-step", &AllowedActions::hostStep}}};
constexpr const char* kNone = "none";

ir::Error unknownWord(const std::string& found) {
  std::vector<std::string> names;
  for (const Word& word : kWords) names.emplace_back(word.name);
  names.emplace_back(kNone);
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       ir::describeUnknown("word", found, "a comma list of", names));
}

}  // namespace

ir::Expected<AllowedActions> parseAllowed(llvm::StringRef list) {
  AllowedActions allowed;
  if (list.trim() == "host-step") {
    allowed.hostStep = true;
    return allowed;
  }
  for (const Word& word : kWords) allowed.*word.action = false;
  llvm::SmallVector<llvm::StringRef> names;
  list.split(names, ',');
  for (const llvm::StringRef text : names) {
    const llvm::StringRef name = text.trim();
    if (name == kNone && names.size() > 1) {
      return ir::makeError(
          ir::ErrorCode::kInvalidArgument,
          "found '" + list.str() + "', expected none by itself or a list without it");
    }
    if (name == kNone) continue;
    const auto* word = llvm::find_if(kWords, [&](const Word& known) { return name == known.name; });
    if (word == kWords.end()) return unknownWord(name.str());
    allowed.*word->action = true;
  }
  return allowed;
}

void setAllowed(const AllowedActions& allowed, PlanStepOptions& options) {
  const PlanStepOptions all;
  options.allowed.offload = allowed.offload;
  options.allowed.recompute = allowed.recompute;
  options.allowed.inPlaceReuse = allowed.inPlaceReuse;
  options.orders = allowed.reorder ? all.orders : std::vector<Order>{Order::kProgram};
  options.rowBlocks = allowed.rowBlocks ? all.rowBlocks : std::vector<int64_t>();
  options.hostUpdates.clear();
  if (allowed.hostStep) options.hostUpdates = {kHostShares.begin(), kHostShares.end()};
}

}  // namespace stowage::passes
