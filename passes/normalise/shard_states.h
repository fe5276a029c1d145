// SPDX-License-Identifier: Apache-2.0
//
// A step for one process -> the same step on each of several ranks, which hold 1/ranks of what
// the optimizer updates. Per parameter that can be one (sharded_states.h):
//   - the parameter's storage keeps its name and becomes a shard of ceil(elements / ranks), in
//     units of 64 elements, as does the state of its update; what lies beyond the last element
//     begins as zero, and nothing but the same places of other shards is made of it;
//   - `stowage.all_gather` writes all of it, before the first node of forward or backward that
//     reads it: a storage of the step like others, so that a plan keeps it or gathers it again;
//   - after the last node that writes a gradient, `stowage.all_to_all` brings each rank what all
//     have for its shard, and `stowage.add_parts` makes the mean of that, in rank order;
//   - a norm of gradients becomes the norm of the gathered norms of the shards.
// All ranks have one graph, which says of each shard what it is one of. Rank r's shard holds
// elements r * length and up, in order of memory. The bits are those of plain processes that
// average gradients in rank order, where an update's kernel rounds an element the same wherever it
// lies, and no norm is taken of several parts. Normalising pass; before costing, and before passes
// that move updates.
#ifndef STOWAGE_PASSES_NORMALISE_SHARD_STATES_H_
#define STOWAGE_PASSES_NORMALISE_SHARD_STATES_H_

#include <memory>
#include <string>

#include "passes/manage/pass.h"

namespace stowage::passes {

struct ShardStatesOptions {
  int64_t ranks = 1;
};

class ShardStates : public Pass {
 public:
  explicit ShardStates(ShardStatesOptions options = {}) : options_(options) {}
  /// Errors: kInvalidArgument for unknown options and a number of ranks that is none.
  static ir::Expected<std::unique_ptr<Pass>> parse(llvm::StringRef options);

  std::string name() const override { return "shard-states"; }
  std::string options() const override;
  /// Counters: `shards` of parameters, `whole` parameters that stay so, `norms` put together. A
  /// remark says why the first one stays whole. Errors: of findShardRoles.
  ir::Expected<PassReport> run(PassState& state) const override;

 private:
  ShardStatesOptions options_;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_SHARD_STATES_H_
