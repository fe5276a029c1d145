// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner/shared_state.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>
#include <utility>

namespace stowage::runtime {
namespace {

size_t indexOf(ir::Space space) { return static_cast<size_t>(space); }

/// What a storage takes there: of a disk whole blocks.
int64_t takenBytes(ir::Space space, Bytes bytes) {
  return space == ir::Space::kDisk ? roundUp(bytes, ir::kDiskBlock).value() : bytes.value();
}

llvm::MutableArrayRef<uint8_t> bytesIn(const at::Tensor& tensor) {
  return {tensor.data_ptr<uint8_t>(), tensor.nbytes()};
}

/// Bytes of the arenas that a plan leaves alone, given away piece by piece.
class Room {
 public:
  Room(const Device& device, const PlanPlaces& plan) : taken_(plan.spans) {
    ends_ = {device.arenaBytes(ir::Space::kDevice).value(),
             device.arenaBytes(ir::Space::kHost).value(),
             device.arenaBytes(ir::Space::kDisk).value()};
  }

  bool take(const StatePlace& place, Bytes bytes) {
    const ir::ByteRange range{place.offset, place.offset + takenBytes(place.space, bytes)};
    auto& taken = taken_[indexOf(place.space)];
    const auto after = std::lower_bound(taken.begin(), taken.end(), range);
    const bool isFree = (after == taken.end() || !after->overlaps(range)) &&
                        (after == taken.begin() || !std::prev(after)->overlaps(range));
    if (isFree) taken.insert(after, range);
    return isFree;
  }
  std::optional<StatePlace> find(Bytes bytes) {
    for (const ir::Space space : {ir::Space::kDevice, ir::Space::kHost, ir::Space::kDisk}) {
      const int64_t unit = space == ir::Space::kDisk ? ir::kDiskBlock : 512;
      int64_t begin = 0;
      const auto& taken = taken_[indexOf(space)];
      for (size_t i = 0; i <= taken.size(); ++i) {
        const int64_t end = i < taken.size() ? taken[i].begin : ends_[indexOf(space)];
        const StatePlace place{space, begin};
        if (end - begin >= takenBytes(space, bytes) && take(place, bytes)) return place;
        if (i < taken.size()) begin = (taken[i].end + unit - 1) / unit * unit;
      }
    }
    return std::nullopt;
  }

