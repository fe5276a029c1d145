// SPDX-License-Identifier: Apache-2.0
//
// What a container allows counts, not what its machine has.
#include "tools/machine_memory.h"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace stowage::tools {
namespace {

TEST(MachineMemory, TheLimitOfAControlGroupIsRead) {
  const tests::ScratchFolder root("stowage_cgroup");
  const std::string path = root.at("");
  EXPECT_EQ(groupLimit(path), std::nullopt);
  tests::writeText(root.at("memory.max"), "max\n");
  EXPECT_EQ(groupLimit(path), std::nullopt);
  tests::writeText(root.at("memory.max"), "8589934592\n");
  EXPECT_EQ(groupLimit(path), Bytes(int64_t{8} << 30));
}

TEST(MachineMemory, TheLimitOfAControlGroupOfTheFirstVersionIsRead) {
  const tests::ScratchFolder root("stowage_cgroup_v1");
  std::filesystem::create_directory(root.at("memory"));
  tests::writeText(root.at("memory/memory.limit_in_bytes"), "9223372036854771712\n");
  EXPECT_EQ(groupLimit(root.at("")), std::nullopt);
  tests::writeText(root.at("memory/memory.limit_in_bytes"), "1048576\n");
  EXPECT_EQ(groupLimit(root.at("")), Bytes(1 << 20));
}

TEST(MachineMemory, TheSmallerOfMachineAndGroupMayBeUsed) {
  const UsableMemory group = usableMemory(Bytes(1 << 20));
  EXPECT_EQ(group.bytes, Bytes(1 << 20));
  EXPECT_EQ(group.source, "this process's control group allows 1.00 MiB");
  EXPECT_EQ(usableMemory(std::nullopt).bytes, machineMemory());
  EXPECT_EQ(usableMemory(machineMemory() + machineMemory()).bytes, machineMemory());
}

}  // namespace
}  // namespace stowage::tools
