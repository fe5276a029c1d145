// SPDX-License-Identifier: Apache-2.0
//
// Indices grouped by launch.
#include "planner/evaluate/by_launch.h"

#include <gtest/gtest.h>

namespace stowage::planner {
namespace {

using Indices = std::vector<int32_t>;

Indices at(const ByLaunch& groups, int64_t launch) { return groups.at(launch).vec(); }

// The worked step has six launches: the step boundary and nodes 0 to 4. Its only offload may begin
// after launch 1, which writes `a`.
TEST(ByLaunch, TheWorkedStepsOffloadIsFoundAtTheLaunchThatWrites) {
  const ByLaunch offloads(6, 1, [](size_t) { return 1; });
  EXPECT_EQ(at(offloads, 1), Indices{0});
  for (const int64_t launch : {0, 2, 3, 4, 5}) EXPECT_EQ(at(offloads, launch), Indices{});
}

TEST(ByLaunch, IndicesOfOneLaunchAreAscendingAndNegativeLaunchesHaveNone) {
  const std::vector<int64_t> launchOf = {2, -1, 0, 2, 3, -1, 2};
  const ByLaunch groups(4, launchOf.size(), [&](size_t i) { return launchOf[i]; });
  EXPECT_EQ(at(groups, 0), Indices{2});
  EXPECT_EQ(at(groups, 1), Indices{});
  EXPECT_EQ(at(groups, 2), (Indices{0, 3, 6}));
  EXPECT_EQ(at(groups, 3), Indices{4}) << "the last launch";
}

}  // namespace
}  // namespace stowage::planner
