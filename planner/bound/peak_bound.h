// SPDX-License-Identifier: Apache-2.0
//
// The lower bound at one peak: everything whose gap lies over node p either stays, or some of its
// bytes have been offloaded, or it is recomputed afterwards, so that p fits. As a linear program
// in the bytes that do, with time before p (T1) and from p on (T2); planner/bound/README.md has the
// rows. Solved by generating columns (one extreme choice for all items, found item by item) and
// rows (of the many "what is written late must leave late" conditions only those that matter).
// Each round of prices gives a valid bound, so stopping early is safe.
#ifndef STOWAGE_PLANNER_BOUND_PEAK_BOUND_H_
#define STOWAGE_PLANNER_BOUND_PEAK_BOUND_H_

#include <cstdint>
#include <vector>

#include "planner/problem/problem.h"

namespace stowage::planner {

struct PeakItem {
  double bytes = 0;
  int64_t written =
      -1;             // position of the last write before the peak in this step; -1: none, or clean
  int64_t read = -1;  // position of the next read after the peak in this step; -1: none
  bool dirty = false;  // written in every step: the host's copy must be renewed
  bool mayHost = false;
  int32_t maker = -1;       // group of items that one recompute makes; -1: may not be recomputed
  double ownRecompute = 0;  // time of recomputes for this item alone
};

struct Peak {
  int64_t node = 0;
  double need = 0;  // bytes of the node and of all items together
  std::vector<PeakItem> items;
  std::vector<double> makerTime;  // by maker: time of the recompute that makes all its items
};

/// What all peaks of a problem share: times by position, rates of the links.
struct PeakFrame {
  std::vector<double> timeBefore;  // sum of the node times before a position; one more than nodes
  double outPerByte = 0;
  double inPerByte = 0;
};

/// Nanoseconds that a step takes at least with `budget` bytes; the sum of the node times if the
/// peak fits. If no choice gets the peak below the budget, the bound for the lowest reachable peak.
double boundAtPeak(const Peak& peak, const PeakFrame& frame, double budget);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_BOUND_PEAK_BOUND_H_
