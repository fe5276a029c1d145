// SPDX-License-Identifier: Apache-2.0
//
// One total order for the starts and ends of everything in a step, from the compute steps and the
// wished moments of the copies. The position of an event in it is its tick. Starts give the order
// of issue; ticks give every stay, temporary and host copy a lifetime on a circle of `period`
// ticks, tick 0 being the step boundary. Two things whose lifetimes do not overlap may share bytes:
// the dependencies then follow the order of issue.
#ifndef STOWAGE_PLANNER_EVALUATE_ISSUE_ORDER_H_
#define STOWAGE_PLANNER_EVALUATE_ISSUE_ORDER_H_

#include <vector>

#include "ir/base/interval.h"
#include "planner/evaluate/copy_schedule.h"
#include "planner/evaluate/expand.h"

namespace stowage::planner {

struct Issue {
  enum class Kind : uint8_t { kRun, kOffload, kPrefetch };
  Kind kind = Kind::kRun;
  int32_t index = 0;  // of the step, offload or prefetch
};

struct IssueOrder {
  int64_t period = 0;
  std::vector<Issue> issues;
  std::vector<int64_t> issueTick;      // by issue
  std::vector<Moment> moments;         // by tick
  std::vector<ir::TickRange> stays;    // by stay: begin in [0, period), at most a period long
  std::vector<int64_t> latestBegins;   // by stay: up to here its begin may be put off; in its frame
  std::vector<ir::TickRange> runs;     // by step
  std::vector<int64_t> offloadStarts;  // by offload, in its stay's frame: not wrapped
  std::vector<ir::TickRange> hosts;    // by storage; empty if it has no place on the host
};

IssueOrder orderIssues(const GapTable& table, const Expansion& expansion,
                       const CopySchedule& copies);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_ISSUE_ORDER_H_
