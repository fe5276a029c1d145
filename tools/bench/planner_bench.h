// SPDX-License-Identifier: Apache-2.0
//
// How good plans are and how long they take: example models and captured steps in, a table per
// step out. Each row is planned on its own, as a user plans once; its seconds hold all of that.
#ifndef STOWAGE_TOOLS_BENCH_PLANNER_BENCH_H_
#define STOWAGE_TOOLS_BENCH_PLANNER_BENCH_H_

#include <llvm/Support/raw_ostream.h>

#include <string>
#include <vector>

#include "ir/base/error.h"

namespace stowage::tools {

struct PlannerBenchFlags {
  std::string program;             // the path of `stowage`; "": not built, no example is captured
  std::string steps;               // a folder of captured steps (NAME.stow); "": none
  std::string costs = "roofline";  // or a folder of measured costs (NAME.json)
  std::vector<std::string> only;   // "NAME" or "NAME:BUDGET"; empty: all
  bool json = false;
};

/// True when each goal is met. Rows are printed as they are found, JSON at the end.
/// Errors: kInvalidArgument for names that are not there; of readStep, captureExample, makeProblem.
ir::Expected<bool> printPlans(const PlannerBenchFlags& flags, llvm::raw_ostream& os);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_BENCH_PLANNER_BENCH_H_
