// SPDX-License-Identifier: Apache-2.0
//
// More host memory than there is is refused, with what there is.
#include "runtime/machine/host_room.h"

#include <gtest/gtest.h>

#include <utility>

namespace stowage::runtime {
namespace {

using namespace literals;

const UsableMemory kHave = {3_GiB, "this machine has 3.00 GiB free"};

TEST(HostRoom, IsThereToTheLastByte) {
  EXPECT_EQ(ir::describe(checkHostRoom(3_GiB, "the state", kHave)), "");
}

TEST(HostRoom, ForAByteMoreIsRefused) {
  ir::Error error = checkHostRoom(3_GiB + 1_B, "the state", kHave);
  ASSERT_TRUE(static_cast<bool>(error));
  const ir::PlanError refusal = ir::takePayload(std::move(error));
  EXPECT_EQ(refusal.code(), ir::ErrorCode::kOutOfDeviceMemory);
  EXPECT_EQ(refusal.text(),
            "the state needs 3.00 GiB of host memory, and this machine has 3.00 GiB free");
}

}  // namespace
}  // namespace stowage::runtime
