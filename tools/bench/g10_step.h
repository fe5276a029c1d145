// SPDX-License-Identifier: Apache-2.0
//
// Reads a training step in the format of the G10 data set (tensors with bytes and whether they are
// weights; kernels in order with their cycles, inputs and outputs), gzipped or plain, as a planning
// problem: 40 GiB of device memory and links of 15.754 GB/s each way. Any kernel that changes no
// weight is recomputable.
#ifndef STOWAGE_TOOLS_BENCH_G10_STEP_H_
#define STOWAGE_TOOLS_BENCH_G10_STEP_H_

#include <string>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "planner/problem/problem.h"

namespace stowage::tools {

struct G10Step {
  std::string name;
  Bytes budget;
  ir::Graph graph;
  ir::Target target;
  ir::NodeCosts costs;
};

/// Errors: kIo, kParse with the file.
ir::Expected<G10Step> readG10Step(const std::string& path);

/// `step` must outlive it.
planner::Problem makeG10Problem(const G10Step& step, bool recompute);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_BENCH_G10_STEP_H_
