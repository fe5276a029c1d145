// SPDX-License-Identifier: Apache-2.0
//
// Costs and machines that nobody measured: estimated times of a graph's nodes on a target, by what
// their kernels do (op_work.h) and how near kernels come to the target's rates (op_efficiency.h);
// temporaries by formula where a kernel is known to need them. Marked as an estimate
// (CostSource::kRoofline) in every plan made from it. Profiles hold published figures of devices;
// some links are measured (profiles.cpp says which).
#ifndef STOWAGE_PLANNER_TARGETS_ROOFLINE_H_
#define STOWAGE_PLANNER_TARGETS_ROOFLINE_H_

#include <llvm/ADT/StringRef.h>

#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"
#include "planner/targets/torch_libraries.h"

namespace stowage::planner {

/// One row per distinct signature of the graph's nodes; the target's links.
ir::CostTable rooflineCosts(const ir::Graph& graph, const ir::Target& target);

/// By how many per cent an estimated step may differ from a measured one, up or down, where the
/// step is not launch-bound. None for CPUs, whose error nobody measured.
std::optional<int> estimateErrorPercent(const ir::Target& target);
/// "from the profile h200, not measured: +-10 % of the step's time".
std::string describeEstimate(const ir::Target& target);

/// All profiles, ordered by name.
const std::vector<ir::Target>& targetProfiles();
/// With the libraries of a torch. Errors: kInvalidArgument listing the names there are; of
/// setTorch.
ir::Expected<ir::Target> findTargetProfile(llvm::StringRef name,
                                           llvm::StringRef torch = kDefaultTorch);
/// Whether whole words of a GPU's product name, or of a text with it, make the profile's name:
/// "NVIDIA GeForce RTX 4090" is "rtx4090", "NVIDIA GH200 480GB" is not "h200".
bool namesProfile(llvm::StringRef productName, llvm::StringRef profile);
/// The profile that a GPU's product name means, else one of its compute capability (90 for sm_90):
/// kernels are chosen by that. Errors: as findTargetProfile.
ir::Expected<ir::Target> findProfileOfGpu(llvm::StringRef productName, int computeCapability,
                                          llvm::StringRef torch = kDefaultTorch);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_TARGETS_ROOFLINE_H_
