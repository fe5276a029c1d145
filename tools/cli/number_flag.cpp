// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/number_flag.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>

namespace stowage::tools {

namespace {

/// Nothing when the text is not a number as a whole.
template <typename Number>
std::optional<Number> readNumber(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

}  // namespace

std::string describeBadSeed(const std::string& text) {
  const auto seed = readNumber<int64_t>(text);
  return seed && *seed >= 0 ? ""
                            : "found '" + text + "', expected a whole number from 0 to 2^63 - 1";
}

std::string describeBadRate(const std::string& text) {
  const auto rate = readNumber<double>(text);
  return rate && *rate >= 0 && *rate <= 1e9
             ? ""
             : "found '" + text + "', expected a number from 0 to 1e9";
}

std::string describeBadSeconds(const std::string& text) {
  const auto seconds = readNumber<double>(text);
  return seconds && std::isfinite(*seconds) && *seconds > 0
             ? ""
             : "found '" + text + "', expected seconds above 0";
}

}  // namespace stowage::tools
