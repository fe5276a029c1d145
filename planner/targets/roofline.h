// SPDX-License-Identifier: Apache-2.0
//
// Costs and machines that nobody measured: for each node the longer of its arithmetic at the
// target's peak rate and its bytes at the target's memory bandwidth, plus a constant per kernel;
// temporaries by formula where a kernel is known to need them. An optimistic estimate, marked as
// such (CostSource::kRoofline) in every plan made from it. Profiles hold published figures of
// devices; some links are measured (profiles.cpp says which).
#ifndef STOWAGE_PLANNER_TARGETS_ROOFLINE_H_
#define STOWAGE_PLANNER_TARGETS_ROOFLINE_H_

#include <llvm/ADT/StringRef.h>

#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"

namespace stowage::planner {

/// One row per distinct signature of the graph's nodes; the target's links.
ir::CostTable rooflineCosts(const ir::Graph& graph, const ir::Target& target);

/// Floating point operations of a node, by its op's CostKind; 0 for ops that only move bytes.
int64_t countFlops(const ir::Graph& graph, ir::NodeId node);
/// Bytes of the distinct storages' parts that a node's tensors span, read or written once each.
Bytes countBytes(const ir::Graph& graph, ir::NodeId node);

/// All profiles, ordered by name.
const std::vector<ir::Target>& targetProfiles();
/// Errors: kInvalidArgument listing the names there are.
ir::Expected<ir::Target> findTargetProfile(llvm::StringRef name);
/// Whether whole words of a GPU's product name, or of a text with it, make the profile's name:
/// "NVIDIA GeForce RTX 4090" is "rtx4090", "NVIDIA GH200 480GB" is not "h200".
bool namesProfile(llvm::StringRef productName, llvm::StringRef profile);
/// The profile that a GPU's product name means, else one of its compute capability (90 for sm_90):
/// kernels are chosen by that. Errors: kInvalidArgument listing the names there are.
ir::Expected<ir::Target> findProfileOfGpu(llvm::StringRef productName, int computeCapability);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_TARGETS_ROOFLINE_H_
