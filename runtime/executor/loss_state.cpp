// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/loss_state.h"

#include <algorithm>
#include <utility>

namespace stowage::runtime {

const ir::BoundaryEntry* LossState::boundaryOf(ir::StorageId storage) const {
  const auto found =
      std::find_if(schedule_.boundary.begin(), schedule_.boundary.end(),
                   [&](const ir::BoundaryEntry& entry) { return entry.storage == storage; });
  // Held nowhere: each step overwrites it before it reads it.
  return found == schedule_.boundary.end() || found->at.empty() ? nullptr : &*found;
}

ir::Error LossState::save() {
  saved_.clear();
  if (written_.empty()) return ir::success();
  if (ir::Error error = device_.synchronize()) return error;
  for (const ir::StorageId storage : written_) {
    std::vector<uint8_t>& bytes = saved_.emplace_back();
    const ir::BoundaryEntry* entry = boundaryOf(storage);
    if (entry == nullptr) continue;
    const ir::Residency& place = schedule_.residency(entry->at.front());
    bytes.resize(static_cast<size_t>(graph_.storage(storage).bytes.value()));
    if (ir::Error error = device_.read(place.space, place.offset, bytes)) return error;
  }
  return ir::success();
}

std::string LossState::restore() {
  std::string movedOn;
  for (size_t i = 0; i < written_.size(); ++i) {
    if (putBack(i)) continue;
    movedOn += (movedOn.empty() ? " (but '" : "', '") + graph_.storage(written_[i]).name;
  }
  if (!movedOn.empty()) movedOn += "', which the loss writes, is as this step left it)";
  return movedOn;
}

bool LossState::putBack(size_t index) {
  const ir::BoundaryEntry* entry = boundaryOf(written_[index]);
  if (entry == nullptr) return true;
  if (index >= saved_.size()) return false;
  for (const ir::ResidencyId id : entry->at) {
    const ir::Residency& place = schedule_.residency(id);
    if (ir::Error error = device_.write(place.space, place.offset, saved_[index])) {
      llvm::consumeError(std::move(error));
      return false;
    }
  }
  return true;
}

}  // namespace stowage::runtime
