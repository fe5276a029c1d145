// SPDX-License-Identifier: Apache-2.0
#include "ir/base/units.h"

#include <array>
#include <cstdio>

namespace stowage {

namespace {
std::string formatScaled(double value, const char* unit) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.2f %s", value, unit);
  return text.data();
}
}  // namespace

std::string formatBytes(Bytes bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto scaled = static_cast<double>(bytes.value());
  size_t unit = 0;
  while (unit + 1 < kUnits.size() && (scaled >= 1024 || scaled <= -1024)) {
    scaled /= 1024;
    ++unit;
  }
  if (unit == 0) return std::to_string(bytes.value()) + " B";
  return formatScaled(scaled, kUnits[unit]);
}

std::string formatDuration(Nanoseconds duration) {
  const auto ns = static_cast<double>(duration.value());
  if (ns < 1e3) return std::to_string(duration.value()) + " ns";
  if (ns < 1e6) return formatScaled(ns / 1e3, "us");
  if (ns < 1e9) return formatScaled(ns / 1e6, "ms");
  return formatScaled(ns / 1e9, "s");
}

}  // namespace stowage
