// SPDX-License-Identifier: Apache-2.0
//
// Captured steps and their costs from files, for benchmarks that need no libtorch.
#ifndef STOWAGE_TOOLS_BENCH_STEP_FILES_H_
#define STOWAGE_TOOLS_BENCH_STEP_FILES_H_

#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"

namespace stowage::tools {

/// Names of the steps in a folder, without ".stow", in order.
std::vector<std::string> listSteps(const std::string& folder);
/// Errors: kIo, kParse.
ir::Expected<ir::Graph> readStep(const std::string& path);
ir::Expected<ir::CostTable> readStepCosts(const std::string& path);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_BENCH_STEP_FILES_H_
