// SPDX-License-Identifier: Apache-2.0
#include "planner/flow/gap_copies.h"

#include <algorithm>

#include "planner/evaluate/copy_schedule.h"

namespace stowage::planner {

GapCopies::GapCopies(const GapTable& table, int64_t shortTime)
    : table_(table),
      shortTime_(shortTime),
      nodes_(static_cast<int64_t>(table.nodeCount())),
      writes_(findLastWrites(table)) {}

bool GapCopies::needsOut(size_t gap, const Actions* known) const {
  const LastWrite& write = writes_[gap];
  if (write.version < 0) return false;
  if (known == nullptr) return true;
  const size_t first = table_.gapIndex(table_.gaps()[gap].storage, 0);
  const size_t count = table_.gapCount(table_.gaps()[gap].storage);
  // The gaps of the version before this one; they may be of the step before.
  for (auto g = static_cast<size_t>(write.version); g != gap; g = first + (g - first + 1) % count) {
    if ((*known)[g] == ir::GapAction::kHost) return false;
  }
  return true;
}

int64_t GapCopies::backAt(size_t gap) const {
  const Gap& own = table_.gaps()[gap];
  const int64_t copy =
      copyTime(table_.problem().costs.links.hostToDevice, table_.bytes(own.storage));
  int64_t position = own.end;
  if (copy < shortTime_) return position;
  for (int64_t left = copy / 2; position > own.begin + 2; --position) {
    left -= table_.nodeTime(static_cast<size_t>((position - 1) % nodes_));
    if (left < 0) break;
  }
  return position;
}

int64_t GapCopies::beyond(int64_t time, int64_t begin, int64_t end) const {
  for (int64_t i = begin; i < end && time > 0; ++i) {
    time -= table_.nodeTime(static_cast<size_t>((i + nodes_) % nodes_));
  }
  return std::max<int64_t>(0, time);
}

// One copy follows the other.
int64_t GapCopies::uncoveredTime(size_t gap, bool isOut) const {
  const Gap& own = table_.gaps()[gap];
  const ir::LinkModel& links = table_.problem().costs.links;
  const int64_t bytes = table_.bytes(own.storage);
  const int64_t in = copyTime(links.hostToDevice, bytes);
  const int64_t uncovered = beyond(in, own.begin + 1, own.end);
  if (!isOut) return uncovered;
  const int64_t both = in + copyTime(links.deviceToHost, bytes);
  return std::max(uncovered, beyond(both, writtenAt(gap) + 1, own.end));
}

}  // namespace stowage::planner
