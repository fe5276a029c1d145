// SPDX-License-Identifier: Apache-2.0
//
// What a plan file holds: for which graph, machine, costs, budget and host limit; the decisions,
// with the names that people read; and the complete schedule made from them. Decisions may be
// edited by hand, and `stowage lower` makes a new schedule from them; a schedule that no longer
// says the same as its decisions is refused by the verifier (V31). As JSON:
// planner/files/plan_json.h.
#ifndef STOWAGE_PLANNER_FILES_PLAN_FILE_H_
#define STOWAGE_PLANNER_FILES_PLAN_FILE_H_

#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "planner/problem/timetable.h"

namespace stowage::planner {

struct GraphReference {
  std::string fingerprint;
  int64_t nodes = 0;
  int64_t storages = 0;
  int stepsCaptured = 0;
  int64_t ranks = 1;                // that run it together
  int64_t rowBlocks = 1;            // blocks that row-wise regions run in; 1: as captured
  int64_t hostUpdates = 0;          // share asked of pass host-updates, in per cent; 0: none
  std::string file;                 // where the graph is, "" if the file does not say
  std::optional<std::string> text;  // the graph itself, in the form of ir/text/printer.h

  /// Has it other ops, with costs of their own, than the step as captured?
  bool hasOtherOps() const { return rowBlocks > 1 || hostUpdates > 0; }
};

struct CostsReference {
  std::string fingerprint;
  ir::CostSource source = ir::CostSource::kGiven;
  std::string file;  // where the table is, "" if the file does not say
};

/// Repeats of the graph beside a decision, for people. Checked against the graph, never used.
struct DecisionLabel {
  std::string name;
  Bytes bytes;
  size_t place = 0;  // among the decisions as the file has them
};

struct PlanFile {
  static constexpr Bytes kUnlimited{INT64_MAX / 4};
  std::string path;  // that it was read from, for messages
  std::string stowageVersion;
  std::string torchVersion;  // "" when none took part
  GraphReference graph;
  ir::Target target;
  CostsReference costs;
  Bytes budget;
  /// Bytes that prefetches may fill: `lower` needs it beside the decisions.
  Bytes prefetchLimit = kUnlimited;
  std::optional<Bytes> hostLimit;     // that --host set; the host arena is at most this
  std::optional<Bytes> diskLimit;     // that --disk set, likewise; none: no disk
  ir::Schedule schedule;              // at level kSynced
  std::vector<DecisionLabel> labels;  // one per row of schedule.decisions
  Stalls stalls;
  std::string boundScope;  // orders that predicted.bound holds for, "program,hoisted"; "": not said
};

/// References and labels filled in from the graph; `schedule` must be one of it. Versions, stalls
/// and costs are the caller's.
PlanFile makePlanFile(const ir::Graph& graph, const ir::Target& target, ir::Schedule schedule,
                      Bytes budget);

/// Errors: kPlanMismatch with the plan's file when it is for another graph, or a decision's name or
/// bytes are not those of its storage.
ir::Error checkPlanGraph(const PlanFile& plan, const ir::Graph& graph);

/// Errors: kPlanMismatch with one note per property of `machine` that differs from the plan's
/// target: device, alignment, threads, deterministic mode, libraries (with what to do), reserved
/// regions.
ir::Error checkPlanTarget(const PlanFile& plan, const ir::Target& machine);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FILES_PLAN_FILE_H_
