// SPDX-License-Identifier: Apache-2.0
#include "tools/models/settings.h"

#include <llvm/ADT/StringExtras.h>

#include <cassert>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>

namespace stowage::tools {
namespace {

using ir::ErrorCode;

ir::Error invalid(std::string message) {
  return ir::makeError(ErrorCode::kInvalidArgument, std::move(message));
}

template <typename T>
std::vector<std::string> namesOf(const std::vector<T>& rows) {
  std::vector<std::string> names;
  for (const T& row : rows) names.push_back(row.name);
  return names;
}

template <typename T>
const T* findByName(const std::vector<T>& rows, std::string_view name) {
  for (const T& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

/// The whole text as a number, or nothing.
template <typename T>
std::optional<T> parseNumber(std::string_view text) {
  T number{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// "name is 3" of an integer setting.
std::string saying(const Settings& settings, std::string_view name) {
  return std::string(name) + " is " + std::to_string(settings.integer(name));
}

std::string limitsOf(const SettingInfo& info) {
  std::ostringstream text;
  if (info.most == std::numeric_limits<double>::infinity()) {
    text << "at least " << info.least;
  } else {
    text << "from " << info.least << " to " << info.most;
  }
  return text.str();
}

ir::Error checkValue(const SettingInfo& info, const std::string& value) {
  if (info.kind == SettingInfo::Kind::kChoice) {
    for (const std::string& choice : info.choices) {
      if (choice == value) return ir::success();
    }
    return unknownName("value of " + info.name, value, info.choices);
  }
  const bool isInteger = info.kind == SettingInfo::Kind::kInteger;
  std::optional<double> number;
  if (isInteger) {
    if (const auto integer = parseNumber<int64_t>(value)) number = static_cast<double>(*integer);
  } else {
    number = parseNumber<double>(value);
  }
  if (number && std::isfinite(*number) && *number >= info.least && *number <= info.most)
    return ir::success();
  return invalid(info.name + " is '" + value + "', expected " +
                 (isInteger ? "an integer " : "a number ") + limitsOf(info));
}

struct KeyValue {
  std::string key, value;
};

ir::Expected<KeyValue> splitText(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return invalid("found '" + text + "', expected key=value");
  }
  return KeyValue{text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace

ir::Error unknownName(std::string_view what, std::string_view found,
                      const std::vector<std::string>& names) {
  const llvm::StringRef text(found.data(), found.size());
  const std::string* nearest = nullptr;
  // Further away than half of the name is another word, not a slip.
  unsigned best = static_cast<unsigned>(found.size()) / 2 + 1;
  for (const std::string& name : names) {
    const unsigned distance = text.edit_distance(name, /*AllowReplacements=*/true, best);
    if (distance < best) {
      best = distance;
      nearest = &name;
    }
  }
  std::string message = "no " + std::string(what) + " is called '" + std::string(found) + "'";
  if (nearest != nullptr) message += ", did you mean '" + *nearest + "'";
  return ir::makeError(ir::PlanError(ErrorCode::kInvalidArgument, std::move(message))
                           .note("there are: " + llvm::join(names, ", ")));
}

ir::Error checkMultiple(const Settings& settings, std::string_view whole, std::string_view part) {
  if (settings.integer(whole) % settings.integer(part) == 0) return ir::success();
  return invalid(saying(settings, whole) + " and " + saying(settings, part) +
                 ", expected a multiple of it");
}

ir::Error checkAtMost(const Settings& settings, std::string_view part, std::string_view whole) {
  if (settings.integer(part) <= settings.integer(whole)) return ir::success();
  return invalid(saying(settings, part) + " and " + saying(settings, whole) +
                 ", expected at most that");
}

ir::Error checkElements(const Settings& settings, std::initializer_list<std::string_view> factors,
                        std::initializer_list<std::string_view> over) {
  constexpr double kMostElements = 1099511627776;  // 2^40
  double elements = 1;
  std::string names;
  std::set<std::string_view> said;
  for (const std::string_view name : factors) {
    elements *= static_cast<double>(settings.integer(name));
    if (!said.insert(name).second) continue;
    names += (names.empty() ? "" : " and ") + saying(settings, name);
  }
  for (const std::string_view name : over) elements /= static_cast<double>(settings.integer(name));
  if (elements <= kMostElements) return ir::success();
  return invalid(names + ", expected tensors of at most 2^40 elements");
}

const std::string& Settings::text(std::string_view name) const {
  const auto found = values_.find(name);
  assert(found != values_.end() && "a setting that is not in the model's table");
  return found->second;
}

int64_t Settings::integer(std::string_view name) const {
  const auto value = parseNumber<int64_t>(text(name));
  assert(value && "a setting that is not an integer");
  return *value;
}

double Settings::number(std::string_view name) const {
  const auto value = parseNumber<double>(text(name));
  assert(value && "a setting that is not a number");
  return *value;
}

ir::Expected<Settings> parseSettings(const ModelInfo& model,
                                     const std::vector<std::string>& texts) {
  Settings settings;
  for (const SettingInfo& info : model.settings) settings.values_[info.name] = info.value;

  std::vector<KeyValue> pairs;
  const Preset* preset = nullptr;
  for (const std::string& text : texts) {
    ir::Expected<KeyValue> pair = splitText(text);
    if (!pair) return pair.takeError();
    if (!settings.askedFor_.insert(pair->key).second) {
      return invalid(pair->key + " is set twice, expected once");
    }
    if (pair->key != "preset") {
      pairs.push_back(std::move(*pair));
      continue;
    }
    preset = findByName(model.presets, pair->value);
    if (preset == nullptr) {
      return unknownName("preset of " + model.name, pair->value, namesOf(model.presets));
    }
  }

  if (preset != nullptr) {
    for (const auto& [name, value] : preset->values) settings.values_[name] = value;
  }
  for (const KeyValue& pair : pairs) {
    const SettingInfo* info = findByName(model.settings, pair.key);
    if (info == nullptr) {
      std::vector<std::string> names = namesOf(model.settings);
      names.push_back("preset");
      return unknownName("setting of " + model.name, pair.key, names);
    }
    if (ir::Error error = checkValue(*info, pair.value)) return error;
    settings.values_[pair.key] = pair.value;
  }
  return settings;
}

}  // namespace stowage::tools
