// SPDX-License-Identifier: Apache-2.0
//
// Typed reading of JSON values with the place of each. The first thing that is not as expected is
// remembered with its JSON pointer, what was found and what was expected; reads after that give
// harmless values, so that callers ask once at the end. Private to planner/*_json*.
#ifndef STOWAGE_PLANNER_FILES_FIELD_JSON_H_
#define STOWAGE_PLANNER_FILES_FIELD_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/units.h"

namespace stowage::planner {

using Json = nlohmann::json;

/// The first thing wrong with a document.
struct JsonFault {
  std::string pointer;  // "/commands/17/wait/2"
  std::string message;  // "found -1, expected a whole number from 0 to 41"
};

class FieldReader {
 public:
  FieldReader(const Json& value, std::string pointer, std::optional<JsonFault>& fault)
      : value_(&value), pointer_(std::move(pointer)), fault_(&fault) {}

  /// The member of an object; a fault if it is missing or this is no object.
  FieldReader field(const char* key) const;
  bool has(const char* key) const;
  /// The elements of an array.
  std::vector<FieldReader> elements() const;
  /// The members of an object, by key.
  std::vector<std::pair<std::string, FieldReader>> members() const;

  int64_t integer(int64_t smallest, int64_t largest) const;
  int64_t count() const { return integer(0, INT64_MAX); }
  Bytes bytes() const { return Bytes(count()); }
  Nanoseconds nanoseconds() const { return Nanoseconds(count()); }
  std::string text() const;
  bool flag() const;

  /// Records `message` with this place, unless there is a fault already.
  void fail(const std::string& message) const;
  /// The same, as "found <this value>, expected <expected>".
  void failExpecting(const std::string& expected) const;

 private:
  const Json* value_;
  std::string pointer_;
  std::optional<JsonFault>* fault_;
};

/// "~" and "/" in keys, as JSON pointers write them.
std::string escapeToken(const std::string& key);

/// A value as it stands in the file, shortened.
std::string excerpt(const Json& value);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FILES_FIELD_JSON_H_
