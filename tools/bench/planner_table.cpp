// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/planner_table.h"

#include <fmt/format.h>

#include <cmath>

namespace stowage::tools {

namespace {

using Json = nlohmann::ordered_json;

int64_t thousandths(double ratio) { return std::llround(ratio * 1000); }

double ratioOf(Nanoseconds time, Nanoseconds base) {
  return static_cast<double>(time.value()) / static_cast<double>(base.value());
}

double milliseconds(Nanoseconds time) { return static_cast<double>(time.value()) / 1e6; }

std::string formatGoal(const Goal& goal) {
  switch (goal.of) {
    case Goal::Of::kNone:
      return "-";
    case Goal::Of::kFits:
      return "fits";
    case Goal::Of::kUnlimited:
      return fmt::format("{:.3f} x unlimited", goal.most);
    case Goal::Of::kBound:
      return fmt::format("{:.3f} x bound", goal.most);
  }
  return "-";
}

std::string formatVerdict(std::optional<bool> isMet) {
  if (!isMet) return "-";
  return *isMet ? "met" : "not met";
}

std::string formatBudget(const PlannerRow& row) {
  if (row.percent == 0) return formatBytes(row.budget);
  return fmt::format("{} ({} %)", formatBytes(row.budget), row.percent);
}

}  // namespace

std::optional<bool> isGoalMet(const PlannerRow& row, Nanoseconds unlimited) {
  if (row.goal.of == Goal::Of::kNone) return std::nullopt;
  if (!row.plan) return false;
  if (row.goal.of == Goal::Of::kFits) return true;
  const Nanoseconds base = row.goal.of == Goal::Of::kBound ? row.plan->bound : unlimited;
  return thousandths(ratioOf(row.plan->stepTime, base)) <= thousandths(row.goal.most);
}

std::string formatHead(const BenchedStep& step) {
  return fmt::format(
      "\n## {}\n"
      "`{}`: {} nodes. In unlimited memory {:.1f} ms and {}. Costs: {}.\n\n"
      "| budget | step ms | x unlimited | x bound | GiB moved | row blocks | order | CPU s | wall "
      "s "
      "| goal | result |\n"
      "|--|--|--|--|--|--|--|--|--|--|--|\n",
      step.name, step.recipe, step.nodes, milliseconds(step.unlimited), formatBytes(step.peak),
      step.costs);
}

std::string formatRow(const PlannerRow& row, Nanoseconds unlimited) {
  const std::string times = fmt::format("{:.1f} | {:.1f}", row.cpuSeconds, row.wallSeconds);
  const std::string goal = formatGoal(row.goal) + " | " + formatVerdict(isGoalMet(row, unlimited));
  if (!row.plan) {
    return fmt::format(
        "| {} | does not fit; smallest {} budget that works: {} | - | - | - | - | - | {} | {} |\n",
        formatBudget(row), row.space, formatBytes(row.smallest), times, goal);
  }
  const BenchedPlan& plan = *row.plan;
  const double moved = static_cast<double>(plan.moved.value()) / static_cast<double>(1 << 30);
  return fmt::format("| {} | {:.1f} | {:.3f} | {:.3f} | {:.2f} | {} | {} | {} | {} |\n",
                     formatBudget(row), milliseconds(plan.stepTime),
                     ratioOf(plan.stepTime, unlimited), ratioOf(plan.stepTime, plan.bound), moved,
                     plan.rowBlocks == 1 ? "-" : std::to_string(plan.rowBlocks), plan.order, times,
                     goal);
}

Json stepJson(const BenchedStep& step) {
  return {{"name", step.name},
          {"recipe", step.recipe},
          {"costs", step.costs},
          {"nodes", step.nodes},
          {"unlimited_ns", step.unlimited.value()},
          {"unplanned_bytes", step.peak.value()}};
}

Json rowJson(const PlannerRow& row, Nanoseconds unlimited) {
  Json json = {{"budget_bytes", row.budget.value()}, {"fits", row.plan.has_value()}};
  if (row.percent > 0) json["percent_of_peak"] = row.percent;
  if (row.plan) {
    json["step_ns"] = row.plan->stepTime.value();
    json["bound_ns"] = row.plan->bound.value();
    json["over_unlimited"] = ratioOf(row.plan->stepTime, unlimited);
    json["over_bound"] = ratioOf(row.plan->stepTime, row.plan->bound);
    json["moved_bytes"] = row.plan->moved.value();
    json["row_blocks"] = row.plan->rowBlocks;
    json["order"] = row.plan->order;
  } else {
    json["space"] = row.space;
    json["smallest_budget_bytes"] = row.smallest.value();
  }
  json["cpu_seconds"] = row.cpuSeconds;
  json["wall_seconds"] = row.wallSeconds;
  if (const std::optional<bool> isMet = isGoalMet(row, unlimited)) {
    json["goal"] = formatGoal(row.goal);
    json["met"] = *isMet;
  }
  return json;
}

}  // namespace stowage::tools
