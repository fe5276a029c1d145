// SPDX-License-Identifier: Apache-2.0
//
// Nobody reads or writes beside an arena unnoticed: the pages around it cannot be touched.
#include "runtime/memory/mapped_arena.h"

#include <gtest/gtest.h>

#include "tests/support/or_fail.h"

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

}  // namespace
}  // namespace stowage::runtime
