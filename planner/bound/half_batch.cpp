// SPDX-License-Identifier: Apache-2.0
#include "planner/bound/half_batch.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>

#include <algorithm>
#include <vector>

#include "planner/bound/working_sets.h"

namespace stowage::planner {

namespace {

using Sizes = llvm::SmallVector<int64_t, 4>;

/// By storage: the sizes of the first tensor that fills it.
std::vector<Sizes> findSizes(const ir::Graph& graph) {
  std::vector<Sizes> sizes(graph.storages().size());
  for (const ir::Value& value : graph.values()) {
    Sizes& known = sizes[value.storage.index()];
    const bool fills = value.type.covers(graph.storage(value.storage).bytes);
    if (known.empty() && fills) known = value.type.sizes;
  }
  return sizes;
}

/// 0: there is none.
int64_t findBatch(const ir::Graph& graph, llvm::ArrayRef<Sizes> sizes) {
  int64_t batch = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (graph.storages()[i].role != ir::Role::kInput || sizes[i].empty()) continue;
    if (batch != 0 && sizes[i].front() != batch) return 0;
    batch = sizes[i].front();
  }
  return batch;
}

/// By storage: does it shrink with the batch?
std::vector<bool> findScaled(const ir::Graph& graph, llvm::ArrayRef<Sizes> sizes, int64_t batch) {
  std::vector<bool> follows(sizes.size(), false);
  for (size_t i = 0; i < follows.size(); ++i) {
    follows[i] = graph.storages()[i].role == ir::Role::kInput;
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    bool reads = false;
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      reads = reads || (access.reads() && follows[access.storage.index()]);
    }
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      if (reads && access.writes()) follows[access.storage.index()] = true;
    }
  }
  for (size_t i = 0; i < follows.size(); ++i) {
    const ir::Role role = graph.storages()[i].role;
    const bool isOfStep =
        role == ir::Role::kInput || role == ir::Role::kActivation || role == ir::Role::kOutput;
    follows[i] = follows[i] && isOfStep && llvm::any_of(sizes[i], [&](int64_t size) {
                   return size > 0 && size % batch == 0;
                 });
  }
  return follows;
}

}  // namespace

std::optional<HalfBatch> findHalfBatch(const Problem& problem) {
  const ir::Graph& graph = problem.graph;
  const std::vector<Sizes> sizes = findSizes(graph);
  const int64_t batch = findBatch(graph, sizes);
  if (batch < 2 || batch % 2 != 0) return std::nullopt;
  const std::vector<bool> scaled = findScaled(graph, sizes, batch);
  const std::vector<int64_t> sets = computeWorkingSets(problem);
  int64_t least = 0;
  for (size_t i = 0; i < sets.size(); ++i) {
    int64_t shrinking = 0;
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      const ir::Storage& storage = graph.storage(access.storage);
      const bool counts = scaled[access.storage.index()] && storage.home != ir::Space::kHost;
      if (counts) shrinking += storage.bytes.value();
    }
    if (shrinking > 0) shrinking += problem.costs.nodes[i].temporary.value();
    least = std::max(least, sets[i] - shrinking / 2);
  }
  return HalfBatch{.batch = batch, .least = roundUp(Bytes(least), problem.target.alignBytes)};
}

}  // namespace stowage::planner
