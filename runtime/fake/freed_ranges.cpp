// SPDX-License-Identifier: Apache-2.0
#include "runtime/fake/freed_ranges.h"

namespace stowage::runtime {

namespace {

using ir::ResidencyId;

// Per residency: the commands that touch it, in order, and whether each begins a live range.
std::vector<std::vector<std::pair<size_t, bool>>> collectUses(const ir::Schedule& schedule) {
  std::vector<std::vector<std::pair<size_t, bool>>> uses(schedule.residencies.size());
  for (size_t c = 0; c < schedule.commands.size(); ++c) {
    const ir::Command& command = schedule.commands[c];
    if (command.kind == ir::CommandKind::kCopy) {
      uses[command.from.index()].emplace_back(c, false);
      uses[command.to.index()].emplace_back(c, true);
      continue;
    }
    for (const ResidencyId id : command.in) uses[id.index()].emplace_back(c, false);
    for (const ResidencyId id : command.out) {
      auto& own = uses[id.index()];
      if (own.empty() || own.back().first != c) own.emplace_back(c, true);
    }
  }
  return uses;
}

}  // namespace

FreedRanges::FreedRanges(const ir::Graph& graph, const ir::Schedule& schedule)
    : touches_(schedule.commands.size()) {
  std::vector<bool> atBoundary(schedule.residencies.size(), false);
  for (const ir::BoundaryEntry& entry : schedule.boundary) {
    for (const ResidencyId id : entry.at) atBoundary[id.index()] = true;
  }
  const auto uses = collectUses(schedule);
  for (size_t r = 0; r < uses.size(); ++r) {
    const ir::Residency& residency = schedule.residencies[r];
    const bool delivered =
        residency.space == ir::Space::kHost && graph.storage(residency.storage).output;
    addResidency(ResidencyId(r), uses[r], atBoundary[r], delivered);
  }
}

void FreedRanges::addResidency(ResidencyId residency,
                               const std::vector<std::pair<size_t, bool>>& uses, bool atBoundary,
                               bool isDelivered) {
  const size_t first = ranges_.size();
  for (const auto& [command, begins] : uses) {
    if (begins || ranges_.size() == first) ranges_.push_back({residency, 0, !isDelivered});
    ++ranges_.back().touches;
    touches_[command].push_back({ranges_.size() - 1, false});
  }
  if (uses.empty() || !atBoundary) return;
  // The last live range goes on into the next step. Accesses before the first begin belong to it.
  const size_t last = ranges_.size() - 1;
  if (uses.front().second) {
    ranges_[last].isFreed = false;
    return;
  }
  if (last == first) {
    ranges_[last].isFreed = false;
    return;
  }
  for (const auto& [command, begins] : uses) {
    if (begins) break;
    for (Touch& touch : touches_[command]) {
      if (touch.range != first) continue;
      touch = {last, true};
      ++ranges_[last].touches;
    }
  }
}

std::vector<ResidencyId> FreedRanges::finish(ir::CommandId command, int64_t step) {
  std::vector<ResidencyId> freed;
  for (const Touch& touch : touches_[command.index()]) {
    const LiveRange& range = ranges_[touch.range];
    if (!range.isFreed) continue;
    const int64_t begun = touch.begunBefore ? step - 1 : step;
    // What the first step finds in place was begun before it, by nobody.
    if (begun < 0) continue;
    const auto [place, isNew] = left_.try_emplace({touch.range, begun}, range.touches);
    if (--place->second > 0) continue;
    left_.erase(place);
    freed.push_back(range.residency);
  }
  return freed;
}

}  // namespace stowage::runtime
