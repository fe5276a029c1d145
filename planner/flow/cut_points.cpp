// SPDX-License-Identifier: Apache-2.0
#include "planner/flow/cut_points.h"

#include <algorithm>

namespace stowage::planner {

namespace {

class CutFinder {
 public:
  CutFinder(const GapTable& table, const RecomputeCosts& costs)
      : table_(table),
        costs_(costs),
        nodes_(static_cast<int64_t>(table.nodeCount())),
        may_(costs.size(), false),
        askedAt_(costs.size(), -1) {
    timeBefore_.push_back(0);
    for (size_t i = 0; i < table.nodeCount(); ++i) {
      timeBefore_.push_back(timeBefore_.back() + table.nodeTime(i));
    }
    for (size_t g = 0; g < costs.size(); ++g) may_[g] = costs[g].has_value();
  }

  std::vector<bool> run(int32_t cuts) {
    dropShortOnes();
    findAskedPositions();
    for (const int64_t position : findCutPoints(cuts)) {
      for (size_t g = 0; g < may_.size(); ++g) {
        if (askedAt_[g] < 0 || askedAt_[g] > position) continue;
        if (position < table_.gaps()[g].end) may_[g] = false;
      }
    }
    return std::move(may_);
  }

 private:
  // Compute time inside of a gap.
  int64_t span(size_t g) const {
    const Gap& gap = table_.gaps()[g];
    const auto begin = static_cast<size_t>(gap.begin + 1);
    if (gap.end <= nodes_) {
      return timeBefore_[static_cast<size_t>(gap.end)] -
             timeBefore_[std::min(begin, timeBefore_.size() - 1)];
    }
    return timeBefore_.back() - timeBefore_[begin] +
           timeBefore_[static_cast<size_t>(gap.end - nodes_)];
  }

  // Does the recompute of `g` bring the bytes of `h` back before they are needed themselves?
  bool bringsBack(size_t g, size_t h) const {
    const Gap& own = table_.gaps()[g];
    const Gap& input = table_.gaps()[h];
    return own.storage != input.storage && own.end < input.end;
  }

  // A recompute at the end of a short gap would take its input's much longer one away.
  void dropShortOnes() {
    const std::vector<bool> all = may_;
    for (size_t g = 0; g < all.size(); ++g) {
      if (!all[g]) continue;
      for (const size_t h : costs_[g]->open) {
        if (all[h] && bringsBack(g, h) && 2 * span(g) < span(h)) may_[g] = false;
      }
    }
  }

  void findAskedPositions() {
    for (size_t g = 0; g < may_.size(); ++g) {
      if (!may_[g]) continue;
      const int64_t end = table_.gaps()[g].end;
      for (const size_t h : costs_[g]->open) {
        if (!may_[h] || !bringsBack(g, h)) continue;
        askedAt_[h] = askedAt_[h] < 0 ? end : std::min(askedAt_[h], end);
      }
    }
  }

  // Of each stretch with bytes that are back early, the position with the fewest.
  std::vector<int64_t> findCutPoints(int32_t cuts) const {
    std::vector<int64_t> early(static_cast<size_t>(nodes_) + 1, 0);
    for (size_t g = 0; g < may_.size(); ++g) {
      if (askedAt_[g] < 0 || askedAt_[g] >= nodes_) continue;
      const Gap& gap = table_.gaps()[g];
      early[static_cast<size_t>(askedAt_[g])] += table_.bytes(gap.storage);
      early[static_cast<size_t>(std::min(gap.end, nodes_))] -= table_.bytes(gap.storage);
    }
    int64_t total = 0;
    for (size_t i = 0; i < static_cast<size_t>(nodes_); ++i) {
      if (i > 0) early[i] += early[i - 1];
      if (early[i] > 0) total += table_.nodeTime(i);
    }
    std::vector<int64_t> points;
    int64_t before = 0;
    int64_t part = -1;
    for (size_t i = 0; i < static_cast<size_t>(nodes_); ++i) {
      if (early[i] <= 0) continue;
      const auto own =
          static_cast<int64_t>(static_cast<__int128>(before) * cuts / std::max<int64_t>(total, 1));
      before += table_.nodeTime(i);
      if (own != part) {
        points.push_back(static_cast<int64_t>(i));
        part = own;
      } else if (early[i] < early[static_cast<size_t>(points.back())]) {
        points.back() = static_cast<int64_t>(i);
      }
    }
    return points;
  }

  const GapTable& table_;
  const RecomputeCosts& costs_;
  int64_t nodes_;
  std::vector<int64_t> timeBefore_;
  std::vector<bool> may_;         // by gap
  std::vector<int64_t> askedAt_;  // by gap: where the first recompute needs its bytes; -1: nowhere
};

}  // namespace

RecomputeCosts findRecomputeCosts(const GapTable& table) {
  RecomputeCosts costs(table.gaps().size());
  for (size_t g = 0; g < costs.size(); ++g) {
    costs[g] = findRecomputeCost(table, g, table.gaps()[g].end);
    if (costs[g] && costs[g]->bytes <= Bytes(0)) costs[g].reset();
  }
  return costs;
}

std::vector<bool> chooseRecomputable(const GapTable& table, const RecomputeCosts& costs,
                                     int32_t cuts) {
  return CutFinder(table, costs).run(cuts);
}

std::vector<bool> chooseSegments(const GapTable& table, int32_t cuts) {
  RecomputeCosts costs = findRecomputeCosts(table);
  const auto phaseAt = [&](int64_t position) {
    const auto node = static_cast<size_t>(position) % table.nodeCount();
    return table.problem().graph.node(ir::NodeId(node)).phase;
  };
  for (size_t g = 0; g < costs.size(); ++g) {
    const Gap& gap = table.gaps()[g];
    const bool isKeptForBackward =
        phaseAt(gap.begin) == ir::Phase::kForward && phaseAt(gap.end) == ir::Phase::kBackward;
    if (!isKeptForBackward) costs[g].reset();
  }
  return chooseRecomputable(table, costs, cuts);
}

}  // namespace stowage::planner
