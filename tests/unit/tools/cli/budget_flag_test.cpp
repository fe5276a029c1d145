// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/budget_flag.h"

#include <gtest/gtest.h>

namespace stowage::tools {
namespace {

int64_t bytesOf(const char* text) {
  ir::Expected<Size> size = parseSizeFlag(text);
  if (!size) {
    ADD_FAILURE() << ir::describe(size.takeError());
    return -1;
  }
  EXPECT_EQ(size->of, Size::Of::kAbsolute) << text;
  return size->bytes.value();
}

std::string errorOf(const char* text) {
  ir::Expected<Size> size = parseSizeFlag(text);
  if (size) return "accepted";
  return ir::describe(size.takeError());
}

TEST(SizeFlag, AcceptsEveryUnit) {
  EXPECT_EQ(bytesOf("4096B"), 4096);
  EXPECT_EQ(bytesOf("1KiB"), 1024);
  EXPECT_EQ(bytesOf("512MiB"), int64_t{512} << 20);
  EXPECT_EQ(bytesOf("24GiB"), int64_t{24} << 30);
  EXPECT_EQ(bytesOf("2TiB"), int64_t{2} << 40);
  EXPECT_EQ(bytesOf("1KB"), 1000);
  EXPECT_EQ(bytesOf("24GB"), 24'000'000'000);
  EXPECT_EQ(bytesOf("1.5GiB"), int64_t{3} << 29);
  EXPECT_EQ(bytesOf(" 24 gib "), int64_t{24} << 30);
  EXPECT_EQ(bytesOf("0.000001GB"), 1000);
}

TEST(SizeFlag, PercentagesAreExact) {
  ir::Expected<Size> size = parseSizeFlag("33.3%");
  ASSERT_TRUE(static_cast<bool>(size));
  const Size::Wholes wholes = {.device = Bytes(1000), .peak = Bytes(501)};
  EXPECT_EQ(size->resolve(wholes).value(), 333);
  EXPECT_EQ(parseSizeFlag("50%peak")->resolve(wholes).value(), 250);
  EXPECT_EQ(percentOfPeak(33.3).resolve(wholes), parseSizeFlag("33.3%peak")->resolve(wholes));
  EXPECT_EQ(percentOfPeak(33.3).resolve(wholes).value(), 166);
  EXPECT_EQ(parseSizeFlag("7B")->resolve(wholes).value(), 7);
}

TEST(SizeFlag, OfTheDeviceLeavesRoomForWhatLiesBesideTheArena) {
  const Size::Wholes wholes = {.device = Bytes(1000), .peak = Bytes(500), .outside = Bytes(100)};
  EXPECT_EQ(parseSizeFlag("device:700B")->resolve(wholes).value(), 600);
  EXPECT_EQ(parseSizeFlag("device:80%")->resolve(wholes).value(), 700);
  EXPECT_EQ(parseSizeFlag("device:50B")->resolve(wholes).value(), -50);
  EXPECT_NE(errorOf("device:device:1GiB").find("twice"), std::string::npos);
  EXPECT_NE(errorOf("device:").find("is not a number"), std::string::npos);
}

TEST(SizeFlag, RefusesWhatCannotBeMeant) {
  EXPECT_NE(errorOf("24").find("has no unit"), std::string::npos);
  EXPECT_NE(errorOf("").find("is not a number"), std::string::npos);
  EXPECT_NE(errorOf("-1GiB").find("is negative"), std::string::npos);
  EXPECT_NE(errorOf("1.2.3GiB").find("not a decimal number"), std::string::npos);
  EXPECT_NE(errorOf("24G").find("unknown unit 'G'"), std::string::npos);
  EXPECT_NE(errorOf("99999999TiB").find("out of range"), std::string::npos);
  EXPECT_NE(errorOf("9999999999999999GiB").find("in range"), std::string::npos);
}

TEST(SizeList, RangesAndLists) {
  ir::Expected<std::vector<Size>> range = parseSizeList("20%..100%", 5);
  ASSERT_TRUE(static_cast<bool>(range));
  ASSERT_EQ(range->size(), 5U);
  EXPECT_EQ((*range)[1].partPerMillion, 400'000);
  EXPECT_EQ(parseSizeList("1GiB,2GiB,50%", 9)->size(), 3U);
  EXPECT_TRUE((*parseSizeList("device:1GiB..device:2GiB", 3))[1].withOutside);
  EXPECT_NE(ir::describe(parseSizeList("device:1GiB..2GiB", 5).takeError()).find("mixes"),
            std::string::npos);
  EXPECT_NE(ir::describe(parseSizeList("20%..1GiB", 5).takeError()).find("mixes"),
            std::string::npos);
}

}  // namespace
}  // namespace stowage::tools
