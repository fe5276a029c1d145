// SPDX-License-Identifier: Apache-2.0
#include "runtime/canary.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace stowage::runtime {

namespace {

constexpr int64_t kWordBytes = sizeof(uint64_t);

/// The word at byte `offset`, a multiple of the word's size. No byte of it repeats soon.
uint64_t canaryWord(int64_t offset) {
  uint64_t z = static_cast<uint64_t>(offset) * 0x9E3779B97F4A7C15ULL + 0x5DEECE66DULL;
  z = (z ^ (z >> 29)) * 0xBF58476D1CE4E5B9ULL;
  return z ^ (z >> 32);
}

uint8_t canaryByte(int64_t offset) {
  const uint64_t word = canaryWord(offset / kWordBytes * kWordBytes);
  std::array<uint8_t, sizeof(word)> bytes{};
  std::memcpy(bytes.data(), &word, sizeof(word));
  return bytes[static_cast<size_t>(offset % kWordBytes)];
}

bool isWordIntact(const uint8_t* arena, int64_t offset) {
  const uint64_t word = canaryWord(offset);
  return std::memcmp(arena + offset, &word, sizeof(word)) == 0;
}

/// The first changed byte in [begin, end).
std::optional<int64_t> findChanged(llvm::ArrayRef<uint8_t> arena, ir::ByteRange span) {
  int64_t at = span.begin;
  while (at < span.end) {
    if (at % kWordBytes == 0 && at + kWordBytes <= span.end && isWordIntact(arena.data(), at)) {
      at += kWordBytes;
      continue;
    }
    if (arena[static_cast<size_t>(at)] != canaryByte(at)) return at;
    ++at;
  }
  return std::nullopt;
}

int64_t roundUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

/// Ascending, touching ones as one.
std::vector<ir::ByteRange> mergeSpans(std::vector<ir::ByteRange> spans) {
  std::sort(spans.begin(), spans.end());
  std::vector<ir::ByteRange> merged;
  for (const ir::ByteRange& span : spans) {
    if (span.isEmpty()) continue;
    if (!merged.empty() && span.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, span.end);
    } else {
      merged.push_back(span);
    }
  }
  return merged;
}

}  // namespace

void fillCanary(llvm::MutableArrayRef<uint8_t> arena) {
  const auto bytes = static_cast<int64_t>(arena.size());
  int64_t at = 0;
  for (; at + kWordBytes <= bytes; at += kWordBytes) {
    const uint64_t word = canaryWord(at);
    std::memcpy(arena.data() + at, &word, sizeof(word));
  }
  for (; at < bytes; ++at) arena[static_cast<size_t>(at)] = canaryByte(at);
}

Bytes touchedHeight(llvm::ArrayRef<uint8_t> arena) {
  auto height = static_cast<int64_t>(arena.size());
  while (height > 0) {
    if (height % kWordBytes == 0 && isWordIntact(arena.data(), height - kWordBytes)) {
      height -= kWordBytes;
    } else if (arena[static_cast<size_t>(height - 1)] == canaryByte(height - 1)) {
      --height;
    } else {
      break;
    }
  }
  return Bytes(height);
}

std::vector<ir::ByteRange> plannedSpans(const ir::Graph& graph, const ir::Schedule& schedule,
                                        const ir::Target& target, ir::Space space) {
  std::vector<ir::ByteRange> spans;
  for (const ir::Residency& stay : schedule.residencies) {
    if (stay.space != space) continue;
    const int64_t bytes = roundUp(graph.storage(stay.storage).bytes.value(), target.alignBytes);
    spans.push_back({stay.offset, stay.offset + bytes});
  }
  if (space != ir::Space::kDevice) return mergeSpans(std::move(spans));
  for (const ir::Command& command : schedule.commands) {
    if (command.kind != ir::CommandKind::kRun) continue;
    spans.push_back({command.temp.offset, command.temp.offset + command.temp.bytes.value()});
  }
  for (const ir::ReservedRegion& region : target.reserved) {
    spans.push_back({region.offset.value(), region.offset.value() + region.bytes.value()});
  }
  return mergeSpans(std::move(spans));
}

std::optional<int64_t> findStrayByte(llvm::ArrayRef<uint8_t> arena,
                                     llvm::ArrayRef<ir::ByteRange> planned) {
  int64_t begin = 0;
  for (const ir::ByteRange& span : planned) {
    if (const auto found = findChanged(arena, {begin, span.begin})) return found;
    begin = span.end;
  }
  return findChanged(arena, {begin, static_cast<int64_t>(arena.size())});
}

}  // namespace stowage::runtime
