// SPDX-License-Identifier: Apache-2.0
//
// What would make a plan's step shorter, in numbers that the planner or the evaluation gives: more
// of the link, of the device or of the host, copies of a kind of storages that take no time, and a
// CUDA graph. The largest gains come first.
#ifndef STOWAGE_TOOLS_PLANNING_PLAN_HELP_H_
#define STOWAGE_TOOLS_PLANNING_PLAN_HELP_H_

#include <llvm/Support/raw_ostream.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "planner/report/explain_plan.h"
#include "planner/what_if.h"
#include "tools/cli/verb.h"
#include "tools/files/load_files.h"

namespace stowage::tools {

/// The launch mode under which the step's nodes alone take clearly less than the step does.
struct LaunchTip {
  ir::GraphMode mode = ir::GraphMode::kNone;
  Nanoseconds step;  // at best
};

/// One of both.
struct HelpLine {
  std::optional<planner::WhatIf> more;
  std::optional<planner::CopiedGroup> group;
  Nanoseconds saved() const { return more ? more->saved : group->atMost; }
};

struct PlanHelp {
  std::optional<LaunchTip> tip;
  bool isKernels = false;  // the step takes as long as its kernels: nothing else helps
  bool hasLaunchWaits = false;
  std::vector<HelpLine> lines;  // at most five
};

/// Plans a few times where the graph is small. Errors: as planner::askWhatIf.
ir::Expected<PlanHelp> findHelp(const LoadedPlan& plan, const ir::CostTable& costs,
                                const planner::PlanExplanation& explained,
                                const CommonFlags& flags);

void printHelp(const PlanHelp& help, llvm::raw_ostream& os);
nlohmann::ordered_json helpJson(const PlanHelp& help);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_PLANNING_PLAN_HELP_H_
