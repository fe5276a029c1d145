// SPDX-License-Identifier: Apache-2.0
//
// Which storages can be shards when a training runs on several ranks. A parameter, the state of its
// update and what the update makes for itself form a group: storages that elementwise nodes of the
// optimizer name together. A rank can then update its part alone. Norms may read a group's
// gradients as well, until the update changes them: the parts' norms are put together. All else
// stays whole on every rank, where the update reads the mean of the gradients: a group that some
// other op reads (a matrix product of Muon), that lies in memory with gaps, that is smaller than
// the number of ranks.
#ifndef STOWAGE_PASSES_NORMALISE_SHARDED_STATES_H_
#define STOWAGE_PASSES_NORMALISE_SHARDED_STATES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"

namespace stowage::passes {

/// What a storage becomes.
enum class ShardRole : uint8_t {
  kNone,       // it stays as it is
  kParameter,  // a shard persists; what forward and backward read is gathered
  kOfUpdate,   // state of an update, or what an update makes: a shard
  kGradient,   // whole and this rank's own; the update reads its shard of the mean
  kMean        // whole and this rank's own; the update reads the mean, whole
};

struct ShardRoles {
  std::vector<ShardRole> of;  // by storage
  int64_t whole = 0;          // updated parameters that stay whole
  std::string firstWhole;     // why the first of them does; "": there is none
};

/// Errors: kUnsupported for a step whose ranks would not stay alike (alike_ranks.h).
ir::Expected<ShardRoles> findShardRoles(const ir::Graph& graph, int64_t ranks);

/// The tensors that a node treats together, independent of all others: one set for each element of
/// a list op, else one of all operands and results.
std::vector<std::vector<ir::ValueId>> elementsOf(const ir::Node& node);
/// A norm of positive order of one tensor, or of each tensor of a list, over all of its elements?
bool isWholeNorm(const ir::Graph& graph, const ir::Node& node);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_SHARDED_STATES_H_
