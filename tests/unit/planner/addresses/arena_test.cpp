// SPDX-License-Identifier: Apache-2.0
//
// Addresses on a circle of ticks: no two items that are alive together share a byte, also where
// begins are put off, which happens no further than allowed and only where it makes room.
#include "planner/addresses/arena.h"

#include <gtest/gtest.h>

#include <random>

namespace stowage::planner {
namespace {

constexpr int64_t kPeriod = 100;
constexpr int64_t kLongPeriod = 2000;
constexpr int kCuts = 50;

ir::TickRange aliveAt(const ArenaItem& item, int64_t delay) {
  return {.begin = item.alive.begin + delay, .end = item.alive.end};
}

bool isAliveAt(const ir::TickRange& alive, int64_t tick) {
  for (const int64_t turn : {-kPeriod, int64_t{0}, kPeriod}) {
    if (alive.begin <= tick + turn && tick + turn < alive.end) return true;
  }
  return false;
}

std::vector<ArenaItem> drawItems(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  std::vector<ArenaItem> items;
  for (int i = 0; i < 40; ++i) {
    const int64_t begin = below(kPeriod);
    const int64_t length = i % 10 == 0 ? kPeriod : 1 + below(60);
    const int64_t latest = begin + (i % 3 == 0 ? below(length) : 0);
    items.push_back({.bytes = 64 * (1 + below(6)),
                     .alive = {.begin = begin, .end = begin + length},
                     .latest = latest});
  }
  return items;
}

class Arena : public testing::TestWithParam<int> {};

TEST_P(Arena, WhatIsAliveTogetherIsApart) {
  const std::vector<ArenaItem> items = drawItems(static_cast<uint64_t>(GetParam()));
  const Placement placement = placeItems(items, kPeriod, 128, 0);
  for (size_t i = 0; i < items.size(); ++i) {
    const ArenaItem& a = items[i];
    EXPECT_GE(placement.offsets[i], 128);
    EXPECT_LE(placement.offsets[i] + a.bytes, placement.peak);
    const int64_t most = a.alive.end - a.alive.begin < kPeriod ? a.latest - a.alive.begin : 0;
    EXPECT_GE(placement.delays[i], 0);
    EXPECT_LE(placement.delays[i], most);
    for (size_t j = 0; j < i; ++j) {
      const ArenaItem& b = items[j];
      const bool apart = placement.offsets[i] + a.bytes <= placement.offsets[j] ||
                         placement.offsets[j] + b.bytes <= placement.offsets[i];
      if (apart) continue;
      for (int64_t tick = 0; tick < kPeriod; ++tick) {
        EXPECT_FALSE(isAliveAt(aliveAt(a, placement.delays[i]), tick) &&
                     isAliveAt(aliveAt(b, placement.delays[j]), tick))
            << i << " and " << j << " at " << tick;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Arena, testing::Range(1, 9));

// A circle of ticks by bytes, cut at random until the pieces are small: they fit together without
// a hole.
struct Piece {
  ir::TickRange alive;
  int64_t bytes = 0;
};
std::vector<ArenaItem> cutIntoItems(uint64_t seed, int64_t peak, size_t count) {
  std::mt19937_64 random(seed);
  const auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low));
  };
  const int64_t boundary = between(0, kLongPeriod);  // so that pieces lie across tick 0
  std::vector<Piece> pieces = {{{.begin = boundary, .end = boundary + kLongPeriod}, peak}};
  while (pieces.size() < count) {
    const auto which = static_cast<size_t>(between(0, static_cast<int64_t>(pieces.size())));
    Piece& piece = pieces[which];
    Piece other = piece;
    const int64_t length = piece.alive.end - piece.alive.begin;
    if (random() % 2 == 0 && length > 1) {
      piece.alive.end = other.alive.begin = piece.alive.begin + between(1, length);
    } else if (piece.bytes > 1) {
      other.bytes = between(1, piece.bytes);
      piece.bytes -= other.bytes;
    } else {
      continue;
    }
    pieces.push_back(other);
  }
  std::vector<ArenaItem> items;
  for (const Piece& piece : pieces) {
    const int64_t turn = piece.alive.begin >= kLongPeriod ? kLongPeriod : 0;
    const ir::TickRange alive{.begin = piece.alive.begin - turn, .end = piece.alive.end - turn};
    items.push_back({.bytes = 512 * piece.bytes, .alive = alive, .latest = alive.begin});
  }
  return items;
}

TEST(ArenaQuality, LittleIsLostBetweenItemsThatFitTogether) {
  double sum = 0;
  for (uint64_t seed = 0; seed < kCuts; ++seed) {
    const std::vector<ArenaItem> items = cutIntoItems(seed, 4096, 60);
    ASSERT_EQ(findLeastPeak(items, kLongPeriod, 0), 512 * 4096);
    const Placement placement = placeItems(items, kLongPeriod, 0, 0);
    sum += static_cast<double>(placement.peak) / (512 * 4096);
  }
  EXPECT_LT(sum / kCuts, 1.03);
}

TEST(ArenaDelays, ABeginIsPutOffWhereThatMakesRoomAndNoFurther) {
  // Two that leave one after the other; a third that wishes to be there all the time and may come
  // when the second is gone; a fourth with all the room it wants.
  const std::vector<ArenaItem> items = {
      {.bytes = 64, .alive = {.begin = 10, .end = 30}, .latest = 10},
      {.bytes = 64, .alive = {.begin = 30, .end = 50}, .latest = 30},
      {.bytes = 64, .alive = {.begin = 5, .end = 90}, .latest = 60},
      {.bytes = 64, .alive = {.begin = 92, .end = 98}, .latest = 96}};
  const Placement placement = placeItems(items, kPeriod, 0, 0);
  EXPECT_EQ(placement.peak, 64);
  EXPECT_EQ(placement.delays, (std::vector<int64_t>{0, 0, 45, 0}));
}

}  // namespace
}  // namespace stowage::planner
