// SPDX-License-Identifier: Apache-2.0
//
// Example models at full size with budgets and goals for plans of them, and their capture by the
// program `stowage` that lies beside this one: benchmarks need no libtorch themselves.
#ifndef STOWAGE_TOOLS_BENCH_EXAMPLE_STEPS_H_
#define STOWAGE_TOOLS_BENCH_EXAMPLE_STEPS_H_

#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "tools/bench/planner_table.h"

namespace stowage::tools {

/// A budget of a benchmark, in GiB or in per cent of the step's peak.
struct WantedBudget {
  double gibibytes = 0;
  int percent = 0;  // not 0: instead of gibibytes
  Goal goal;
  std::string label() const;  // "15.2", "35%"
};

struct ExampleStep {
  std::string name;
  std::string model;
  std::vector<std::string> settings;
  std::vector<WantedBudget> budgets;
};

inline constexpr const char* kExampleTarget = "h200";

/// In the order in which they are printed.
std::vector<ExampleStep> exampleSteps();

/// `program`: the path of `stowage`. The target is kExampleTarget, nondeterministic kernels.
/// Errors: kEnvironment where the program does not run or fails; those of readStep.
ir::Expected<ir::Graph> captureExample(const ExampleStep& example, const std::string& program);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_BENCH_EXAMPLE_STEPS_H_
