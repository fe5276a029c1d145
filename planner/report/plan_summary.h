// SPDX-License-Identifier: Apache-2.0
//
// What a plan says, in a few lines and as JSON: whether its times are estimates, fits, what was
// chosen, predicted step time against unlimited memory, the bound, bytes moved. The same numbers
// and names as in the plan file.
#ifndef STOWAGE_PLANNER_REPORT_PLAN_SUMMARY_H_
#define STOWAGE_PLANNER_REPORT_PLAN_SUMMARY_H_

#include <llvm/Support/raw_ostream.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "planner/problem/timetable.h"

namespace stowage::planner {

struct PlanCounts {
  int64_t offloadedStates = 0;  // storages that live across steps and leave the device in some gap
  int64_t offloadedActivations = 0;  // the same for what one step makes
  int64_t recomputed = 0;            // gaps that end in recomputes
  int64_t toDisk = 0;                // gaps
  Bytes diskWritten;                 // in a step
  Bytes diskRead;
  int64_t reusedInPlace = 0;
  int64_t copies = 0;
  int64_t recomputedLaunches = 0;
  int64_t updatedParameters = 0;
  int64_t deferredParameters = 0;  // of these, updated in the next step
  Bytes pending;                   // what waits for deferred updates
  Bytes received;                  // of a rank from the others, in a step
  Bytes resident;                  // of what lives across steps and never leaves the device
};
PlanCounts countPlan(const ir::Graph& graph, const ir::Schedule& schedule);
/// Bytes of the parameters that the step updates: all, or those on the host.
Bytes updatedBytes(const ir::Graph& graph, bool onHost);

/// Where a plan's times come from.
struct SummaryCosts {
  ir::CostSource source = ir::CostSource::kGiven;
  std::string estimate;             // of kRoofline: "from the profile h200, not measured: ..."
  std::optional<int> errorPercent;  // of the step's time, up or down; none: not known
};

struct PlanSummary {
  const ir::Graph& graph;
  const ir::Schedule& schedule;
  Bytes budget;
  Bytes keepAll;  // bytes the step needs when nothing is moved; 0: not known
  Stalls stalls;
  SummaryCosts costs;
  Bytes outside;  // of the device, beside the arena; 0: nothing is
  bool outsideMeasured = false;
  bool planNeeded = true;  // false: fits as it is
  Nanoseconds unlimited;   // of the step as captured, with room for all; 0: the graph's computeTime
  int64_t rowBlocks = 1;   // 1: none
};
void printPlanSummary(const PlanSummary& summary, llvm::raw_ostream& os);
/// Members that a plan file has as well are called and nested as there.
nlohmann::ordered_json planSummaryJson(const PlanSummary& summary);

/// "12.3 %" with a sign when asked for: (value / base - 1). "" when base is 0.
std::string formatExcess(Nanoseconds value, Nanoseconds base, bool sign);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_REPORT_PLAN_SUMMARY_H_
