// SPDX-License-Identifier: Apache-2.0
//
// Tracks how much idle time the links have left while nodes run, by node position, after booked
// copies. An offload may run from the last write of the bytes on, long before they are freed; a
// prefetch from then until they are needed. Bytes that the host already has need no offload. An
// estimate for choosing (planner/search/choose_actions.h): whole copies at once, nodes without
// stalls.
#ifndef STOWAGE_PLANNER_SEARCH_LINK_LEDGER_H_
#define STOWAGE_PLANNER_SEARCH_LINK_LEDGER_H_

#include <vector>

#include "planner/problem/last_writes.h"

namespace stowage::planner {

/// Idle time of one link, on the circle of node positions.
class IdleTime {
 public:
  explicit IdleTime(const std::vector<int64_t>& byNode);

  /// In [begin, end), at most a period long; begin may be negative.
  int64_t between(int64_t begin, int64_t end) const;
  /// Uses up `time`, or all there is, in that range: the earliest first, or the latest.
  void takeEarliest(int64_t begin, int64_t end, int64_t time);
  void takeLatest(int64_t begin, int64_t end, int64_t time);
  void add(int64_t position, int64_t time);

 private:
  int64_t before(int64_t position) const;  // in [0, position)
  int64_t findPast(int64_t time) const;    // first position up to which more than `time` is idle
  int64_t wrap(int64_t position) const { return (position % period_ + period_) % period_; }
  void takeEarliestPart(int64_t begin, int64_t end, int64_t& time);
  void takeLatestPart(int64_t begin, int64_t end, int64_t& time);

  int64_t period_;
  std::vector<int64_t> idle_;
  std::vector<int64_t> sums_;  // a Fenwick tree over idle_
};

class LinkLedger {
 public:
  explicit LinkLedger(const GapTable& table);

  /// Where the bytes of a gap come from: what is nearer to the host competes for less.
  enum class Origin : uint8_t { kHost, kStepBefore, kThisStep };
  /// Of a gap that is open at `position`.
  Origin origin(size_t gap, int64_t position) const;

  /// Time that compute would wait if the gap, open at `position`, were free from there on and its
  /// bytes back at `end`.
  int64_t wait(size_t gap, int64_t position, int64_t end) const;
  void book(size_t gap, int64_t position, int64_t end);
  /// Compute takes longer there, and the links have the time.
  void lengthen(int64_t position, int64_t time);

 private:
  struct Need {
    int64_t outBegin = 0;
    int64_t out = 0;  // time to the host
    int64_t in = 0;
  };
  Need needOf(size_t gap, int64_t position) const;
  int64_t writtenAt(size_t gap, int64_t position) const;

  const GapTable& table_;
  int64_t nodes_;
  IdleTime out_, in_;
  std::vector<LastWrite> writes_;  // by gap
  std::vector<bool> held_;         // by version: a copy to the host is booked
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_LINK_LEDGER_H_
