// SPDX-License-Identifier: Apache-2.0
//
// The table of what can be set on a model, and the values chosen for one.
// ModelInfo (names, kinds, limits, defaults, presets) and `key=value` texts -> Settings, every
// value of the right kind and within its limits. Order: default, then the preset's value, then the
// text's; the order of the texts does not matter. Invariants: a Settings holds a value for every
// row of its table and for nothing else. Not here: rules between two settings (the model that has
// them checks them), torch.
#ifndef STOWAGE_TOOLS_MODELS_SETTINGS_H_
#define STOWAGE_TOOLS_MODELS_SETTINGS_H_

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/base/error.h"

namespace stowage::tools {

struct SettingInfo {
  enum class Kind : uint8_t { kInteger, kNumber, kChoice };
  std::string name;
  Kind kind;
  std::string value;  // the default
  std::string unit;   // "tokens", "images", ...; empty: none
  std::string meaning;
  std::vector<std::string> choices = {};  // of kChoice
  double least = 0;                       // of kInteger and kNumber, inclusive; always finite
  double most = std::numeric_limits<double>::infinity();
};

struct Preset {
  std::string name;
  std::string meaning;
  std::vector<std::pair<std::string, std::string>> values;
};

struct ModelInfo {
  std::string name;
  std::string description;  // one line
  std::vector<SettingInfo> settings;
  std::vector<Preset> presets;  // `preset=name` chooses one; the first is the defaults under a name
};

class Settings {
 public:
  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  bool isOn(std::string_view name) const { return text(name) == "on"; }
  /// True for what a `key=value` text asked for, false for what a default or preset gave.
  bool isAskedFor(std::string_view name) const { return askedFor_.contains(name); }

 private:
  friend ir::Expected<Settings> parseSettings(const ModelInfo& model,
                                              const std::vector<std::string>& texts);
  std::map<std::string, std::string, std::less<>> values_;
  std::set<std::string, std::less<>> askedFor_;
};

/// Errors: kInvalidArgument; a text that is not key=value, an unknown or repeated key, an unknown
/// preset, a value of another kind or outside of its limits. Notes list what exists.
ir::Expected<Settings> parseSettings(const ModelInfo& model, const std::vector<std::string>& texts);

/// kInvalidArgument unless the integer `whole` is a multiple of the integer `part`.
ir::Error checkMultiple(const Settings& settings, std::string_view whole, std::string_view part);

/// kInvalidArgument unless the integer `part` is at most the integer `whole`.
ir::Error checkAtMost(const Settings& settings, std::string_view part, std::string_view whole);

/// For what a step does one after the other: every time takes nodes in its graph.
inline constexpr double kMostRepeats = 10'000;

/// kInvalidArgument unless the product of the integers `factors`, divided by the integers `over`,
/// is at most 2^40: elements of one tensor, so that sizes of many of them still add up.
ir::Error checkElements(const Settings& settings, std::initializer_list<std::string_view> factors,
                        std::initializer_list<std::string_view> over = {});

/// The error for a `what` ("model", "setting of gpt2") that is not among `names`, with the nearest
/// of them.
ir::Error unknownName(std::string_view what, std::string_view found,
                      const std::vector<std::string>& names);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_MODELS_SETTINGS_H_
