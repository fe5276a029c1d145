// SPDX-License-Identifier: Apache-2.0
#include "ir/text/literal.h"

#include <llvm/ADT/StringExtras.h>

#include <array>
#include <charconv>
#include <cmath>

namespace stowage::ir {

void writeDouble(llvm::raw_ostream& os, double value) {
  if (std::isnan(value)) {
    os << "nan";
    return;
  }
  if (std::isinf(value)) {
    os << (value < 0 ? "-inf" : "inf");
    return;
  }
  std::array<char, 40> digits{};
  const auto [end, code] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  const llvm::StringRef text(digits.data(), static_cast<size_t>(end - digits.data()));
  os << text;
  if (text.find_first_of(".e") == llvm::StringRef::npos) os << ".0";
}

void writeQuoted(llvm::raw_ostream& os, llvm::StringRef text) {
  os << '"';
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      os << '\\' << character;
    } else if (character == '\n') {
      os << "\\n";
    } else if (byte < 0x20 || byte > 0x7e) {
      os << "\\x" << llvm::hexdigit(byte >> 4) << llvm::hexdigit(byte & 15);
    } else {
      os << character;
    }
  }
  os << '"';
}

void writeIntegers(llvm::raw_ostream& os, llvm::ArrayRef<int64_t> integers) {
  os << '[';
  for (size_t i = 0; i < integers.size(); ++i) os << (i == 0 ? "" : ",") << integers[i];
  os << ']';
}

void writeType(llvm::raw_ostream& os, const TensorType& type) {
  os << dtypeName(type.dtype);
  writeIntegers(os, type.sizes);
  if (type.strides != contiguousStrides(type.sizes)) {
    os << " strides=";
    writeIntegers(os, type.strides);
  }
  if (type.offset != 0) os << " offset=" << type.offset;
}

}  // namespace stowage::ir
