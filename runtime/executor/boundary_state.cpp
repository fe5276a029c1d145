// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/boundary_state.h"

#include <algorithm>
#include <vector>

namespace stowage::runtime {

namespace {

using ir::Space;

// The copy that costs least to read: the device's may be the only one.
ir::ResidencyId nearestResidency(const ir::Schedule& schedule, const ir::BoundaryEntry& entry) {
  for (const Space space : {Space::kHost, Space::kDevice, Space::kDisk}) {
    for (const ir::ResidencyId id : entry.at) {
      if (schedule.residency(id).space == space) return id;
    }
  }
  return entry.at.front();
}

class StateWalk {
 public:
  explicit StateWalk(Executor& executor) : executor_(executor), graph_(executor.source().graph) {
    entries_.resize(graph_.storages().size(), nullptr);
    for (const ir::BoundaryEntry& entry : executor.source().schedule.boundary) {
      entries_[entry.storage.index()] = &entry;
    }
  }

  // Calls `visit` with all state.
  ir::Error forEach(llvm::function_ref<ir::Error(ir::StorageId, const ir::BoundaryEntry&)> visit) {
    if (ir::Error error = executor_.finish()) return error;
    for (size_t i = 0; i < graph_.storages().size(); ++i) {
      const ir::Storage& storage = graph_.storages()[i];
      if (!ir::isState(storage)) continue;
      if (entries_[i] == nullptr) {
        return ir::makeError(ir::ErrorCode::kInvalidIr,
                             "the boundary has no place for '" + storage.name + "'");
      }
      if (entries_[i]->at.empty()) continue;
      if (ir::Error error = visit(ir::StorageId(i), *entries_[i])) return error;
    }
    return ir::success();
  }

 private:
  Executor& executor_;
  const ir::Graph& graph_;
  std::vector<const ir::BoundaryEntry*> entries_;  // by storage
};

}  // namespace

llvm::MutableArrayRef<uint8_t> StorageRoom::of(ir::StorageId storage) {
  return take(graph_.storage(storage).bytes);
}

llvm::MutableArrayRef<uint8_t> StorageRoom::ofWhole(ir::StorageId storage) {
  return take(ir::wholeBytes(graph_.storage(storage)));
}

llvm::MutableArrayRef<uint8_t> StorageRoom::take(Bytes bytes) {
  const auto count = static_cast<size_t>(bytes.value());
  if (count > bytes_.size()) bytes_.resize(count);
  return llvm::MutableArrayRef<uint8_t>(bytes_).take_front(count);
}

ir::Error writeState(Device& device, const ir::Schedule& schedule, const ir::BoundaryEntry& entry,
                     llvm::ArrayRef<uint8_t> bytes) {
  for (const ir::ResidencyId id : entry.at) {
    const ir::Residency& residency = schedule.residency(id);
    if (ir::Error error = device.write(residency.space, residency.offset, bytes)) return error;
  }
  return ir::success();
}

ir::Error loadState(Executor& executor, StateReader read) {
  const ir::Schedule& schedule = executor.source().schedule;
  StorageRoom room(executor.source().graph);
  return StateWalk(executor).forEach(
      [&](ir::StorageId storage, const ir::BoundaryEntry& entry) -> ir::Error {
        const llvm::MutableArrayRef<uint8_t> bytes = room.of(storage);
        if (ir::Error error = read(storage, bytes)) return error;
        return writeState(executor.device(), schedule, entry, bytes);
      });
}

ir::Error drainState(Executor& executor, StateWriter write) {
  const ir::Schedule& schedule = executor.source().schedule;
  StorageRoom room(executor.source().graph);
  return StateWalk(executor).forEach(
      [&](ir::StorageId storage, const ir::BoundaryEntry& entry) -> ir::Error {
        const llvm::MutableArrayRef<uint8_t> bytes = room.of(storage);
        const ir::Residency& residency = schedule.residency(nearestResidency(schedule, entry));
        if (ir::Error error = executor.device().read(residency.space, residency.offset, bytes))
          return error;
        return write(storage, bytes);
      });
}

}  // namespace stowage::runtime
