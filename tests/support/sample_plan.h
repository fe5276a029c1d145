// SPDX-License-Identifier: Apache-2.0
//
// A small plan that uses every field of the file at least once. Its schedule is not meant to be
// legal: the files' tests are about reading and writing.
#ifndef STOWAGE_TESTS_SUPPORT_SAMPLE_PLAN_H_
#define STOWAGE_TESTS_SUPPORT_SAMPLE_PLAN_H_

#include <string>

#include "ir/graph/graph.h"
#include "ir/schedule/target.h"
#include "planner/files/plan_file.h"

namespace stowage::tests {

/// Storages x (input), w (parameter), h, "a \"quoted\" name"; three nodes.
ir::Graph makeSampleGraph();
ir::Target makeSampleTarget();
planner::PlanFile makeSamplePlan();
/// The file's text.
std::string writeToText(const planner::PlanFile& plan);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_SAMPLE_PLAN_H_
