// SPDX-License-Identifier: Apache-2.0
//
// A plan whose arenas are more than there is is refused before anything is allocated, and the
// refusal names what fits.
#include "runtime/machine/host_need.h"

#include <gtest/gtest.h>

namespace stowage::runtime {
namespace {

using namespace literals;

UsableMemory have(Bytes bytes) { return {bytes, "this machine has little"}; }

ir::PlanError refusal(const HostNeed& need, Bytes usable) {
  return ir::takePayload(checkHostMemory(need, have(usable)));
}

bool fits(const HostNeed& need, Bytes usable) {
  return ir::describe(checkHostMemory(need, have(usable))).empty();
}

TEST(HostNeed, TheDeviceArenaCountsWhereTheDeviceIsTheHost) {
  ir::Schedule schedule;
  schedule.arenas = {{ir::Space::kDevice, 3_GiB}, {ir::Space::kHost, 1_GiB}};
  EXPECT_EQ(hostNeedOf(schedule, ir::DeviceKind::kCpu).device, 3_GiB);
  EXPECT_EQ(hostNeedOf(schedule, ir::DeviceKind::kCuda).device, Bytes(0));
  EXPECT_EQ(hostNeedOf(schedule, ir::DeviceKind::kCuda).host, 1_GiB);
}

TEST(HostNeed, PageTablesAndTheProcessNeedRoomBesideTheArenas) {
  const HostNeed need = {.host = 6_GiB, .device = 2_GiB};
  EXPECT_EQ(need.total(), 8_GiB + 16_MiB + 64_MiB);
  EXPECT_TRUE(fits(need, need.total()));
  EXPECT_EQ(refusal(need, need.total() - 1_B).code(), ir::ErrorCode::kEnvironment);
}

TEST(HostNeed, APlanWithoutArenasNeedsNothing) { EXPECT_TRUE(fits({}, Bytes(0))); }

TEST(HostNeed, ARefusalSaysWhatWasFoundAndWhatFits) {
  const ir::PlanError error = refusal({.host = 6_GiB, .device = {}}, 4_GiB);
  EXPECT_EQ(error.text(),
            "the plan's arenas need 6.00 GiB of host memory, and 76.00 MiB go beside them: this "
            "machine has little");
  ASSERT_EQ(error.notes().size(), 1U);
  EXPECT_NE(error.notes()[0].find("(--host 3768MiB, in Python host=\"3768MiB\")"),
            std::string::npos)
      << error.notes()[0];
  EXPECT_NE(error.notes()[0].find("(--disk, disk=)"), std::string::npos);
}

TEST(HostNeed, WhereTheCpusDeviceArenaIsTooLargeASmallerBudgetHelps) {
  const ir::PlanError error = refusal({.host = 1_GiB, .device = 6_GiB}, 4_GiB);
  EXPECT_NE(
      error.text().find("1.00 GiB for the host arena and 6.00 GiB for the CPU's device arena"),
      std::string::npos)
      << error.text();
  ASSERT_EQ(error.notes().size(), 1U);
  EXPECT_NE(error.notes()[0].find("smaller budget"), std::string::npos);
}

// Whatever limit is named fits, and leaves a sixteenth.
TEST(HostNeed, TheLimitThatIsNamedFits) {
  for (int64_t usable = 1; usable < int64_t{1} << 50; usable = usable * 3 + 12345) {
    for (const int64_t device : {int64_t{0}, usable / 3}) {
      const auto limit = largestHostArena(Bytes(device), have(Bytes(usable)));
      if (!limit) continue;
      const HostNeed need = {.host = *limit, .device = Bytes(device)};
      const Bytes most(usable - usable / 16);
      EXPECT_TRUE(fits(need, most)) << usable;
      EXPECT_FALSE(fits({.host = *limit + 2_MiB, .device = Bytes(device)}, most)) << usable;
    }
  }
}

}  // namespace
}  // namespace stowage::runtime
