// SPDX-License-Identifier: Apache-2.0
//
// Bytes by launch of a cycle: adds to a range, asks for the highest value in a range, each in
// logarithmic time. Ranges are half-open, may begin anywhere and wrap around, and are at most one
// period long.
#ifndef STOWAGE_PLANNER_EVALUATE_LOAD_TREE_H_
#define STOWAGE_PLANNER_EVALUATE_LOAD_TREE_H_

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <limits>
#include <vector>

namespace stowage::planner {

class LoadTree {
 public:
  explicit LoadTree(const std::vector<int64_t>& loads)
      : period_(static_cast<int64_t>(loads.size())),
        size_(std::bit_ceil(loads.size())),
        highest_(2 * size_, kNone),
        added_(size_, 0) {
    std::copy(loads.begin(), loads.end(), highest_.begin() + static_cast<int64_t>(size_));
    for (size_t i = size_; i-- > 1;) pull(i);
  }

  void add(int64_t begin, int64_t end, int64_t bytes) {
    forEachPart(begin, end, [&](size_t from, size_t to) { addPart(from, to, bytes); });
  }
  /// Far below zero for an empty range.
  int64_t highest(int64_t begin, int64_t end) const {
    int64_t result = kNone;
    forEachPart(begin, end,
                [&](size_t from, size_t to) { result = std::max(result, highestPart(from, to)); });
    return result;
  }
  int64_t at(int64_t position) const { return highest(position, position + 1); }
  int64_t period() const { return period_; }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min() / 2;

  template <typename Visitor>
  void forEachPart(int64_t begin, int64_t end, Visitor visit) const {
    assert(end - begin <= period_ && "a range is at most one period long");
    if (begin >= end) return;
    const int64_t from = ((begin % period_) + period_) % period_;
    const int64_t to = from + (end - begin);
    visit(static_cast<size_t>(from), static_cast<size_t>(std::min(to, period_)));
    if (to > period_) visit(0, static_cast<size_t>(to - period_));
  }

  // Node i covers 2i and 2i+1; leaves begin at size_. A node's value is that of its better child
  // plus what was added to the whole of it.
  void pull(size_t i) { highest_[i] = std::max(highest_[2 * i], highest_[2 * i + 1]) + added_[i]; }

  void apply(size_t i, int64_t bytes) {
    highest_[i] += bytes;
    if (i < size_) added_[i] += bytes;
  }

  void addPart(size_t from, size_t to, int64_t bytes) {
    size_t l = from + size_;
    size_t r = to + size_;
    const size_t first = l;
    const size_t last = r - 1;
    for (; l < r; l >>= 1, r >>= 1) {
      if (l & 1) apply(l++, bytes);
      if (r & 1) apply(--r, bytes);
    }
    for (size_t i = first >> 1; i > 0; i >>= 1) pull(i);
    for (size_t i = last >> 1; i > 0; i >>= 1) pull(i);
  }

  // Climbs from both ends, carrying the best seen on each side; what was added to an ancestor
  // counts for everything below it.
  int64_t highestPart(size_t from, size_t to) const {
    int64_t left = kNone;
    int64_t right = kNone;
    size_t l = from + size_;
    size_t r = to + size_;  // one past
    const auto join = [](int64_t& best, int64_t value) { best = std::max(best, value); };
    const auto lift = [&](int64_t& best, size_t node) {
      if (best != kNone && node >= 1) best += added_[node];
    };
    size_t lNode = l;      // ancestors of what `left` has collected
    size_t rNode = r - 1;  // and of `right`
    while (l < r) {
      if (l & 1) join(left, highest_[l++]);
      if (r & 1) join(right, highest_[--r]);
      l >>= 1;
      r >>= 1;
      lNode >>= 1;
      rNode >>= 1;
      lift(left, lNode);
      lift(right, rNode);
    }
    for (lNode >>= 1; lNode > 0; lNode >>= 1) lift(left, lNode);
    for (rNode >>= 1; rNode > 0; rNode >>= 1) lift(right, rNode);
    return std::max(left, right);
  }

  int64_t period_;
  size_t size_;  // leaves, a power of two
  std::vector<int64_t> highest_;
  std::vector<int64_t> added_;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_LOAD_TREE_H_
