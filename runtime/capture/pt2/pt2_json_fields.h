// SPDX-License-Identifier: Apache-2.0
//
// Takes values out of a parsed JSON document that may hold anything. Every function answers with an
// empty default once something was not as expected; the first complaint is kept with the place that
// the reader was at, so that callers ask once, at the end.
// Text -> document: refused are text that is no JSON (with line and column) and nesting so deep
// that no document of ours has it.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_PT2_JSON_FIELDS_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_PT2_JSON_FIELDS_H_

#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "ir/base/error.h"

namespace stowage::runtime {

/// Success, or why and where `text` is no JSON. `file` is named in the error.
ir::Error checkJson(llvm::StringRef text, const std::string& file);

template <typename Json>
ir::Expected<Json> parseJson(llvm::StringRef text, const std::string& file) {
  if (ir::Error error = checkJson(text, file)) return error;
  Json document = Json::parse(text.begin(), text.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!document.is_discarded()) return document;
  return ir::makeError(ir::PlanError(ir::ErrorCode::kParse, "this is no JSON").at({.file = file}));
}

template <typename Json>
class JsonFields {
 public:
  explicit JsonFields(std::string file) : file_(std::move(file)) {}

  /// Where the reader is, in words: "node 17 'mm_3'".
  void setPlace(std::string place) { place_ = std::move(place); }
  bool failed() const { return error_.has_value(); }
  void fail(const std::string& message, ir::ErrorCode code = ir::ErrorCode::kParse) {
    if (failed()) return;
    error_ = ir::PlanError(code, place_.empty() ? message : place_ + ": " + message);
    error_->at({.file = file_});
  }
  ir::Error takeError() {
    if (!failed()) return ir::success();
    return ir::makeError(std::move(*error_));
  }

  /// Null when `object` has no such field, or is no object.
  const Json* find(const Json& object, const char* key) const {
    if (!object.is_object()) return nullptr;
    const auto field = object.find(key);
    return field == object.end() ? nullptr : &*field;
  }
  const Json& get(const Json& object, const char* key) {
    if (const Json* field = find(object, key)) return *field;
    fail(std::string("found no field '") + key + "'");
    return none_;
  }
  const Json& array(const Json& object, const char* key) {
    return checked(get(object, key), key, &Json::is_array, "a list");
  }
  const Json& object(const Json& parent, const char* key) {
    return checked(get(parent, key), key, &Json::is_object, "an object");
  }
  std::string text(const Json& object, const char* key) { return asText(get(object, key), key); }
  int64_t integer(const Json& object, const char* key) { return asInteger(get(object, key), key); }

  std::string asText(const Json& value, const char* what) {
    const auto* text = value.template get_ptr<const std::string*>();
    if (text != nullptr) return *text;
    expected(what, "a string", value);
    return "";
  }
  bool asBool(const Json& value, const char* what) {
    const auto* flag = value.template get_ptr<const bool*>();
    if (flag != nullptr) return *flag;
    expected(what, "true or false", value);
    return false;
  }
  int64_t asInteger(const Json& value, const char* what) {
    constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() || value.template get<uint64_t>() <= kMost);
    if (fits) return value.template get<int64_t>();
    expected(what, "an integer of 64 bits", value);
    return 0;
  }
  /// Numbers that JSON has no form for are strings.
  double asDouble(const Json& value, const char* what) {
    if (value.is_number()) return value.template get<double>();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (value == "Infinity") return kInfinity;
    if (value == "-Infinity") return -kInfinity;
    if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
    expected(what, "a number", value);
    return 0;
  }
  /// Calls `visit(key, value)` for the one field of a union; fails when there is not exactly one.
  template <typename Visitor>
  void visitUnion(const Json& value, const char* what, Visitor visit) {
    if (!value.is_object() || value.size() != 1) return expected(what, "one field", value);
    visit(value.begin().key(), value.begin().value());
  }

 private:
  const Json& checked(const Json& value, const char* what, bool (Json::*is)() const noexcept,
                      const char* kind) {
    if (failed()) return none_;
    if ((value.*is)()) return value;
    expected(what, kind, value);
    return none_;
  }
  void expected(const char* what, const char* kind, const Json& value) {
    fail(std::string("field '") + what + "': found " + value.type_name() + ", expected " + kind);
  }

  std::string file_;
  std::string place_;
  std::optional<ir::PlanError> error_;
  Json none_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_PT2_JSON_FIELDS_H_
