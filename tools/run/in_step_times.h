// SPDX-License-Identifier: Apache-2.0
//
// What ops take inside the steps of a plan. Alone, warm and one after the other, an op meets other
// caches, clocks and copies than in training; on a GPU a large step takes a tenth longer than its
// ops measured alone. So a few steps are run by a plan made from those figures, every command is
// timed, and the table gets the times that were seen.
#ifndef STOWAGE_TOOLS_RUN_IN_STEP_TIMES_H_
#define STOWAGE_TOOLS_RUN_IN_STEP_TIMES_H_

#include <string>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"
#include "tools/cli/verb.h"

namespace stowage::tools {

struct InStepRequest {
  const std::string& stepFile;  // where `graph` was read from
  const ir::Graph& graph;
  const ir::Target& target;
  const ir::CostTable& alone;
  const std::string& budget;  // of the plan, as on the command line
  const std::string& host;    // the same of host memory; "": no limit
  const CommonFlags& flags;
};

struct InStepTimes {
  ir::CostTable costs;   // `alone` with the times of the steps
  Bytes arena;           // of the plan that was run
  Nanoseconds alone;     // a step of that plan, predicted from ops alone
  Nanoseconds measured;  // the same, run
  Nanoseconds inSteps;   // the same, predicted from the times inside the steps
};

/// Random first values and batches; the process's state of random numbers is not kept. Errors:
/// those of planning (kInfeasible with the smallest budget) and of running.
ir::Expected<InStepTimes> measureInSteps(const InStepRequest& request);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_IN_STEP_TIMES_H_