 private:
  std::array<std::vector<ir::ByteRange>, 3> taken_;
  std::array<int64_t, 3> ends_{};
};

}  // namespace

/// What moves when a turn begins.
struct SharedState::Turn {
  std::vector<ir::StorageId> storages;
  std::vector<MovedValue> values;  // of `storages`
  std::map<ir::StorageId, at::Tensor> outside;
  std::map<ir::StorageId, Elsewhere> elsewhere;  // afterwards
};

SharedState::SharedState(Device& device, const ir::Graph& graph, PlanPlaces main)
    : device_(device), graph_(graph) {
  plans_.emplace(next_++, std::move(main));
}

ir::Expected<size_t> SharedState::add(PlanPlaces plan) {
  const auto isNowhere = [](const auto& places) { return places && places->empty(); };
  const auto isSomewhere = [](const auto& places) { return places && !places->empty(); };
  for (const auto& [number, other] : plans_) {
    for (size_t i = 0; i < plan.at.size(); ++i) {
      const bool differs = (isNowhere(plan.at[i]) && isSomewhere(other.at[i])) ||
                           (isSomewhere(plan.at[i]) && isNowhere(other.at[i]));
      if (!differs) continue;
      return ir::makeError(ir::ErrorCode::kUnsupported,
                           "'" + graph_.storage(ir::StorageId(i)).name +
                               "' is read by one step and not kept by the plan of another, so "
                               "that they cannot work on one state");
    }
  }
  plans_.emplace(next_, std::move(plan));
  return next_++;
}

void SharedState::remove(size_t plan) { plans_.erase(plan); }

std::vector<StatePlace> SharedState::placesOf(ir::StorageId storage) const {
  const auto& places = plans_.at(current_).at[storage.index()];
  if (places) return *places;
  const auto found = elsewhere_.find(storage);
  if (found == elsewhere_.end() || !found->second.place) return {};
  return {*found->second.place};
}

ir::Error SharedState::enter(size_t plan, ValueOf firstValueOf) {
  if (plan == current_) return ir::success();
  const PlanPlaces& now = plans_.at(current_);
  const PlanPlaces& then = plans_.at(plan);
  Room room(device_, then);
  Turn turn;
  for (size_t i = 0; i < now.at.size(); ++i) {
    const ir::StorageId id(i);
    MovedValue value{.bytes = bytesOf(id), .from = placesOf(id), .to = {}};
    const auto known = elsewhere_.find(id);
    if (value.from.empty()) {
      if (now.at[i]) continue;  // not kept
      if (known != elsewhere_.end()) {
        turn.outside.emplace(id, known->second.bytes);
      } else if (then.at[i] && !then.at[i]->empty()) {
        ir::Expected<at::Tensor> first = firstValueOf(id);
        if (!first) return first.takeError();
        turn.outside.emplace(id, std::move(*first));
      } else {
        continue;
      }
    }
    if (then.at[i]) {
      value.to = *then.at[i];
    } else if (value.from.empty()) {
      turn.elsewhere.emplace(id, known->second);
      continue;
    } else {
      std::optional<StatePlace> place;
      for (const StatePlace& from : value.from) {
        if (!place && room.take(from, value.bytes)) place = from;
      }
      if (!place) place = room.find(value.bytes);
      if (place) value.to.push_back(*place);
      value.toOutside = !place;
      turn.elsewhere.emplace(id, Elsewhere{.place = place, .bytes = {}});
    }
    turn.storages.push_back(id);
    turn.values.push_back(std::move(value));
  }
  const Bytes deviceBytes = device_.arenaBytes(ir::Space::kDevice);
  for (const StateMove& move : orderStateMoves(turn.values, deviceBytes)) {
    if (move.kind == StateMove::Kind::kSave) {
      const ir::StorageId id = turn.storages[move.value];
      turn.outside[id] = at::empty({bytesOf(id).value()}, at::kByte);
    }
    if (ir::Error error = carry(turn, move)) return error;
  }
  for (auto& [id, other] : turn.elsewhere) {
    if (!other.place && !other.bytes.defined()) other.bytes = turn.outside.at(id);
  }
  elsewhere_ = std::move(turn.elsewhere);
  current_ = plan;
  return ir::success();
}

ir::Error SharedState::carry(const Turn& turn, const StateMove& move) {
  const ir::StorageId id = turn.storages[move.value];
  switch (move.kind) {
    case StateMove::Kind::kCopy:
      return device_.move(move.from.space, move.from.offset, move.to.space, move.to.offset,
                          bytesOf(id));
    case StateMove::Kind::kSave:
      return device_.read(move.from.space, move.from.offset, bytesIn(turn.outside.at(id)));
    case StateMove::Kind::kFill:
      return device_.write(move.to.space, move.to.offset, bytesIn(turn.outside.at(id)));
  }
  return ir::success();
}

ir::Expected<at::Tensor> SharedState::value(ir::StorageId storage) {
  const std::vector<StatePlace> places = placesOf(storage);
  const auto found = elsewhere_.find(storage);
  if (places.empty() && found != elsewhere_.end()) return found->second.bytes.clone();
  at::Tensor bytes;
  if (places.empty() && !plans_.at(current_).at[storage.index()]) return bytes;
  bytes = at::empty({bytesOf(storage).value()}, at::kByte);
  if (places.empty()) return bytes.zero_();  // each step overwrites it unread
  const StatePlace& place = places.front();
  if (ir::Error error = device_.read(place.space, place.offset, bytesIn(bytes))) return error;
  return bytes;
}

std::vector<ir::ByteRange> SharedState::besidePlan() const {
  std::vector<ir::ByteRange> spans;
  for (const auto& [storage, other] : elsewhere_) {
    if (!other.place || other.place->space != ir::Space::kDevice) continue;
    spans.push_back({other.place->offset, other.place->offset + bytesOf(storage).value()});
  }
  return spans;
}

ir::Expected<bool> SharedState::put(ir::StorageId storage, llvm::ArrayRef<uint8_t> bytes) {
  for (const StatePlace& place : placesOf(storage)) {
    if (ir::Error error = device_.write(place.space, place.offset, bytes)) return error;
  }
  const auto found = elsewhere_.find(storage);
  if (found != elsewhere_.end() && !found->second.place) {
    std::copy(bytes.begin(), bytes.end(), bytesIn(found->second.bytes).begin());
  }
  return plans_.at(current_).at[storage.index()].has_value() || found != elsewhere_.end();
}

}  // namespace stowage::runtime
