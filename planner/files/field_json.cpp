// SPDX-License-Identifier: Apache-2.0
#include "planner/files/field_json.h"

namespace stowage::planner {

namespace {

constexpr size_t kExcerptLength = 40;

const Json& nothing() {
  static const Json kNothing;
  return kNothing;
}

}  // namespace

std::string escapeToken(const std::string& key) {
  std::string token;
  for (const char c : key) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

std::string excerpt(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array of " + std::to_string(value.size());
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kExcerptLength ? text : text.substr(0, kExcerptLength) + "...";
}

void FieldReader::fail(const std::string& message) const {
  if (!*fault_) *fault_ = JsonFault{pointer_, message};
}

void FieldReader::failExpecting(const std::string& expected) const {
  fail("found " + excerpt(*value_) + ", expected " + expected);
}

bool FieldReader::has(const char* key) const {
  return value_->is_object() && value_->contains(key);
}

FieldReader FieldReader::field(const char* key) const {
  FieldReader member(nothing(), pointer_ + "/" + key, *fault_);
  if (!value_->is_object()) {
    failExpecting("an object");
  } else if (const auto found = value_->find(key); found != value_->end()) {
    member.value_ = &*found;
  } else {
    member.fail("found nothing, expected it to be there");
  }
  return member;
}

std::vector<FieldReader> FieldReader::elements() const {
  std::vector<FieldReader> all;
  if (!value_->is_array()) {
    failExpecting("an array");
    return all;
  }
  for (size_t i = 0; i < value_->size(); ++i) {
    all.emplace_back((*value_)[i], pointer_ + "/" + std::to_string(i), *fault_);
  }
  return all;
}

std::vector<std::pair<std::string, FieldReader>> FieldReader::members() const {
  std::vector<std::pair<std::string, FieldReader>> all;
  if (!value_->is_object()) {
    failExpecting("an object");
    return all;
  }
  for (const auto& [key, member] : value_->items()) {
    all.emplace_back(key, FieldReader(member, pointer_ + "/" + escapeToken(key), *fault_));
  }
  return all;
}

int64_t FieldReader::integer(int64_t smallest, int64_t largest) const {
  const bool fits =
      value_->is_number_integer() && (!value_->is_number_unsigned() ||
                                      value_->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  const int64_t number = fits ? value_->get<int64_t>() : smallest;
  if (fits && number >= smallest && number <= largest) return number;
  failExpecting("a whole number from " + std::to_string(smallest) + " to " +
                std::to_string(largest));
  return smallest;
}

std::string FieldReader::text() const {
  if (value_->is_string()) return value_->get<std::string>();
  failExpecting("a string");
  return "";
}

bool FieldReader::flag() const {
  if (value_->is_boolean()) return value_->get<bool>();
  failExpecting("true or false");
  return false;
}

}  // namespace stowage::planner
