// SPDX-License-Identifier: Apache-2.0
//
// What ranks of a training do not have in common: states that forward or backward write from a
// rank's own data (running statistics), and its generator. A checkpoint has rank 0's under their
// names, as a model file does, and those of the others as bytes beside them.
#ifndef STOWAGE_RUNTIME_CHECKPOINT_RANK_STATES_H_
#define STOWAGE_RUNTIME_CHECKPOINT_RANK_STATES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/graph.h"

namespace stowage::runtime {

/// By storage: does each rank have one of its own? Of a graph for one rank: none.
std::vector<bool> findRankStates(const ir::Graph& graph);

/// "ranks.1.bn.running_mean": of a rank behind the first.
std::string rankStateName(int32_t rank, const std::string& name);
/// Is it such a name, of any rank?
bool isRankStateName(const std::string& name);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CHECKPOINT_RANK_STATES_H_
