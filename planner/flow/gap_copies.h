// SPDX-License-Identifier: Apache-2.0
//
// What it takes to send the bytes of a gap to the host and back: whether the host has them already,
// from where on they may leave, where they are back, and how long compute waits at least.
#ifndef STOWAGE_PLANNER_FLOW_GAP_COPIES_H_
#define STOWAGE_PLANNER_FLOW_GAP_COPIES_H_

#include <cstdint>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/problem/last_writes.h"

namespace stowage::planner {

class GapCopies {
 public:
  /// A copy is short if it takes less than `shortTime` nanoseconds.
  GapCopies(const GapTable& table, int64_t shortTime);

  /// False if nobody writes these bytes in a step, or if by `known` (null: nothing is known) an
  /// earlier gap of the same version went to the host.
  bool needsOut(size_t gap, const Actions* known) const;
  /// Position of the write after which they may leave; negative: in the step before.
  int64_t writtenAt(size_t gap) const { return table_.gaps()[gap].begin - writes_[gap].before; }
  /// Position where the bytes are back: a copy has its place from its begin on, so half of its time
  /// earlier than they are needed, unless it is short.
  int64_t backAt(size_t gap) const;
  /// Nanoseconds that the copies take beyond what is computed meanwhile.
  int64_t uncoveredTime(size_t gap, bool isOut) const;

 private:
  /// `time` less what the nodes from `begin` to before `end` take; not negative.
  int64_t beyond(int64_t time, int64_t begin, int64_t end) const;

  const GapTable& table_;
  int64_t shortTime_;
  int64_t nodes_;
  std::vector<LastWrite> writes_;  // by gap
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FLOW_GAP_COPIES_H_
