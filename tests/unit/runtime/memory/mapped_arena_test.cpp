// SPDX-License-Identifier: Apache-2.0
//
// Nobody reads or writes beside an arena unnoticed: the pages around it cannot be touched. Its own
// go and come back.
#include "runtime/memory/mapped_arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "tests/support/or_fail.h"
#include "tests/support/process_memory.h"

namespace stowage::runtime {
namespace {

constexpr int64_t kPage = 4096;

MappedArena mapArena(Bytes bytes) { return tests::orFail(MappedArena::map(bytes, "test")); }

void touch(uint8_t* at) { *const_cast<volatile uint8_t*>(at) = 1; }

TEST(MappedArena, AllOfItCanBeWritten) {
  const MappedArena arena = mapArena(Bytes(3 * kPage));
  for (int64_t i = 0; i < arena.bytes().value(); ++i) touch(arena.base() + i);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.base()) % kArenaAlignment, 0U);
}

TEST(MappedArenaDeathTest, AWriteBeforeItEndsTheProgram) {
  const MappedArena arena = mapArena(Bytes(3 * kPage));
  EXPECT_DEATH(touch(arena.base() - 1), "");
}

TEST(MappedArenaDeathTest, AWriteBehindItEndsTheProgram) {
  const MappedArena arena = mapArena(Bytes(3 * kPage));
  EXPECT_DEATH(touch(arena.base() + arena.bytes().value()), "");
}

// The fence begins with a page.
TEST(MappedArenaDeathTest, BehindAnArenaOfNoWholePagesTheFenceIsLessThanAPageAway) {
  const MappedArena arena = mapArena(Bytes(3 * kPage + 512));
  touch(arena.base() + arena.bytes().value() - 1);
  EXPECT_DEATH(touch(arena.base() + 4 * kPage), "");
}

constexpr Bytes kLarge(int64_t{64} << 20);
constexpr int64_t kOther = int64_t{8} << 20;  // of the process, meanwhile

bool isAll(const MappedArena& arena, uint8_t value) {
  for (int64_t i = 0; i < arena.bytes().value(); ++i) {
    if (arena.base()[i] != value) return false;
  }
  return true;
}

TEST(MappedArena, ThatIsReleasedTakesNoMemoryUntilItIsRestored) {
  MappedArena arena = mapArena(kLarge);
  uint8_t* const base = arena.base();
  std::memset(base, 7, static_cast<size_t>(kLarge.value()));
  const int64_t before = tests::processMemory("VmRSS");
  tests::orFail(arena.release("test"));
  const int64_t released = tests::processMemory("VmRSS");
  EXPECT_LT(released, before - kLarge.value() + kOther);
  tests::orFail(arena.restore("test"));
  EXPECT_GT(tests::processMemory("VmRSS"), released + kLarge.value() - kOther);
  EXPECT_EQ(arena.base(), base);
  EXPECT_TRUE(isAll(arena, 0));
}

TEST(MappedArenaDeathTest, AWriteToAReleasedOneEndsTheProgram) {
  MappedArena arena = mapArena(Bytes(3 * kPage));
  tests::orFail(arena.release("test"));
  EXPECT_DEATH(touch(arena.base()), "");
}

TEST(MappedArena, ThatGetsNoMemoryBackCanBeRestoredLater) {
  MappedArena arena = mapArena(kLarge);
  tests::orFail(arena.release("test"));
  for (int i = 0; i < 2; ++i) {
    const tests::MemoryLimit limit(kOther);
    ir::Error error = arena.restore("test");
    ASSERT_TRUE(static_cast<bool>(error));
    EXPECT_EQ(ir::takePayload(std::move(error)).code(), ir::ErrorCode::kOutOfDeviceMemory);
  }
  tests::orFail(arena.restore("test"));
  EXPECT_TRUE(isAll(arena, 0));
}

}  // namespace
}  // namespace stowage::runtime
