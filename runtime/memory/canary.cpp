// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/canary.h"

#include <algorithm>
#include <cstring>

namespace stowage::runtime {

namespace {

constexpr int64_t kWordBytes = sizeof(uint64_t);
constexpr int64_t kPeriodWords = 524'309;  // a prime
constexpr int64_t kPeriod = kPeriodWords * kWordBytes;

/// No byte of it repeats soon.
uint64_t canaryWord(int64_t index) {
  uint64_t z = static_cast<uint64_t>(index) * 0x9E3779B97F4A7C15ULL + 0x5DEECE66DULL;
  z = (z ^ (z >> 29)) * 0xBF58476D1CE4E5B9ULL;
  return z ^ (z >> 32);
}

std::vector<uint8_t> makePattern() {
  std::vector<uint8_t> pattern(kPeriod);
  for (int64_t i = 0; i < kPeriodWords; ++i) {
    const uint64_t word = canaryWord(i);
    std::memcpy(pattern.data() + i * kWordBytes, &word, sizeof(word));
  }
  return pattern;
}

/// Bytes of an arena that lie within one repetition of the pattern.
struct Piece {
  ir::ByteRange span;
  llvm::ArrayRef<uint8_t> expected;
};

Piece pieceOf(int64_t begin, int64_t end) {
  const int64_t phase = begin % kPeriod;
  const int64_t last = std::min(end, begin - phase + kPeriod);
  return {{begin, last},
          canaryPattern().slice(static_cast<size_t>(phase), static_cast<size_t>(last - begin))};
}

/// Reads a piece; empty when it is as it was filled.
ir::Expected<llvm::ArrayRef<uint8_t>> readIfChanged(const Piece& piece, ReadArena read,
                                                    std::vector<uint8_t>& room) {
  room.resize(piece.expected.size());
  if (ir::Error error = read(piece.span.begin, room)) return error;
  const bool same = std::memcmp(room.data(), piece.expected.data(), room.size()) == 0;
  return same ? llvm::ArrayRef<uint8_t>() : llvm::ArrayRef<uint8_t>(room);
}

/// The first changed byte of a span.
ir::Expected<std::optional<int64_t>> findChanged(ir::ByteRange span, ReadArena read) {
  std::vector<uint8_t> room;
  for (int64_t at = span.begin; at < span.end;) {
    const Piece piece = pieceOf(at, span.end);
    ir::Expected<llvm::ArrayRef<uint8_t>> changed = readIfChanged(piece, read, room);
    if (!changed) return changed.takeError();
    const auto [found, expected] =
        std::mismatch(changed->begin(), changed->end(), piece.expected.begin());
    if (found != changed->end()) return std::optional(at + (found - changed->begin()));
    at = piece.span.end;
  }
  return std::optional<int64_t>();
}

}  // namespace

llvm::ArrayRef<uint8_t> canaryPattern() {
  static const std::vector<uint8_t> kPattern = makePattern();
  return kPattern;
}

// From the top down, so that a full arena is answered by its last piece.
ir::Expected<Bytes> findHighWaterMark(Bytes arena, ReadArena read) {
  std::vector<uint8_t> room;
  for (int64_t end = arena.value(); end > 0;) {
    const int64_t begin = (end - 1) / kPeriod * kPeriod;
    const Piece piece = pieceOf(begin, end);
    ir::Expected<llvm::ArrayRef<uint8_t>> changed = readIfChanged(piece, read, room);
    if (!changed) return changed.takeError();
    for (size_t i = changed->size(); i-- > 0;) {
      if ((*changed)[i] != piece.expected[i]) return Bytes(begin + static_cast<int64_t>(i) + 1);
    }
    end = begin;
  }
  return Bytes(0);
}

ir::Expected<std::optional<int64_t>> findStrayByte(Bytes arena,
                                                   llvm::ArrayRef<ir::ByteRange> planned,
                                                   ReadArena read) {
  int64_t begin = 0;
  for (const ir::ByteRange& span : planned) {
    auto found = findChanged({begin, span.begin}, read);
    if (!found || *found) return found;
    begin = span.end;
  }
  return findChanged({begin, arena.value()}, read);
}

}  // namespace stowage::runtime
