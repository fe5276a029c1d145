// SPDX-License-Identifier: Apache-2.0
//
// Storages that are on the device together, by what they are like: those whose tensors have the
// same element type and sizes count as one group, which says what they are for. So a person reads
// "3 of f32 [16384,128256]: 2 activations, 1 gradient" in place of three names.
#ifndef STOWAGE_PLANNER_REPORT_HOLDER_GROUPS_H_
#define STOWAGE_PLANNER_REPORT_HOLDER_GROUPS_H_

#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"

namespace stowage::planner {

/// The groups with the most bytes, at most ten. `others`: bytes that no storage holds, each a group
/// of its own name.
std::vector<ir::Infeasible::Group> groupHolders(const ir::Graph& graph,
                                                llvm::ArrayRef<ir::StorageId> storages,
                                                llvm::ArrayRef<ir::Infeasible::Holder> others,
                                                int64_t alignBytes);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_REPORT_HOLDER_GROUPS_H_
