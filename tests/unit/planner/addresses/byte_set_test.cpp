// SPDX-License-Identifier: Apache-2.0
//
// Sets of bytes and the holes between them, against one flag per byte.
#include "planner/addresses/byte_set.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace stowage::planner {
namespace {

constexpr int64_t kBytes = 64;
using Flags = std::array<bool, kBytes>;

void setIn(Flags& flags, const ByteSpan& bytes) {
  for (int64_t i = bytes.begin; i < bytes.end; ++i) flags[static_cast<size_t>(i)] = true;
}

/// Where the smallest hole of at least `least` bytes from `base` on begins.
int64_t findByFlags(const Flags& taken, int64_t base, int64_t least) {
  int64_t best = -1;
  int64_t bestBytes = INT64_MAX;
  int64_t begin = base;
  for (int64_t i = base; i < kBytes; ++i) {
    if (!taken[static_cast<size_t>(i)]) continue;
    if (i - begin >= least && i - begin < bestBytes) {
      best = begin;
      bestBytes = i - begin;
    }
    begin = i + 1;
  }
  return best < 0 ? begin : best;
}

TEST(ByteSet, HasTheBytesThatWereInsertedInFewSpans) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    ByteSet set;
    Flags flags{};
    for (int i = 0; i < 12; ++i) {
      const auto begin = static_cast<int64_t>(random() % (kBytes - 6));
      const ByteSpan bytes{begin, begin + 1 + static_cast<int64_t>(random() % 6)};
      const Flags before = flags;
      setIn(flags, bytes);
      EXPECT_EQ(set.insert(bytes), flags != before);
      Flags found{};
      int64_t end = -1;
      for (const ByteSpan& span : set.spans()) {
        EXPECT_GT(span.begin, end) << "spans that touch are one";
        end = span.end;
        setIn(found, span);
      }
      ASSERT_EQ(found, flags);
    }
  }
}

TEST(Holes, TheSmallestIsThatBetweenAllOfTheSets) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    const auto base = static_cast<int64_t>(random() % 4);
    const auto least = static_cast<int64_t>(1 + random() % 5);
    Holes holes;
    holes.reset(base, least);
    Flags flags{};
    for (int part = 0; part < 3; ++part) {
      std::vector<ByteSpan> taken;  // by begin; some overlap
      int64_t begin = 0;
      while ((begin += static_cast<int64_t>(random() % 14)) < kBytes - 8) {
        taken.push_back({begin, begin + 1 + static_cast<int64_t>(random() % 8)});
        setIn(flags, taken.back());
      }
      holes.subtract(taken);
      ASSERT_EQ(holes.smallest(), findByFlags(flags, base, least)) << round;
    }
  }
}

}  // namespace
}  // namespace stowage::planner
