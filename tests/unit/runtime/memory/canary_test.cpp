// SPDX-License-Identifier: Apache-2.0
//
// The pattern that shows what was written: nothing, a byte anywhere, bytes where the plan has none.
#include "runtime/memory/canary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/text/parser.h"
#include "runtime/memory/arena_spans.h"
#include "tests/support/keep_all_schedule.h"
#include "tests/support/or_fail.h"

namespace stowage::tests {
namespace {

/// An arena in memory, filled as a device fills one.
std::vector<uint8_t> filled(size_t bytes) {
  const llvm::ArrayRef<uint8_t> pattern = runtime::canaryPattern();
  std::vector<uint8_t> arena(bytes);
  for (size_t i = 0; i < bytes; ++i) arena[i] = pattern[i % pattern.size()];
  return arena;
}

auto readerOf(const std::vector<uint8_t>& arena) {
  return [&arena](int64_t offset, llvm::MutableArrayRef<uint8_t> bytes) {
    std::copy_n(arena.begin() + offset, bytes.size(), bytes.begin());
    return ir::success();
  };
}

Bytes sizeOf(const std::vector<uint8_t>& arena) {
  return Bytes(static_cast<int64_t>(arena.size()));
}

int64_t markOf(const std::vector<uint8_t>& arena) {
  return orFail(runtime::findHighWaterMark(sizeOf(arena), readerOf(arena))).value();
}

std::optional<int64_t> strayIn(const std::vector<uint8_t>& arena,
                               const std::vector<ir::ByteRange>& planned = {}) {
  return orFail(runtime::findStrayByte(sizeOf(arena), planned, readerOf(arena)));
}

const size_t kPeriod = runtime::canaryPattern().size();

TEST(Canary, AnUntouchedArenaHasNoHighWaterMark) {
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{7}, size_t{4099}, kPeriod, kPeriod + 1, 3 * kPeriod - 1}) {
    const std::vector<uint8_t> arena = filled(bytes);
    EXPECT_EQ(markOf(arena), 0) << bytes;
    EXPECT_EQ(strayIn(arena), std::nullopt) << bytes;
  }
}

TEST(Canary, EveryByteShows) {
  std::vector<uint8_t> arena = filled(101);
  for (size_t i = 0; i < arena.size(); ++i) {
    arena[i] ^= 0x40;
    EXPECT_EQ(markOf(arena), static_cast<int64_t>(i) + 1);
    EXPECT_EQ(strayIn(arena), static_cast<int64_t>(i));
    arena[i] ^= 0x40;
  }
}

TEST(Canary, BytesOfEveryRepetitionShow) {
  std::vector<uint8_t> arena = filled(3 * kPeriod + 5);
  for (const size_t i : {size_t{0}, kPeriod - 1, kPeriod, 2 * kPeriod + 3, 3 * kPeriod + 4}) {
    arena[i] ^= 0x40;
    EXPECT_EQ(markOf(arena), static_cast<int64_t>(i) + 1);
    EXPECT_EQ(strayIn(arena), static_cast<int64_t>(i));
    arena[i] ^= 0x40;
  }
}

TEST(Canary, ZerosAndRepetitionsShow) {
  // What allocators and kernels like to write must not look like the pattern.
  std::vector<uint8_t> arena = filled(4096);
  std::fill(arena.begin() + 1024, arena.begin() + 2048, 0);
  EXPECT_EQ(markOf(arena), 2048);
  arena = filled(4096);
  std::copy(arena.begin(), arena.begin() + 1024, arena.begin() + 2048);
  EXPECT_EQ(markOf(arena), 3072);
  // Bytes copied over a distance that alignments like.
  arena = filled(8 << 20);
  std::copy(arena.begin(), arena.begin() + (1 << 20), arena.begin() + (4 << 20));
  EXPECT_EQ(markOf(arena), 5 << 20);
}

TEST(Canary, OnlyBytesOutsideOfThePlanAreStray) {
  std::vector<uint8_t> arena = filled(2048);
  const std::vector<ir::ByteRange> planned = {{0, 512}, {1024, 1536}};
  arena[100] ^= 1;
  arena[1535] ^= 1;
  EXPECT_EQ(strayIn(arena, planned), std::nullopt);
  arena[512] ^= 1;
  EXPECT_EQ(strayIn(arena, planned), 512);
  arena[512] ^= 1;
  arena[2047] ^= 1;
  EXPECT_EQ(strayIn(arena, planned), 2047);
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
  // What a launch has for itself holds nothing between two steps.
  EXPECT_EQ(runtime::stateSpans(*graph, schedule, target, ir::Space::kDevice),
            (std::vector<ir::ByteRange>{{0, 512}}));
}

}  // namespace
}  // namespace stowage::tests
