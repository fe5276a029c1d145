// SPDX-License-Identifier: Apache-2.0
#include "ir/base/format_apart.h"

#include <gtest/gtest.h>

namespace stowage {
namespace {

using Pair = std::pair<std::string, std::string>;

TEST(FormatApart, SizesThatRoundingWouldMakeEqualAreExact) {
  const Bytes mebibyte(int64_t{1} << 20);
  EXPECT_EQ(formatApart(Bytes(1'887'744), Bytes(1'888'256)), Pair("1887744 B", "1888256 B"));
  EXPECT_EQ(formatApart(mebibyte, mebibyte * 2),
            Pair(formatBytes(mebibyte), formatBytes(mebibyte * 2)));
  EXPECT_EQ(formatApart(mebibyte, mebibyte), Pair(formatBytes(mebibyte), formatBytes(mebibyte)));
}

}  // namespace
}  // namespace stowage
