// SPDX-License-Identifier: Apache-2.0
//
// The order in which state moves from one plan's places to another's, carried out on small arenas
// byte by byte.
#include "runtime/executor/state_moves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace stowage::tests {
namespace {

using ir::Space;
using runtime::MovedValue;
using runtime::StateMove;
using runtime::StatePlace;

constexpr int64_t kDeviceBytes = 96;
constexpr int64_t kHostBytes = 64;

/// Carries moves out. A byte of value v that is the k-th of it is 1 + 97 v + k.
class Arenas {
 public:
  explicit Arenas(const std::vector<MovedValue>& values) : values_(values) {
    outside_.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].from.empty()) outside_[i] = bytesOf(i);
      for (const StatePlace& place : values[i].from) write(i, place, bytesOf(i));
    }
  }

  void carry(const StateMove& move) {
    switch (move.kind) {
      case StateMove::Kind::kCopy: {
        const int64_t bytes = values_[move.value].bytes.value();
        const bool overlap = move.from.space == move.to.space &&
                             move.from.offset < move.to.offset + bytes &&
                             move.to.offset < move.from.offset + bytes;
        EXPECT_FALSE(overlap) << "the ends of a copy overlap";
        write(move.value, move.to, read(move.value, move.from));
        break;
      }
      case StateMove::Kind::kSave:
        outside_[move.value] = read(move.value, move.from);
        break;
      case StateMove::Kind::kFill:
        write(move.value, move.to, outside_[move.value]);
        break;
    }
  }

  std::string findMissing() const {
    for (size_t i = 0; i < values_.size(); ++i) {
      for (const StatePlace& place : values_[i].to) {
        if (read(i, place) != bytesOf(i)) return "value " + std::to_string(i) + " is not in place";
      }
      if (values_[i].toOutside && outside_[i] != bytesOf(i)) {
        return "value " + std::to_string(i) + " is not outside";
      }
    }
    return "";
  }

 private:
  using Content = std::vector<int>;

  Content bytesOf(size_t value) const {
    Content bytes;
    for (int64_t k = 0; k < values_[value].bytes.value(); ++k) {
      bytes.push_back(static_cast<int>(1 + 97 * static_cast<int64_t>(value) + k));
    }
    return bytes;
  }
  Content& arena(Space space) { return arenas_[space == Space::kHost ? 1 : 0]; }
  const Content& arena(Space space) const { return arenas_[space == Space::kHost ? 1 : 0]; }
  void write(size_t value, const StatePlace& place, const Content& bytes) {
    ASSERT_EQ(bytes.size(), static_cast<size_t>(values_[value].bytes.value()));
    ASSERT_LE(place.offset + static_cast<int64_t>(bytes.size()),
              static_cast<int64_t>(arena(place.space).size()));
    std::copy(bytes.begin(), bytes.end(), arena(place.space).begin() + place.offset);
  }
  Content read(size_t value, const StatePlace& place) const {
    const auto begin = arena(place.space).begin() + place.offset;
    return {begin, begin + values_[value].bytes.value()};
  }

  const std::vector<MovedValue>& values_;
  std::array<Content, 2> arenas_ = {Content(kDeviceBytes), Content(kHostBytes)};
  std::vector<Content> outside_;
};

/// Gives out disjoint places of both arenas.
class Places {
 public:
  explicit Places(std::mt19937& random) : random_(random) {}

  std::optional<StatePlace> take(Bytes bytes) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      const bool onHost = random_() % 3 == 0;
      const int64_t all = onHost ? kHostBytes : kDeviceBytes;
      if (bytes.value() > all) continue;
      const auto begin = static_cast<int64_t>(random_()) % (all - bytes.value() + 1);
      const StatePlace place{onHost ? Space::kHost : Space::kDevice, begin};
      const bool isFree = std::none_of(taken_.begin(), taken_.end(), [&](const auto& other) {
        return other.first.space == place.space && other.first.offset < begin + bytes.value() &&
               begin < other.first.offset + other.second;
      });
      if (!isFree) continue;
      taken_.emplace_back(place, bytes.value());
      return place;
    }
    return std::nullopt;
  }

 private:
  std::mt19937& random_;
  std::vector<std::pair<StatePlace, int64_t>> taken_;
};

std::string moveAll(const std::vector<MovedValue>& values, size_t* count = nullptr) {
  Arenas arenas(values);
  const std::vector<StateMove> moves = runtime::orderStateMoves(values, Bytes(kDeviceBytes));
  for (const StateMove& move : moves) arenas.carry(move);
  if (count != nullptr) *count = moves.size();
  return arenas.findMissing();
}

TEST(StateMoves, LoseNothing) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    Places from(random), to(random);
    std::vector<MovedValue> values;
    const size_t count = 1 + random() % 12;
    for (size_t i = 0; i < count; ++i) {
      MovedValue value{.bytes = Bytes(static_cast<int64_t>(random() % 24)), .from = {}, .to = {}};
      for (size_t k = random() % 3; k > 0; --k) {
        if (const auto place = from.take(value.bytes)) value.from.push_back(*place);
      }
      for (size_t k = random() % 3; k > 0; --k) {
        // Often where it is.
        if (const auto place = to.take(value.bytes)) value.to.push_back(*place);
      }
      value.toOutside = value.to.empty() && random() % 2 == 0;
      values.push_back(std::move(value));
    }
    EXPECT_EQ(moveAll(values), "") << "seed " << seed;
  }
}

TEST(StateMoves, ExchangeValuesInAFullArena) {
  const std::vector<MovedValue> values = {
      {.bytes = Bytes(48), .from = {{Space::kDevice, 0}}, .to = {{Space::kDevice, 48}}},
      {.bytes = Bytes(48), .from = {{Space::kDevice, 48}}, .to = {{Space::kDevice, 0}}}};
  EXPECT_EQ(moveAll(values), "");
}

TEST(StateMoves, GoByTheDeviceWhereItHasRoom) {
  const std::vector<MovedValue> values = {
      {.bytes = Bytes(24), .from = {{Space::kDevice, 0}}, .to = {{Space::kDevice, 8}}}};
  EXPECT_EQ(moveAll(values), "");
  for (const StateMove& move : runtime::orderStateMoves(values, Bytes(kDeviceBytes))) {
    EXPECT_EQ(move.kind, StateMove::Kind::kCopy);
    EXPECT_EQ(move.to.space, Space::kDevice);
  }
}

TEST(StateMoves, NothingMovesThatIsInPlace) {
  const std::vector<MovedValue> values = {
      {.bytes = Bytes(16),
       .from = {{Space::kDevice, 0}, {Space::kHost, 4}},
       .to = {{Space::kDevice, 0}}},
      {.bytes = Bytes(16), .from = {{Space::kHost, 24}}, .to = {{Space::kHost, 24}}}};
  size_t count = 1;
  EXPECT_EQ(moveAll(values, &count), "");
  EXPECT_EQ(count, 0U);
}

}  // namespace
}  // namespace stowage::tests
