// SPDX-License-Identifier: Apache-2.0
//
// Half-open intervals [begin, end): the one convention for live ranges and byte ranges. Overlap is
// computed here only. "Alive until after its last use" is end = lastUse + 1.
#ifndef STOWAGE_IR_BASE_INTERVAL_H_
#define STOWAGE_IR_BASE_INTERVAL_H_

#include <algorithm>
#include <compare>
#include <cstdint>

namespace stowage::ir {

template <typename T>
struct HalfOpen {
  T begin{};
  T end{};

  friend constexpr auto operator<=>(const HalfOpen&, const HalfOpen&) = default;
  constexpr bool isEmpty() const { return !(begin < end); }
  constexpr bool contains(T point) const { return !(point < begin) && point < end; }
  /// True if some point lies in both. Empty intervals overlap nothing.
  constexpr bool overlaps(const HalfOpen& other) const {
    return begin < other.end && other.begin < end && !isEmpty() && !other.isEmpty();
  }
  constexpr HalfOpen intersection(const HalfOpen& other) const {
    return {std::max(begin, other.begin), std::min(end, other.end)};
  }
};

/// Positions of nodes in the graph's order.
using NodeRange = HalfOpen<int64_t>;
/// Ticks: positions in the planner's one order of all starts and ends of a step.
using TickRange = HalfOpen<int64_t>;
/// Bytes of an arena: [offset, offset + size).
using ByteRange = HalfOpen<int64_t>;

}  // namespace stowage::ir

#endif  // STOWAGE_IR_BASE_INTERVAL_H_
