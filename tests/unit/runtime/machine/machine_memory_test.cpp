// SPDX-License-Identifier: Apache-2.0
//
// What a container allows counts, not what its machine has: proc/ and sys/ of machines with control
// groups of both versions, as folders.
#include "runtime/machine/machine_memory.h"

#include <gtest/gtest.h>

#include "runtime/machine/control_group.h"
#include "tests/support/scratch_folder.h"

namespace stowage::runtime {
namespace {

using namespace literals;

const char* const kSecondMount =
    "31 23 0:28 / / rw - ext4 /dev/vda rw\n"
    "42 31 0:29 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
const char* const kFirstMounts =
    "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

/// A machine of 64 GiB with 32 of them free.
class MachineMemoryTest : public testing::Test {
 protected:
  MachineMemoryTest() {
    write("proc/meminfo",
          "MemTotal:       67108864 kB\nMemFree:  1024 kB\nMemAvailable:   33554432 kB\n"
          "SwapFree:              0 kB\n");
  }
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.at(path);
    std::filesystem::create_directories(file.parent_path());
    tests::writeText(file, text);
  }
  void write(const std::string& path, Bytes bytes) {
    write(path, std::to_string(bytes.value()) + "\n");
  }
  void mountSecond(const std::string& group) {
    write("proc/self/mountinfo", kSecondMount);
    write("proc/self/cgroup", "0::" + group + "\n");
  }
  void mountFirst(const std::string& group) {
    write("proc/self/mountinfo", kFirstMounts);
    write("proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:" + group + "\n0::/\n");
  }
  UsableMemory usable() const { return usableMemory(root()); }
  std::string root() const { return folder_.at(""); }

 private:
  tests::ScratchFolder folder_{"stowage_machine"};
};

TEST_F(MachineMemoryTest, WithoutGroupsItIsWhatTheMachineHasFree) {
  EXPECT_EQ(machineMemory(root()), 64_GiB);
  EXPECT_EQ(usable().bytes, 32_GiB);
  EXPECT_EQ(usable().source, "this machine has 32.00 GiB free of 64.00 GiB");
  EXPECT_FALSE(tightestGroup(root()));
}

TEST_F(MachineMemoryTest, FreeSwapMakesRoom) {
  write("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 1048576 kB\nSwapFree: 2097152 kB\n");
  EXPECT_EQ(usable().bytes, 3_GiB);
}

TEST_F(MachineMemoryTest, WhereNothingTellsWhatIsFreeAllMayBeUsed) {
  write("proc/meminfo", "");
  EXPECT_EQ(machineMemory(root()), machineMemory());
  EXPECT_EQ(usable().bytes, machineMemory());
  EXPECT_EQ(usable().source, "this machine has " + formatBytes(machineMemory()));
}

TEST_F(MachineMemoryTest, AGroupOfTheSecondVersionLimits) {
  mountSecond("/");
  write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_FALSE(tightestGroup(root()));
  EXPECT_EQ(usable().bytes, 32_GiB);
  write("sys/fs/cgroup/memory.max", 8_GiB);
  EXPECT_EQ(usable().bytes, 8_GiB);
  EXPECT_EQ(usable().source, "this process's control group has 8.00 GiB");
  write("sys/fs/cgroup/memory.current", 3_GiB);
  EXPECT_EQ(usable().bytes, 5_GiB);
  EXPECT_EQ(usable().source, "this process's control group has 5.00 GiB free of 8.00 GiB");
}

// Above memory.high a process is slowed down until it stands still.
TEST_F(MachineMemoryTest, WhereAGroupIsSlowedDownItEnds) {
  mountSecond("/");
  write("sys/fs/cgroup/memory.high", 6_GiB);
  write("sys/fs/cgroup/memory.current", 1_GiB);
  EXPECT_EQ(usable().bytes, 5_GiB);
  write("sys/fs/cgroup/memory.max", 4_GiB);
  EXPECT_EQ(usable().bytes, 3_GiB);
}

TEST_F(MachineMemoryTest, FileCachesAreFreeAndSharedMemoryIsNot) {
  mountSecond("/");
  write("sys/fs/cgroup/memory.max", 64_MiB);
  write("sys/fs/cgroup/memory.current", 40_MiB);
  write("sys/fs/cgroup/memory.stat",
        "anon 25165824\nfile 14680064\nshmem 6291456\nslab_reclaimable 2097152\n");
  EXPECT_EQ(usable().bytes, 34_MiB);  // 64 - (40 - (14 - 6 + 2))
}

TEST_F(MachineMemoryTest, TheGroupWithTheLeastFreeCounts) {
  mountSecond("/user/job");
  write("sys/fs/cgroup/user/job/memory.max", 16_GiB);
  write("sys/fs/cgroup/user/job/memory.current", 2_GiB);
  EXPECT_EQ(usable().bytes, 14_GiB);
  // Others in the group around it have used most of a larger limit.
  write("sys/fs/cgroup/user/memory.max", 20_GiB);
  write("sys/fs/cgroup/user/memory.current", 15_GiB);
  EXPECT_EQ(usable().bytes, 5_GiB);
  EXPECT_EQ(tightestGroup(root())->limit, 20_GiB);
  // The machine has less than all of them.
  write("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 1048576 kB\n");
  EXPECT_EQ(usable().bytes, 1_GiB);
  EXPECT_EQ(usable().source, "this machine has 1.00 GiB free of 64.00 GiB");
}

TEST_F(MachineMemoryTest, AGroupOfTheFirstVersionLimits) {
  mountFirst("/docker/job");
  const std::string group = "sys/fs/cgroup/memory/docker/job/";
  write(group + "memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(tightestGroup(root()));
  write(group + "memory.limit_in_bytes", 10_GiB);
  write(group + "memory.usage_in_bytes", 7_GiB);
  EXPECT_EQ(usable().bytes, 3_GiB);
  write(group + "memory.stat",
        "cache 0\nshmem 0\ntotal_cache 2147483648\ntotal_shmem 1073741824\n");
  EXPECT_EQ(usable().bytes, 4_GiB);
  write("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", 2_GiB);
  EXPECT_EQ(usable().bytes, 2_GiB);
}

// A container sees its own group alone, below the name that the machine gave it.
TEST_F(MachineMemoryTest, AContainersOwnGroupIsTheOneThatIsMounted) {
  const std::string mount =
      "35 31 0:32 /docker/job /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
  write("proc/self/mountinfo", mount);
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", 4_GiB);
  write("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", 1_GiB);
  for (const char* outside : {"/docker/job", "/docker/job2", "/", "/../other", ""}) {
    write("proc/self/cgroup", std::string("4:memory:") + outside + "\n");
    EXPECT_EQ(usable().bytes, 4_GiB) << outside;
  }
  write("proc/self/cgroup", "4:memory:/docker/job/inner\n");
  EXPECT_EQ(usable().bytes, 1_GiB);
}

TEST_F(MachineMemoryTest, FilesThatAreNotThereLimitNothing) {
  mountSecond("/gone");
  EXPECT_EQ(usable().bytes, 32_GiB);
  write("proc/self/mountinfo", "nonsense\n1 2 3 - cgroup2\n");
  EXPECT_EQ(usable().bytes, 32_GiB);
}

TEST(MachineMemory, OfThisMachineIsPositiveAndNoMoreThanItHas) {
  EXPECT_GT(usableMemory().bytes, Bytes(0));
  EXPECT_LE(usableMemory().bytes, machineMemory());
}

}  // namespace
}  // namespace stowage::runtime
