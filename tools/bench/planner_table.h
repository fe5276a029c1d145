// SPDX-License-Identifier: Apache-2.0
//
// What `stowage-bench planner` says of plans: rows of a Markdown table or JSON, and whether a plan
// reaches its goal. Pure: plans are made in planner_bench.cpp.
#ifndef STOWAGE_TOOLS_BENCH_PLANNER_TABLE_H_
#define STOWAGE_TOOLS_BENCH_PLANNER_TABLE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ir/base/units.h"

namespace stowage::tools {

/// How slow a plan may be. Of kFits: any plan will do.
struct Goal {
  enum class Of : uint8_t { kNone, kFits, kUnlimited, kBound };
  Of of = Of::kNone;
  double most = 0;  // step time over the time in unlimited memory, or over the plan's bound
};

/// A step in unlimited memory.
struct BenchedStep {
  std::string name;
  std::string recipe;  // or its file
  std::string costs;   // where they come from
  size_t nodes = 0;
  Nanoseconds unlimited;  // step time when everything fits
  Bytes peak;             // what it needs then
};

struct BenchedPlan {
  Nanoseconds stepTime;
  Nanoseconds bound;
  Bytes moved;  // per step, both directions
  int64_t rowBlocks = 1;
  std::string order;
};

struct PlannerRow {
  Bytes budget;
  int percent = 0;  // of the peak; 0: the budget was given in bytes
  Goal goal;
  std::optional<BenchedPlan> plan;  // none: it does not fit
  Bytes smallest;                   // that would do; of memory in `space`
  std::string space = "device";
  double cpuSeconds = 0;  // of all threads
  double wallSeconds = 0;
};

/// Nothing without a goal. Ratios are compared in thousandths, as they are printed.
std::optional<bool> isGoalMet(const PlannerRow& row, Nanoseconds unlimited);

/// Title, facts and head of a step's table.
std::string formatHead(const BenchedStep& step);
std::string formatRow(const PlannerRow& row, Nanoseconds unlimited);
nlohmann::ordered_json stepJson(const BenchedStep& step);
nlohmann::ordered_json rowJson(const PlannerRow& row, Nanoseconds unlimited);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_BENCH_PLANNER_TABLE_H_
