// SPDX-License-Identifier: Apache-2.0
//
// Bytes by launch: sums over ranges and the highest value in a range of a cycle.
#include "planner/evaluate/load_tree.h"

#include <gtest/gtest.h>

#include "tests/support/random.h"

namespace stowage::planner {
namespace {

// Loads of the worked step in units, by launch: boundary, make, read, wide, other, last. A prefetch
// of 8 units that is due at launch 5 has room from launch 4 on and not before: `wide` needs 8.
TEST(LoadTree, APrefetchHasRoomWhereNoLaunchUpToItsDeadlineNeedsTheBytes) {
  LoadTree loads({0, 8, 8, 8, 0, 8});
  EXPECT_EQ(loads.highest(3, 5) + 8, 16);
  EXPECT_EQ(loads.highest(4, 5) + 8, 8);
  loads.add(4, 5, 8);
  EXPECT_EQ(loads.at(4), 8);
  EXPECT_EQ(loads.highest(3, 6), 8);
}

// Five launches are no power of two. [3,7) is 3, 4 and, in the next step, 0 and 1.
TEST(LoadTree, ARangeGoesOnInTheNextStep) {
  LoadTree loads({1, 2, 3, 4, 5});
  loads.add(3, 7, 10);
  EXPECT_EQ(loads.at(0), 11);
  EXPECT_EQ(loads.at(1), 12);
  EXPECT_EQ(loads.at(2), 3);
  EXPECT_EQ(loads.highest(-2, 0), 15) << "3 and 4 of the step before";
  EXPECT_EQ(loads.highest(1, 3), 12);
  EXPECT_LT(loads.highest(2, 2), -1'000'000) << "an empty range";
}

TEST(LoadTree, AgreesWithAPlainListOfLoads) {
  for (const int64_t period : {1, 2, 7, 16, 33}) {
    tests::Random random(static_cast<uint64_t>(period));
    std::vector<int64_t> plain(static_cast<size_t>(period), -3);
    LoadTree loads(plain);
    for (int i = 0; i < 2000; ++i) {
      const int64_t begin = random.between(-period, 2 * period);
      const int64_t end = begin + random.between(1, period);
      const int64_t bytes = random.between(-9, 9);
      loads.add(begin, end, bytes);
      const int64_t from = random.between(-period, 2 * period);
      const int64_t to = from + random.between(1, period);
      int64_t highest = INT64_MIN;
      const auto launch = [&](int64_t at) { return static_cast<size_t>((at + period) % period); };
      for (int64_t at = begin; at < end; ++at) plain[launch(at)] += bytes;
      for (int64_t at = from; at < to; ++at) highest = std::max(highest, plain[launch(at)]);
      ASSERT_EQ(loads.highest(from, to), highest) << "period " << period;
    }
  }
}

}  // namespace
}  // namespace stowage::planner
