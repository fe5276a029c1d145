// SPDX-License-Identifier: Apache-2.0
#include "planner/problem/gaps.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "ir/costs/unplanned_peak.h"
#include "ir/graph/host_updates.h"
#include "ir/graph/op_table.h"
#include "planner/problem/in_place_operands.h"

namespace stowage::planner {

namespace {
constexpr int64_t kSmallShare = 4;
}  // namespace

GapTable::GapTable(const Problem& problem) : problem_(&problem) {
  const ir::Graph& graph = problem.graph;
  const int64_t align = problem.target.alignBytes;
  const size_t nodes = graph.nodes().size();
  temporary_.reserve(nodes);
  recomputable_.reserve(nodes);
  isRandom_.reserve(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    temporary_.push_back(roundUp(problem.costs.nodes[i].temporary, align).value());
    isRandom_.push_back(ir::lookUpOp(graph.nodes()[i].op).random);
    const ir::NodeId node(i);
    inPlaceOperands_.push_back(
        {inPlaceCandidate(graph, node, 0), inPlaceCandidate(graph, node, 1)});
    deriveReplayForm(i);
    recomputable_.push_back(isRecomputable(i));
  }
  reservedBytes_ = ir::sumReserved(problem.target.reserved, align).value();
  findHostWrites();
  const std::vector<bool> ofHostNodes = ir::storagesOfHostNodes(graph);
  firstGap_.push_back(0);
  for (size_t i = 0; i < graph.storages().size(); ++i) {
    const ir::Storage& storage = graph.storages()[i];
    bytes_.push_back(roundUp(storage.bytes, align).value());
    const bool untouched = problem.lives[i].touches.empty() && storage.persistent;
    hostOnly_.push_back(storage.home == ir::Space::kHost ||
                        (untouched && problem.allowed.offload) || ofHostNodes[i]);
    addGaps(ir::StorageId(i));
    firstGap_.push_back(gaps_.size());
  }
}

void GapTable::deriveReplayForm(size_t index) {
  const ir::Graph& graph = problem_->graph;
  const ir::Node& node = graph.nodes()[index];
  if (*ir::lookUpOp(node.op).replayForm == '\0') return;
  auto& accesses = replayed_[index];
  for (const ir::Access& access : graph.accesses(ir::NodeId(index))) {
    const bool isChanged =
        std::any_of(node.writes.begin(), node.writes.end(), [&](const ir::Node::Write& write) {
          return graph.value(write.value).storage == access.storage;
        });
    if (!isChanged) accesses.push_back(access);
  }
}

llvm::ArrayRef<ir::Access> GapTable::recomputeAccesses(size_t node) const {
  const auto at = replayed_.find(node);
  if (at != replayed_.end()) return at->second;
  return problem_->graph.accesses(ir::NodeId(node));
}

// A recomputed node writes fresh bytes, so it must not change what others see: every write is to a
// step-local storage, and at most one of them builds on earlier bytes (checked by findChain).
bool GapTable::isRecomputable(size_t node) const {
  const ir::Graph& graph = problem_->graph;
  const ir::OpInfo& info = ir::lookUpOp(graph.nodes()[node].op);
  if (!info.recomputable || !ir::repeatsItsBits(info, problem_->target.deterministic)) return false;
  for (const ir::Access& access : recomputeAccesses(node)) {
    const ir::Storage& storage = graph.storage(access.storage);
    if (access.writes() && (storage.persistent || storage.home == ir::Space::kHost)) return false;
  }
  return true;
}

void GapTable::findHostWrites() {
  const ir::Graph& graph = problem_->graph;
  hostWrites_.resize(graph.storages().size());
  usedOnHost_.resize(graph.storages().size());
  for (size_t i = 0; i < nodeCount(); ++i) {
    if (!graph.nodes()[i].onHost) continue;
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      usedOnHost_[access.storage.index()] = true;
      if (access.writes()) {
        hostWrites_[access.storage.index()].push_back(static_cast<int64_t>(i));
      }
    }
  }
}

