// SPDX-License-Identifier: Apache-2.0
//
// A pinned arena takes the host memory that it is asked for, to the page; huge pages make it no
// larger. CUDA's calls are this file's: what is pinned is written down.
#include "runtime/cuda/pinned_arena.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "runtime/cuda/numa_node.h"
#include "tests/support/memory_map.h"
#include "tests/support/or_fail.h"
#include "tests/support/scratch_folder.h"

namespace {

using stowage::tests::Mapping;

/// What is pinned now: address and bytes.
std::map<void*, size_t>& pinned() {
  static std::map<void*, size_t> ranges;
  return ranges;
}
/// Bytes in memory when the last range was pinned.
int64_t residentAtPinning = 0;
size_t mostPinned = SIZE_MAX;

/// The mappings of [base, base + bytes), which begin and end with it.
Mapping sumOf(const void* base, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(base);
  Mapping sum = {.begin = begin, .end = begin};
  for (const Mapping& mapping : stowage::tests::readMappings()) {
    if (!mapping.isOpen || mapping.begin != sum.end || sum.end >= begin + bytes) continue;
    sum.end = mapping.end;
    sum.resident += mapping.resident;
  }
  return sum;
}

}  // namespace

extern "C" {
cudaError_t CUDARTAPI cudaHostRegister(void* base, size_t bytes, unsigned /*flags*/) {
  if (bytes > mostPinned) return cudaErrorMemoryAllocation;
  residentAtPinning = sumOf(base, bytes).resident;
  pinned()[base] = bytes;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaHostUnregister(void* base) {
  return pinned().erase(base) == 1 ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t CUDARTAPI cudaGetLastError() { return cudaSuccess; }
const char* CUDARTAPI cudaGetErrorString(cudaError_t /*error*/) { return "no"; }
const char* CUDARTAPI cudaGetErrorName(cudaError_t /*error*/) { return "no"; }
cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaDeviceGetPCIBusId(char* id, int length, int /*device*/) {
  std::snprintf(id, static_cast<size_t>(length), "0000:00:00.0");
  return cudaSuccess;
}
}

namespace stowage::runtime {
namespace {

using namespace literals;

constexpr int64_t kPage = 4096;

int64_t pagesOf(Bytes bytes) { return roundUp(bytes, kPage).value(); }

TEST(PinnedArena, TakesTheBytesThatItIsAskedForToThePage) {
  // No power of two, no whole pages, no whole huge pages.
  for (const Bytes bytes : {1_B, Bytes(kPage), 3_MiB + 5_B, 17_MiB + 4096_B, 33_MiB - 512_B}) {
    const PinnedArena arena = tests::orFail(PinnedArena::allocate(bytes, {}));
    EXPECT_EQ(arena.bytes(), bytes);
    ASSERT_EQ(pinned().count(arena.base()), 1U);
    EXPECT_EQ(pinned()[arena.base()], static_cast<size_t>(bytes.value()));
    EXPECT_EQ(residentAtPinning, pagesOf(bytes)) << "all pages are there before they are pinned";
    const Mapping taken = sumOf(arena.base(), static_cast<size_t>(bytes.value()));
    EXPECT_EQ(taken.end - taken.begin, static_cast<uint64_t>(pagesOf(bytes)));
    EXPECT_EQ(taken.resident, pagesOf(bytes));
  }
  EXPECT_TRUE(pinned().empty());
}

TEST(PinnedArena, TakesWhatItGrowsTo) {
  PinnedArena arena = tests::orFail(PinnedArena::allocate(3_MiB + 5_B, {}, 64_MiB));
  *arena.base() = 77;
  for (const Bytes bytes : {4_MiB, 21_MiB + 512_B, 21_MiB + 513_B}) {
    tests::orFail(arena.grow(bytes, {}));
    EXPECT_EQ(sumOf(arena.base(), static_cast<size_t>(bytes.value())).resident, pagesOf(bytes));
    EXPECT_EQ(pinned()[arena.base()], static_cast<size_t>(bytes.value()));
    EXPECT_EQ(*arena.base(), 77);
  }
}

TEST(PinnedArena, ARefusalNamesTheBytesAndPinsNothing) {
  mostPinned = 1;
  ir::Expected<PinnedArena> arena = PinnedArena::allocate(3_MiB, {});
  mostPinned = SIZE_MAX;
  ASSERT_FALSE(arena);
  const ir::PlanError error = ir::takePayload(arena.takeError());
  EXPECT_EQ(error.code(), ir::ErrorCode::kOutOfDeviceMemory);
  EXPECT_NE(error.text().find("(3145728 bytes)"), std::string::npos) << error.text();
  EXPECT_TRUE(pinned().empty());
}

/// A machine's sys/ with these nodes that have memory, and a GPU.
class NumaNode : public testing::Test {
 protected:
  NumaNode() {
    write("sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
    write("sys/bus/pci/devices/0000:af:00.0/numa_node", "-1\n");
  }
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.at(path);
    std::filesystem::create_directories(file.parent_path());
    tests::writeText(file, text);
  }
  std::optional<int> find(const std::string& busId) const {
    return findNumaNode(busId, folder_.at(""));
  }
  std::string root() const { return folder_.at(""); }

 private:
  tests::ScratchFolder folder_{"stowage_numa"};
};

TEST_F(NumaNode, IsTheGpusWhereTheMachineHasSeveral) {
  for (const char* several : {"0-1\n", "0,2\n", "0-3,8\n"}) {
    write("sys/devices/system/node/has_memory", several);
    EXPECT_EQ(find("0000:3B:00.0"), 1) << several;
    EXPECT_EQ(find("0000:AF:00.0"), std::nullopt) << several;
    EXPECT_EQ(find("0000:01:00.0"), std::nullopt) << several;
  }
}

TEST_F(NumaNode, OfOneIsNone) {
  EXPECT_EQ(find("0000:3B:00.0"), std::nullopt);
  write("sys/devices/system/node/has_memory", "0\n");
  EXPECT_EQ(find("0000:3B:00.0"), std::nullopt);
}

TEST_F(NumaNode, ThreadsMoveToItsProcessors) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  write("sys/devices/system/node/node1/cpulist", std::to_string(first) + ",5000\n");
  ASSERT_TRUE(runOnNumaNode(1, root()));
  cpu_set_t now;
  ASSERT_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
  EXPECT_EQ(CPU_COUNT(&now), 1);
  EXPECT_TRUE(CPU_ISSET(first, &now));
  EXPECT_FALSE(runOnNumaNode(2, root())) << "a node without processors";
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST(NumaPolicy, TheKernelKeepsItForTheRange) {
  const PinnedArena arena = tests::orFail(PinnedArena::allocate(8_MiB, {}));
  if (!preferNumaNode(arena.base(), arena.bytes(), 0)) {
    GTEST_SKIP() << "the kernel refuses policies";
  }
  char begin[32];  // NOLINT
  std::snprintf(begin, sizeof(begin), "%lx ",
                reinterpret_cast<unsigned long>(arena.base()));  // NOLINT
  const std::string maps = tests::readText("/proc/self/numa_maps");
  const size_t at = maps.find(begin);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(maps.substr(at + std::string(begin).size(), 8), "prefer:0");
}

TEST(NumaPolicy, ANodeThatCannotBeIsRefused) {
  const PinnedArena arena = tests::orFail(PinnedArena::allocate(1_MiB, {}));
  EXPECT_FALSE(preferNumaNode(arena.base(), arena.bytes(), 1023));
  EXPECT_FALSE(preferNumaNode(arena.base(), arena.bytes(), 5000));
  EXPECT_FALSE(preferNumaNode(arena.base(), arena.bytes(), -1));
}

}  // namespace
}  // namespace stowage::runtime
