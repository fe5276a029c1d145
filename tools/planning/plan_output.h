// SPDX-License-Identifier: Apache-2.0
//
// What `plan` and `lower` leave behind: the summary on stdout and the plan file, proven from its
// own bytes before it takes its name.
#ifndef STOWAGE_TOOLS_PLANNING_PLAN_OUTPUT_H_
#define STOWAGE_TOOLS_PLANNING_PLAN_OUTPUT_H_

#include <string>
#include <vector>

#include "passes/plan_step.h"
#include "tools/cli/verb.h"
#include "tools/planning/planning_flags.h"
#include "tools/planning/policies.h"

namespace stowage::tools {

struct PlanOutput {
  const PlanningInputs& inputs;
  const passes::PlannedStep& planned;
  std::string graphPath;
  std::string planPath;  // "": no file
  bool embed = false;
  const CommonFlags& flags;
  std::vector<PolicyAnswer> policies;  // to be shown beside the plan
};
VerbResult writePlanOutput(const PlanOutput& output);

/// The plan's bytes, read back and verified. Errors: kInternal with the violations, for they would
/// be ours.
ir::Expected<std::string> makePlanText(const PlanOutput& output);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_PLANNING_PLAN_OUTPUT_H_
