// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/rank_states.h"

#include "ir/base/affix.h"

namespace stowage::runtime {

namespace {
constexpr const char* kPrefix = "ranks.";
}  // namespace

std::vector<bool> findRankStates(const ir::Graph& graph) {
  std::vector<bool> isOwn(graph.storages().size(), false);
  if (graph.ranks() == 1) return isOwn;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (ir::updatesModel(graph.nodes()[i].phase)) continue;
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      if (access.writes() && ir::isState(graph.storage(access.storage))) {
        isOwn[access.storage.index()] = true;
      }
    }
  }
  return isOwn;
}

std::string rankStateName(int32_t rank, const std::string& name) {
  return kPrefix + std::to_string(rank) + "." + name;
}

bool isRankStateName(const std::string& name) { return ir::startsWith(name, kPrefix); }

}  // namespace stowage::runtime
