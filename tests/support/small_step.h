// SPDX-License-Identifier: Apache-2.0
//
// Steps small enough to look at every schedule: up to nine nodes on a handful of storages, sizes
// and times in small whole units. One unit of bytes takes a whole number of time units on each
// link, so every event of a schedule that never idles without need falls on a whole unit.
// Drawn from a seed, or written by hand; turned into a graph and a planning problem here, looked at
// exhaustively in tests/support/exhaustive_search.h.
#ifndef STOWAGE_TESTS_SUPPORT_SMALL_STEP_H_
#define STOWAGE_TESTS_SUPPORT_SMALL_STEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "planner/problem/problem.h"

namespace stowage::tests {

struct SmallItem {
  ir::Role role = ir::Role::kActivation;
  int units = 1;
};

struct SmallNode {
  std::string op;
  int time = 1;
  int temporary = 0;         // units
  std::vector<int> reads;    // items, arguments in this order
  std::vector<int> updates;  // items changed in place, among `reads` unless written whole
  std::vector<int> results;  // activations made here
  bool whole = false;        // the updates are written whole
  ir::Phase phase = ir::Phase::kForward;
};

struct SmallStep {
  std::vector<SmallItem> items;
  std::vector<SmallNode> nodes;
  int outPerUnit = 1;  // time units that a unit of bytes takes to the host
  int inPerUnit = 1;
};

inline constexpr int64_t kUnitBytes = 64;
inline constexpr int64_t kUnitTime = 1000;  // nanoseconds

bool isPersistent(const SmallItem& item);

/// At most nine nodes and four or five items; the same seed gives the same step.
SmallStep drawSmallStep(uint64_t seed);

ir::Graph toGraph(const SmallStep& step);
/// Alignment of one unit, nothing reserved.
ir::Target smallTarget();
/// The graph and target must outlive it.
planner::Problem toProblem(const SmallStep& step, const ir::Graph& graph, const ir::Target& target);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_SMALL_STEP_H_
