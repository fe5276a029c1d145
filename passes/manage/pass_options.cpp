// SPDX-License-Identifier: Apache-2.0
#include "passes/manage/pass_options.h"

#include <array>
#include <utility>

namespace stowage::passes {

using llvm::StringRef;

namespace {

struct Unit {
  const char* name;
  int64_t bytes;
};

// From large to small, so that printing finds the largest unit that divides.
constexpr std::array<Unit, 5> kUnits = {
    Unit{"TiB", int64_t{1} << 40}, Unit{"GiB", int64_t{1} << 30}, Unit{"MiB", int64_t{1} << 20},
    Unit{"KiB", int64_t{1} << 10}, Unit{"B", 1}};

}  // namespace

std::optional<Bytes> parseSize(StringRef text) {
  int64_t count = 0;
  if (text.consumeInteger(10, count) || count < 0) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (text != unit.name) continue;
    int64_t bytes = 0;
    if (__builtin_mul_overflow(count, unit.bytes, &bytes)) return std::nullopt;
    return Bytes(bytes);
  }
  return std::nullopt;
}

std::string printSize(Bytes bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes.value() % unit.bytes != 0 || bytes.value() == 0) continue;
    return std::to_string(bytes.value() / unit.bytes) + unit.name;
  }
  return std::to_string(bytes.value()) + "B";
}

OptionReader::OptionReader(StringRef passName, StringRef text) : passName_(passName) {
  while (!text.empty()) {
    auto [option, rest] = text.split(',');
    auto [key, value] = option.split('=');
    if (key.trim().empty()) fail("found an empty option");
    if (!values_.emplace(key.trim().str(), value.trim().str()).second) {
      fail("option '" + key.trim().str() + "' is given twice");
    }
    text = rest;
  }
}

void OptionReader::fail(const std::string& message) {
  if (failure_.empty()) failure_ = passName_ + ": " + message;
}

Bytes OptionReader::readSize(StringRef key, Bytes defaultValue) {
  const auto found = values_.find(key.str());
  if (found == values_.end()) return defaultValue;
  const std::optional<Bytes> size = parseSize(found->second);
  if (!size) {
    fail("option '" + key.str() + "' is '" + found->second +
         "', expected a whole number with a unit (B, KiB, MiB, GiB, TiB)");
  }
  values_.erase(found);
  return size.value_or(defaultValue);
}

int64_t OptionReader::readNumber(StringRef key, int64_t defaultValue) {
  const auto found = values_.find(key.str());
  if (found == values_.end()) return defaultValue;
  int64_t number = defaultValue;
  if (StringRef(found->second).getAsInteger(10, number) || number < 0) {
    fail("option '" + key.str() + "' is '" + found->second + "', expected a whole number");
  }
  values_.erase(found);
  return number;
}

std::string OptionReader::readWord(StringRef key, std::string defaultValue) {
  const auto found = values_.find(key.str());
  if (found == values_.end()) return defaultValue;
  std::string value = std::move(found->second);
  values_.erase(found);
  return value;
}

ir::Error OptionReader::finish() {
  if (!values_.empty()) fail("unknown option '" + values_.begin()->first + "'");
  if (failure_.empty()) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument, failure_);
}

}  // namespace stowage::passes
