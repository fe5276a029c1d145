// SPDX-License-Identifier: Apache-2.0
//
// The lower bound of planner/bound/README.md once more, for tests: for every node the linear
// program with all its rows written out, made straight from the accesses of the graph. Also the
// formula as it was first written down, which is no bound: bytes leave from the last touch on
// instead of the last write, unchanged storages are offloaded, a node with two results is paid
// twice, and a result never lands on its operand. Tests show that they notice.
#ifndef STOWAGE_TESTS_SUPPORT_REFERENCE_BOUND_H_
#define STOWAGE_TESTS_SUPPORT_REFERENCE_BOUND_H_

#include "planner/bound/peak_bound.h"
#include "planner/problem/problem.h"

namespace stowage::tests {

enum class Formula : uint8_t { kAsItIs, kAsFirstWritten };

struct ReferencePeaks {
  planner::PeakFrame frame;
  std::vector<planner::Peak> peaks;  // by node
};

ReferencePeaks derivePeaks(const planner::Problem& problem, Formula formula);

/// Nanoseconds; the sum of the node times if nothing has to go. All rows at once.
double solvePeakProgram(const planner::Peak& peak, const planner::PeakFrame& frame, double budget);

/// The largest over all nodes.
double referenceBound(const planner::Problem& problem, int64_t budget, Formula formula);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_REFERENCE_BOUND_H_
