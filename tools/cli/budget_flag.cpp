// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/budget_flag.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringExtras.h>

#include <array>

#include "ir/base/affix.h"

namespace stowage::tools {

namespace {

using llvm::StringRef;

constexpr int kFractionDigits = 6;

struct Unit {
  const char* name;
  int64_t bytes;
};
constexpr std::array<Unit, 9> kUnits = {{{"B", 1},
                                         {"KiB", int64_t{1} << 10},
                                         {"MiB", int64_t{1} << 20},
                                         {"GiB", int64_t{1} << 30},
                                         {"TiB", int64_t{1} << 40},
                                         {"KB", 1'000},
                                         {"MB", 1'000'000},
                                         {"GB", 1'000'000'000},
                                         {"TB", 1'000'000'000'000}}};

ir::Error badSize(StringRef text, const std::string& why) {
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "size '" + text.str() + "' " + why +
                           "; expected a number with a unit such as 24GiB, 1.5GiB, 24GB, 512MiB, "
                           "50%peak (of the unplanned peak), 80% (of a GPU) or "
                           "device:24GiB (with what lies beside the arena on a GPU)");
}

/// A decimal number as millionths, so that 1.5 and 33.3 are exact. -1 when the text is none or too
/// large.
__int128 parseMillionths(StringRef number) {
  const auto [whole, fraction] = number.split('.');
  if (whole.empty() || whole.size() > 15 || fraction.size() > kFractionDigits) return -1;
  if (number.contains('.') && fraction.empty()) return -1;
  __int128 value = 0;
  for (const char digit : whole) {
    if (!llvm::isDigit(digit)) return -1;
    value = value * 10 + (digit - '0');
  }
  for (int i = 0; i < kFractionDigits; ++i) {
    const char digit = i < static_cast<int>(fraction.size()) ? fraction[i] : '0';
    if (!llvm::isDigit(digit)) return -1;
    value = value * 10 + (digit - '0');
  }
  return value;
}

}  // namespace

ir::Expected<Size> parseSizeFlag(StringRef text) {
  StringRef rest = text.trim();
  if (rest.consume_front("device:")) {
    ir::Expected<Size> all = parseSizeFlag(rest);
    if (!all) return all.takeError();
    if (all->withOutside) return badSize(text, "says 'device:' twice");
    all->withOutside = true;
    return all;
  }
  const StringRef trimmed = text.trim();
  const StringRef number = trimmed.take_while([](char c) { return llvm::isDigit(c) || c == '.'; });
  const StringRef unit = trimmed.drop_front(number.size()).ltrim();
  if (number.empty())
    return badSize(text, ir::startsWith(trimmed, "-") ? "is negative" : "is not a number");
  if (unit.empty()) return badSize(text, "has no unit");
  const __int128 millionths = parseMillionths(number);
  if (millionths < 0) return badSize(text, "is not a decimal number in range");
  Size flag;
  if (unit == "%" || unit.equals_insensitive("%peak")) {
    const __int128 partPerMillion = millionths / 100;
    if (partPerMillion > 1'000'000'000) return badSize(text, "is out of range");
    flag.of = unit == "%" ? Size::Of::kDevice : Size::Of::kPeak;
    flag.partPerMillion = static_cast<int64_t>(partPerMillion);
    return flag;
  }
  for (const Unit& known : kUnits) {
    if (!unit.equals_insensitive(known.name)) continue;
    const __int128 bytes = millionths * known.bytes / 1'000'000;
    if (bytes > (__int128{1} << 60)) return badSize(text, "is out of range");
    flag.bytes = Bytes(static_cast<int64_t>(bytes));
    return flag;
  }
  return badSize(text, "has the unknown unit '" + unit.str() + "'");
}

ir::Expected<std::vector<Size>> parseSizeList(StringRef text, int steps) {
  std::vector<Size> sizes;
  if (!text.contains("..")) {
    llvm::SmallVector<StringRef> parts;
    text.split(parts, ',');
    for (const StringRef part : parts) {
      ir::Expected<Size> size = parseSizeFlag(part);
      if (!size) return size.takeError();
      sizes.push_back(*size);
    }
    return sizes;
  }
  const auto [firstText, lastText] = text.split("..");
  ir::Expected<Size> first = parseSizeFlag(firstText);
  if (!first) return first.takeError();
  ir::Expected<Size> last = parseSizeFlag(lastText);
  if (!last) return last.takeError();
  if (first->of != last->of || first->withOutside != last->withOutside) {
    return badSize(text, "mixes two kinds of sizes");
  }
  if (steps < 2)
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "a range of sizes needs at least 2 steps");
  for (int i = 0; i < steps; ++i) {
    const auto between = [&](int64_t from, int64_t to) {
      return from + static_cast<int64_t>(static_cast<__int128>(to - from) * i / (steps - 1));
    };
    Size size;
    size.of = first->of;
    size.withOutside = first->withOutside;
    if (size.of != Size::Of::kAbsolute) {
      size.partPerMillion = between(first->partPerMillion, last->partPerMillion);
    } else {
      size.bytes = Bytes(between(first->bytes.value(), last->bytes.value()));
    }
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace stowage::tools
