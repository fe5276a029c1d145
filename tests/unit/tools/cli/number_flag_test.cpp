// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/number_flag.h"

#include <gtest/gtest.h>

namespace stowage::tools {
namespace {

TEST(NumberFlag, SeedsAreWholeNumbersThatFit) {
  for (const char* good : {"0", "7", "9223372036854775807"}) EXPECT_EQ(describeBadSeed(good), "");
  for (const char* bad : {"", "-1", "1.5", "7x", "9223372036854775808"}) {
    EXPECT_EQ(describeBadSeed(bad),
              std::string("found '") + bad + "', expected a whole number from 0 to 2^63 - 1");
  }
}

TEST(NumberFlag, RatesAreNumbersInTheirRange) {
  for (const char* good : {"0", "1e-3", "1e9"}) EXPECT_EQ(describeBadRate(good), "");
  for (const char* bad : {"", "nan", "-1e-3", "2e9", "fast"}) {
    EXPECT_EQ(describeBadRate(bad),
              std::string("found '") + bad + "', expected a number from 0 to 1e9");
  }
}

TEST(NumberFlag, SecondsAreAboveZero) {
  for (const char* good : {"0.5", "10", "1e300"}) EXPECT_EQ(describeBadSeconds(good), "");
  for (const char* bad : {"", "0", "-1", "soon", "nan", "inf"}) {
    EXPECT_EQ(describeBadSeconds(bad),
              std::string("found '") + bad + "', expected seconds above 0");
  }
}

}  // namespace
}  // namespace stowage::tools
