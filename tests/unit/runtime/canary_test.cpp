// SPDX-License-Identifier: Apache-2.0
//
// The pattern that shows what was written: nothing, a byte anywhere, bytes where the plan has none.
#include "runtime/canary.h"

#include <gtest/gtest.h>

#include <vector>

#include "ir/parser.h"
#include "tests/support/keep_all_schedule.h"

namespace stowage::tests {
namespace {

std::vector<uint8_t> filled(size_t bytes) {
  std::vector<uint8_t> arena(bytes);
  runtime::fillCanary(arena);
  return arena;
}

TEST(Canary, AnUntouchedArenaHasNoHeight) {
  for (const size_t bytes : {0U, 1U, 7U, 8U, 4096U, 4099U}) {
    const std::vector<uint8_t> arena = filled(bytes);
    EXPECT_EQ(runtime::touchedHeight(arena), Bytes(0)) << bytes;
    EXPECT_EQ(runtime::findStrayByte(arena, {}), std::nullopt) << bytes;
  }
}

TEST(Canary, EveryByteShows) {
  std::vector<uint8_t> arena = filled(101);
  for (size_t i = 0; i < arena.size(); ++i) {
    arena[i] ^= 0x40;
    EXPECT_EQ(runtime::touchedHeight(arena), Bytes(static_cast<int64_t>(i) + 1));
    EXPECT_EQ(runtime::findStrayByte(arena, {}), static_cast<int64_t>(i));
    arena[i] ^= 0x40;
  }
}

TEST(Canary, ZerosAndRepetitionsShow) {
  // What allocators and kernels like to write must not look like the pattern.
  std::vector<uint8_t> arena = filled(4096);
  std::fill(arena.begin() + 1024, arena.begin() + 2048, 0);
  EXPECT_EQ(runtime::touchedHeight(arena), Bytes(2048));
  arena = filled(4096);
  std::copy(arena.begin(), arena.begin() + 1024, arena.begin() + 2048);
  EXPECT_EQ(runtime::touchedHeight(arena), Bytes(3072));
}

TEST(Canary, OnlyBytesOutsideOfThePlanAreStray) {
  std::vector<uint8_t> arena = filled(2048);
  const std::vector<ir::ByteRange> planned = {{0, 512}, {1024, 1536}};
  arena[100] ^= 1;
  arena[1535] ^= 1;
  EXPECT_EQ(runtime::findStrayByte(arena, planned), std::nullopt);
  arena[512] ^= 1;
  EXPECT_EQ(runtime::findStrayByte(arena, planned), 512);
  arena[512] ^= 1;
  arena[2047] ^= 1;
  EXPECT_EQ(runtime::findStrayByte(arena, planned), 2047);
}

TEST(Canary, ThePlanCoversItsStaysAndTemporaries) {
  auto graph = ir::parseGraph(R"IR(
graph @g version=1 device="cpu" target="cpu" recipe="" producer="" steps=2 {
  parameter %w "w" : f32[3]
optimizer "":
  aten.mul_.Scalar(inout %w, 2)
}
)IR");
  ASSERT_TRUE(static_cast<bool>(graph)) << ir::describe(graph.takeError());
  ir::Target target;
  ir::Schedule schedule = makeKeepAllSchedule(*graph, target);
  EXPECT_EQ(runtime::plannedSpans(*graph, schedule, target, ir::Space::kDevice),
            (std::vector<ir::ByteRange>{{0, 512}}));
  schedule.commands.front().temp = {.offset = 2048, .bytes = Bytes(1024)};
  EXPECT_EQ(runtime::plannedSpans(*graph, schedule, target, ir::Space::kDevice),
            (std::vector<ir::ByteRange>{{0, 512}, {2048, 3072}}));
  EXPECT_TRUE(runtime::plannedSpans(*graph, schedule, target, ir::Space::kHost).empty());
}

}  // namespace
}  // namespace stowage::tests