bool GapTable::isWrittenOnHost(const Gap& gap) const {
  const auto nodes = static_cast<int64_t>(nodeCount());
  return llvm::any_of(hostWrites_[gap.storage.index()], [&](int64_t write) {
    return (gap.begin < write && write < gap.end) || write + nodes < gap.end;
  });
}

// What nodes on the host use, and what the caller gives or gets, has a place on the host. Copies in
// a CUDA graph cannot wait for a disk.
bool GapTable::mayDisk(ir::StorageId id) const {
  const ir::Storage& storage = problem_->graph.storage(id);
  return problem_->allowed.disk && problem_->limits.disk > Bytes(0) &&
         problem_->graphMode == ir::GraphMode::kNone && !usedOnHost_[id.index()] &&
         storage.role != ir::Role::kInput && !storage.output;
}

void GapTable::addGaps(ir::StorageId id) {
  const ir::Storage& storage = problem_->graph.storage(id);
  const std::vector<ir::Touch>& touches = problem_->lives[id.index()].touches;
  const auto nodes = static_cast<int64_t>(nodeCount());
  const bool movable = !hostOnly_[id.index()] && storage.bytes > Bytes(0);
  for (size_t k = 0; k < touches.size(); ++k) {
    chainBegin_.push_back(findChain(id, k));
    Gap gap{.storage = id, .begin = touches[k].position};
    const bool isLast = k + 1 == touches.size();
    const bool isTail = isLast && !storage.persistent;
    const ir::Touch& next = isLast ? touches.front() : touches[k + 1];
    gap.end = isTail ? nodes : next.position + (isLast ? nodes : 0);
    gap.live = !isTail && !next.whole;
    const bool useful = movable && gap.live && gap.end > gap.begin + 1;
    gap.mustHost = movable && gap.live && isWrittenOnHost(gap);
    gap.mayHost = gap.mustHost || (useful && problem_->allowed.offload);
    gap.mayDisk = useful && !gap.mustHost && mayDisk(id);
    gap.mayRecompute = useful && problem_->allowed.recompute && chainBegin_.back() >= 0;
    gaps_.push_back(gap);
  }
}

int32_t GapTable::findChain(ir::StorageId id, size_t touch) const {
  const ir::Graph& graph = problem_->graph;
  const std::vector<ir::Touch>& touches = problem_->lives[id.index()].touches;
  if (graph.storage(id).persistent || hostOnly_[id.index()]) return -1;
  for (size_t k = touch + 1; k-- > 0;) {
    if (!touches[k].writes) continue;
    const auto node = static_cast<size_t>(touches[k].position);
    if (!recomputable_[node]) return -1;
    for (const ir::Access& access : recomputeAccesses(node)) {
      if (access.writes() && !access.whole && access.storage != id) return -1;
    }
    if (touches[k].whole) return static_cast<int32_t>(k);
  }
  return -1;
}

int64_t GapTable::chainTime(ir::StorageId id, size_t touch) const {
  const std::vector<ir::Touch>& touches = problem_->lives[id.index()].touches;
  const int32_t begin = chainBegin(id, touch);
  int64_t sum = 0;
  for (auto k = static_cast<size_t>(begin); begin >= 0 && k <= touch; ++k) {
    if (touches[k].writes) sum += nodeTime(static_cast<size_t>(touches[k].position));
  }
  return sum;
}

bool GapTable::recomputesDeadInput(ir::StorageId input, size_t touch, ir::StorageId result) const {
  return problem_->allowed.recompute && chainBegin(input, touch) >= 0 &&
         bytes(input) * kSmallShare > bytes(result);
}

bool GapTable::isWritten(ir::StorageId storage) const {
  const bool isHosts =
      problem_->graph.storage(storage).persistent && !hostWrites_[storage.index()].empty();
  return problem_->graph.lastVersion(storage) > 0 && !isHosts;
}

}  // namespace stowage::planner
