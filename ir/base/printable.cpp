// SPDX-License-Identifier: Apache-2.0
#include "ir/base/printable.h"

#include <llvm/ADT/StringExtras.h>

#include <algorithm>
#include <cstdint>

namespace stowage::ir {
namespace {

constexpr size_t kLongestCharacter = 4;

uint8_t byteAt(llvm::StringRef text, size_t place) { return static_cast<uint8_t>(text[place]); }

bool continues(uint8_t byte) { return (byte & 0xc0) == 0x80; }

/// How many bytes a character has, by its first one; 0: none begins so.
size_t lengthAfter(uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

bool isPrintable(uint32_t character) {
  if (character < 0x20 || (character >= 0x7f && character < 0xa0)) return false;
  // Marks and embeddings of direction, and other ends of lines.
  const bool turns = character == 0x061c || character == 0x200e || character == 0x200f ||
                     (character >= 0x2028 && character <= 0x202e) ||
                     (character >= 0x2066 && character <= 0x2069);
  const bool isSurrogate = character >= 0xd800 && character < 0xe000;
  return !turns && !isSurrogate && character <= 0x10ffff;
}

/// The place of a character's begin, at `place` or up to three bytes before it.
size_t beginBefore(llvm::StringRef text, size_t place) {
  size_t begin = place;
  while (begin > 0 && place - begin < kLongestCharacter && continues(byteAt(text, begin))) --begin;
  return continues(byteAt(text, begin)) ? place : begin;
}

}  // namespace

size_t printableLength(llvm::StringRef text) {
  const uint8_t first = byteAt(text, 0);
  const size_t length = lengthAfter(first);
  if (length == 0 || length > text.size()) return 0;
  if (length == 1) return isPrintable(first) ? 1 : 0;
  uint32_t character = first & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if (!continues(byteAt(text, i))) return 0;
    character = (character << 6) | (byteAt(text, i) & 0x3fU);
  }
  // The shortest form alone: what fewer bytes can say is no UTF-8.
  const bool isOverlong =
      (length == 3 && character < 0x800) || (length == 4 && character < 0x10000);
  return !isOverlong && isPrintable(character) ? length : 0;
}

std::string printable(llvm::StringRef text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const size_t length = printableLength(text);
    if (length > 0) {
      shown.append(text.begin(), length);
    } else {
      const uint8_t byte = byteAt(text, 0);
      shown += {'\\', 'x', llvm::hexdigit(byte >> 4, /*LowerCase=*/true),
                llvm::hexdigit(byte & 15, /*LowerCase=*/true)};
    }
    text = text.drop_front(std::max<size_t>(length, 1));
  }
  return shown;
}

std::string shortened(llvm::StringRef text, size_t most) {
  if (text.size() <= most) return text.str();
  const size_t begin = beginBefore(text, most * 3 / 4);
  const size_t end = beginBefore(text, text.size() - most / 4);
  return text.take_front(begin).str() + " [" + std::to_string(end - begin) + " bytes left out] " +
         text.drop_front(end).str();
}

void writeLine(llvm::raw_ostream& os, llvm::StringRef text) { os << printable(shortened(text)); }

}  // namespace stowage::ir
