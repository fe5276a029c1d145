// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/state_moves.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "ir/base/interval.h"

namespace stowage::runtime {
namespace {

constexpr size_t kSpaces = 3;

size_t indexOf(ir::Space space) { return static_cast<size_t>(space); }

class MoveOrder {
 public:
  MoveOrder(llvm::ArrayRef<MovedValue> values, Bytes deviceBytes) : values_(values) {
    state_.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      state_[i].isOutside = values[i].from.empty();
      if (values[i].bytes.value() == 0) continue;
      for (const StatePlace& place : values[i].from) hold(i, place);
    }
    findGaps(deviceBytes);
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].bytes.value() == 0) continue;
      if (values[i].toOutside && !state_[i].isOutside) save(i, state_[i].places.front());
      for (const StatePlace& place : values[i].to) {
        if (!isAt(i, place)) wait(i, place);
      }
    }
    for (size_t i = 0; i < values.size(); ++i) forgetOthers(i);
  }

  std::vector<StateMove> run() {
    while (!waiting_.empty()) {
      const size_t before = waiting_.size();
      std::vector<Waiting> left;
      for (const Waiting& one : waiting_) {
        if (blockers(one).empty()) {
          move(one);
        } else {
          left.push_back(one);
        }
      }
      waiting_ = std::move(left);
      if (waiting_.size() < before) continue;
      for (const auto& [value, place] : blockers(waiting_.front())) setAside(value, place);
    }
    return std::move(moves_);
  }

 private:
  struct Waiting {
    size_t value;
    StatePlace to;
  };
  struct Held {
    size_t value;
    int64_t end;
  };
  struct State {
    std::vector<StatePlace> places;  // that hold it now
    size_t waiting = 0;              // places that do not yet
    bool isOutside = false;
  };
  using Holder = std::pair<size_t, StatePlace>;

  int64_t bytesOf(size_t value) const { return values_[value].bytes.value(); }
  ir::ByteRange rangeOf(size_t value, const StatePlace& place) const {
    return {place.offset, place.offset + bytesOf(value)};
  }

  bool isAt(size_t value, const StatePlace& place) const {
    const auto& places = state_[value].places;
    return std::find(places.begin(), places.end(), place) != places.end();
  }
  bool isWantedAt(size_t value, const StatePlace& place) const {
    const auto& to = values_[value].to;
    return std::find(to.begin(), to.end(), place) != to.end();
  }

  void hold(size_t value, const StatePlace& place) {
    state_[value].places.push_back(place);
    held_[indexOf(place.space)].emplace(place.offset, Held{value, place.offset + bytesOf(value)});
  }
  void drop(size_t value, const StatePlace& place) {
    std::erase(state_[value].places, place);
    held_[indexOf(place.space)].erase(place.offset);
  }
  void wait(size_t value, const StatePlace& to) {
    waiting_.push_back({value, to});
    ++state_[value].waiting;
  }
  /// Once nothing waits for a value, what holds it where it is not wanted is free.
  void forgetOthers(size_t value) {
    if (state_[value].waiting > 0) return;
    const std::vector<StatePlace> places = state_[value].places;
    for (const StatePlace& place : places) {
      if (!isWantedAt(value, place)) drop(value, place);
    }
  }

  /// What is held in a range of bytes.
  std::vector<Holder> holdersIn(ir::Space space, const ir::ByteRange& range) const {
    std::vector<Holder> found;
    const auto& held = held_[indexOf(space)];
    auto at = held.lower_bound(range.begin);
    if (at != held.begin() && std::prev(at)->second.end > range.begin) --at;
    for (; at != held.end() && at->first < range.end; ++at) {
      if (at->second.end > range.begin) found.push_back({at->second.value, {space, at->first}});
    }
    return found;
  }
  /// Copies in the way that are the last of a value, or where they are wanted.
  std::vector<Holder> blockers(const Waiting& one) const {
    const std::vector<Holder> found = holdersIn(one.to.space, rangeOf(one.value, one.to));
    std::map<size_t, size_t> inTheWay;  // copies, by value
    std::vector<Holder> blocking;
    for (const auto& [value, place] : found) {
      const State& state = state_[value];
      const bool isLast = ++inTheWay[value] == state.places.size() && !state.isOutside;
      if (isLast || isWantedAt(value, place)) blocking.emplace_back(value, place);
    }
    return blocking;
  }

  void move(const Waiting& one) {
    for (const auto& [value, place] : holdersIn(one.to.space, rangeOf(one.value, one.to))) {
      drop(value, place);
    }
    State& state = state_[one.value];
    if (state.places.empty()) {
      moves_.push_back({StateMove::Kind::kFill, one.value, {}, one.to});
    } else {
      moves_.push_back({StateMove::Kind::kCopy, one.value, nearest(state, one.to), one.to});
    }
    hold(one.value, one.to);
    --state.waiting;
    forgetOthers(one.value);
  }
  static StatePlace nearest(const State& state, const StatePlace& to) {
    for (const StatePlace& place : state.places) {
      if (place.space == to.space) return place;
    }
    return state.places.front();
  }

  void save(size_t value, const StatePlace& from) {
    moves_.push_back({StateMove::Kind::kSave, value, from, {}});
    state_[value].isOutside = true;
  }
  void setAside(size_t value, const StatePlace& place) {
    if (const std::optional<int64_t> offset = findRoom(bytesOf(value))) {
      const StatePlace aside{ir::Space::kDevice, *offset};
      moves_.push_back({StateMove::Kind::kCopy, value, place, aside});
      hold(value, aside);
    } else {
      save(value, place);
    }
    drop(value, place);
  }

  /// Bytes of the device that nothing comes from or goes to.
  void findGaps(Bytes deviceBytes) {
    std::vector<ir::ByteRange> taken;
    for (size_t i = 0; i < values_.size(); ++i) {
      for (const auto* places : {&values_[i].from, &values_[i].to}) {
        for (const StatePlace& place : *places) {
          if (place.space == ir::Space::kDevice) taken.push_back(rangeOf(i, place));
        }
      }
    }
    std::sort(taken.begin(), taken.end());
    int64_t begin = 0;
    for (const ir::ByteRange& range : taken) {
      if (range.begin > begin) gaps_.push_back({begin, range.begin});
      begin = std::max(begin, range.end);
    }
    if (begin < deviceBytes.value()) gaps_.push_back({begin, deviceBytes.value()});
  }
  std::optional<int64_t> findRoom(int64_t bytes) const {
    for (const ir::ByteRange& gap : gaps_) {
      int64_t begin = gap.begin;
      for (const auto& [value, place] : holdersIn(ir::Space::kDevice, gap)) {
        if (place.offset - begin >= bytes) return begin;
        begin = place.offset + bytesOf(value);
      }
      if (gap.end - begin >= bytes) return begin;
    }
    return std::nullopt;
  }

  llvm::ArrayRef<MovedValue> values_;
  std::vector<State> state_;
  std::vector<ir::ByteRange> gaps_;
  std::array<std::map<int64_t, Held>, kSpaces> held_;  // by offset, disjoint
  std::vector<Waiting> waiting_;
  std::vector<StateMove> moves_;
};

}  // namespace

std::vector<StateMove> orderStateMoves(llvm::ArrayRef<MovedValue> values, Bytes deviceBytes) {
  return MoveOrder(values, deviceBytes).run();
}

}  // namespace stowage::runtime
