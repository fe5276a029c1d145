// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/first_fit.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace stowage::tests {
namespace {

using runtime::FirstFit;

constexpr Bytes kNoLimit{INT64_MAX};

TEST(FirstFit, TakesTheLowestGapThatHoldsTheBlock) {
  FirstFit line(64);
  EXPECT_EQ(line.take(Bytes(64), kNoLimit), 0);
  EXPECT_EQ(line.take(Bytes(100), kNoLimit), 64);  // 128 after rounding
  EXPECT_EQ(line.take(Bytes(1), kNoLimit), 192);
  EXPECT_TRUE(line.release(0));
  EXPECT_TRUE(line.release(64));
  EXPECT_EQ(line.take(Bytes(192), kNoLimit), 0);
  EXPECT_EQ(line.top(), Bytes(256));
  EXPECT_EQ(line.peak(), Bytes(256));
}

TEST(FirstFit, RefusesWhatEndsBeyondTheLimit) {
  FirstFit line(64);
  EXPECT_EQ(line.take(Bytes(64), Bytes(64)), 0);
  EXPECT_EQ(line.take(Bytes(1), Bytes(127)), std::nullopt);
  EXPECT_EQ(line.take(Bytes(1), Bytes(128)), 64);
  EXPECT_EQ(line.take(Bytes(1), Bytes(0)), std::nullopt);
}

TEST(FirstFit, AnEmptyBlockHasAPlaceOfItsOwn) {
  FirstFit line(64);
  EXPECT_EQ(line.take(Bytes(0), kNoLimit), 0);
  EXPECT_EQ(line.take(Bytes(0), kNoLimit), 64);
}

TEST(FirstFit, ReleasesOnlyWhatIsThere) {
  FirstFit line(64);
  line.take(Bytes(128), kNoLimit);
  EXPECT_FALSE(line.release(64));
  EXPECT_FALSE(line.releaseEndingAt(64));
  EXPECT_TRUE(line.releaseEndingAt(128));
  EXPECT_TRUE(line.isEmpty());
}

TEST(FirstFit, BlocksNeverOverlapAndThePeakIsAtMostTheSumOfAllSizes) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 engine(seed);
    FirstFit line(64);
    std::map<int64_t, int64_t> live;  // offset, size
    Bytes asked;
    for (int i = 0; i < 400; ++i) {
      if (!live.empty() && engine() % 2 == 0) {
        auto victim = live.begin();
        std::advance(victim, engine() % live.size());
        ASSERT_TRUE(line.release(victim->first));
        live.erase(victim);
        continue;
      }
      const Bytes size(static_cast<int64_t>(1 + engine() % 5000));
      asked += roundUp(size, 64);
      const int64_t offset = *line.take(size, kNoLimit);
      const auto next = live.lower_bound(offset);
      if (next != live.end()) {
        ASSERT_LE(offset + size.value(), next->first);
      }
      if (next != live.begin()) {
        const auto before = std::prev(next);
        ASSERT_LE(before->first + before->second, offset);
      }
      live[offset] = size.value();
      ASSERT_LE(line.peak(), asked);
    }
  }
}

}  // namespace
}  // namespace stowage::tests
