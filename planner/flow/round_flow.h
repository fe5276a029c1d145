// SPDX-License-Identifier: Apache-2.0
//
// From parts of gaps, as the linear program gives them, to whole gaps.
#ifndef STOWAGE_PLANNER_FLOW_ROUND_FLOW_H_
#define STOWAGE_PLANNER_FLOW_ROUND_FLOW_H_

#include <cstdint>
#include <vector>

#include "planner/evaluate/evaluation.h"

namespace stowage::planner {

/// Gaps that are alike for the program: the same slots, bytes and costs. Its columns say how many
/// of them are copied and recomputed.
struct GapClass {
  std::vector<size_t> members;
  int32_t host = -1;  // column; -1: none may be copied
  int32_t recompute = -1;
  int64_t uncovered = 0;  // nanoseconds that compute waits for both copies of one, whatever else
};

/// `actions` with those of the classes. What is too much or too little in one class is made up for
/// in the next. The members of a class are taken evenly. `values` by column.
Actions roundFlow(const GapTable& table, const std::vector<GapClass>& classes,
                  const std::vector<double>& values, Actions actions);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FLOW_ROUND_FLOW_H_
