// SPDX-License-Identifier: Apache-2.0
//
// What a container allows counts, not what its machine has.
#include "tools/machine/machine_memory.h"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace stowage::tools {
namespace {

TEST(MachineMemory, TheLimitOfAControlGroupIsRead) {
  const tests::ScratchFolder root("stowage_cgroup");
  const MemoryFiles files = {.groups = root.at(""), .machine = ""};
  EXPECT_EQ(groupLimit(files), std::nullopt);
  tests::writeText(root.at("memory.max"), "max\n");
  EXPECT_EQ(groupLimit(files), std::nullopt);
  tests::writeText(root.at("memory.max"), "8589934592\n");
  EXPECT_EQ(groupLimit(files), Bytes(int64_t{8} << 30));
}

TEST(MachineMemory, TheLimitOfAControlGroupOfTheFirstVersionIsRead) {
  const tests::ScratchFolder root("stowage_cgroup_v1");
  std::filesystem::create_directory(root.at("memory"));
  const MemoryFiles files = {.groups = root.at(""), .machine = ""};
  tests::writeText(root.at("memory/memory.limit_in_bytes"), "9223372036854771712\n");
  EXPECT_EQ(groupLimit(files), std::nullopt);
  tests::writeText(root.at("memory/memory.limit_in_bytes"), "1048576\n");
  EXPECT_EQ(groupLimit(files), Bytes(1 << 20));
}

TEST(MachineMemory, WhereNothingTellsWhatIsFreeAllMayBeUsed) {
  const tests::ScratchFolder root("stowage_memory");
  const MemoryFiles files = {.groups = root.at(""), .machine = root.at("meminfo")};
  EXPECT_EQ(usableMemory(files).bytes, machineMemory());
  EXPECT_EQ(usableMemory(files).source, "this machine has " + formatBytes(machineMemory()));
  tests::writeText(root.at("memory.max"), "1048576\n");
  EXPECT_EQ(usableMemory(files).bytes, Bytes(1 << 20));
  EXPECT_EQ(usableMemory(files).source, "this process's control group has 1.00 MiB");
  // More than there is.
  const Bytes twice = machineMemory() + machineMemory();
  tests::writeText(root.at("memory.max"), std::to_string(twice.value()) + "\n");
  EXPECT_EQ(usableMemory(files).bytes, machineMemory());
}

TEST(MachineMemory, WhatOthersHoldOfTheMachineMayNotBeUsed) {
  const tests::ScratchFolder root("stowage_memory");
  const MemoryFiles files = {.groups = root.at(""), .machine = root.at("meminfo")};
  tests::writeText(
      files.machine,
      "MemTotal:       24682468 kB\nMemAvailable:      6144 kB\nSwapFree:   2048 kB\n");
  EXPECT_EQ(usableMemory(files).bytes, Bytes(8 << 20));
  EXPECT_EQ(usableMemory(files).source,
            "this machine has 8.00 MiB free of " + formatBytes(machineMemory()));
}

TEST(MachineMemory, AGroupsFileCachesAreFreeAndItsSharedMemoryIsNot) {
  const tests::ScratchFolder root("stowage_memory");
  const MemoryFiles files = {.groups = root.at(""), .machine = root.at("meminfo")};
  constexpr int64_t kMiB = 1 << 20;
  tests::writeText(root.at("memory.max"), std::to_string(64 * kMiB) + "\n");
  tests::writeText(root.at("memory.current"), std::to_string(40 * kMiB) + "\n");
  tests::writeText(root.at("memory.stat"), "anon " + std::to_string(24 * kMiB) + "\nfile " +
                                               std::to_string(14 * kMiB) + "\nshmem " +
                                               std::to_string(6 * kMiB) + "\nslab_reclaimable " +
                                               std::to_string(2 * kMiB) + "\n");
  EXPECT_EQ(usableMemory(files).bytes, Bytes(34 * kMiB));
  EXPECT_EQ(usableMemory(files).source,
            "this process's control group has 34.00 MiB free of 64.00 MiB");
  // The machine has less.
  tests::writeText(files.machine, "MemAvailable: 1024 kB\n");
  EXPECT_EQ(usableMemory(files).bytes, Bytes(kMiB));
}

}  // namespace
}  // namespace stowage::tools
