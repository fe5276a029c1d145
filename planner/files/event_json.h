// SPDX-License-Identifier: Apache-2.0
//
// Turns the events of a JSON parser into values: long top-level arrays are delivered element by
// element, everything else is collected. Knows the byte it has reached, for line numbers. Private
// to planner/*_json*.
#ifndef STOWAGE_PLANNER_FILES_EVENT_JSON_H_
#define STOWAGE_PLANNER_FILES_EVENT_JSON_H_

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/StringRef.h>

#include <optional>
#include <string>
#include <vector>

#include "planner/files/field_json.h"

namespace stowage::planner {

struct JsonEvents {
  /// True for keys of the top-level object whose arrays are long.
  llvm::function_ref<bool(const std::string& key)> isLong;
  /// False stops the reading.
  llvm::function_ref<bool(const std::string& key, size_t index, const Json& element)> onElement;
  /// A member of the top-level object that is a string; false stops the reading.
  llvm::function_ref<bool(const std::string& key, const std::string& value)> onText;
};

struct ParsedJson {
  Json header;                     // the top-level object; long arrays in it are empty
  std::optional<JsonFault> fault;  // syntax, nesting, repeated keys
  bool stopped = false;            // by a visitor
  size_t position = 0;             // bytes read
};

ParsedJson parseJson(llvm::StringRef text, const JsonEvents& events);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FILES_EVENT_JSON_H_
