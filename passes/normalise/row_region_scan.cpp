// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/row_region_scan.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/STLExtras.h>

#include <numeric>
#include <optional>
#include <utility>

#include "passes/normalise/graph_edit.h"

namespace stowage::passes {

namespace {

using Storages = llvm::DenseSet<int32_t>;

class Scanner {
 public:
  Scanner(const ir::Graph& graph, int64_t rows, const std::vector<RowMember>& candidates)
      : graph_(graph), candidates_(candidates) {
    region_.rows = rows;
  }

  RowScan run() {
    const size_t first = candidates_.front().node.index();
    const size_t last = candidates_.back().node.index();
    size_t next = 0;
    for (size_t i = first; i <= last; ++i) {
      const ir::NodeId node(i);
      const bool isCandidate = next < candidates_.size() && candidates_[next].node == node;
      if (isCandidate) {
        const RowMember& candidate = candidates_[next++];
        if (mayJoin(candidate)) {
          join(candidate);
          continue;
        }
        left_.push_back(candidate);
      }
      placeOutside(node);
    }
    cutTail();
    findLeaving();
    findUnit();
    return {.region = std::move(region_), .left = std::move(left_)};
  }

 private:
  bool hitsLater(const ir::Access& access) const {
    const int32_t storage = access.storage.raw();
    return (access.reads() && laterWrites_.contains(storage)) ||
           (access.writes() && (laterWrites_.contains(storage) || laterReads_.contains(storage)));
  }

  bool mayJoin(const RowMember& candidate) const {
    for (const ir::Access& access : graph_.accesses(candidate.node)) {
      if (hitsLater(access)) return false;
    }
    return readsRowsOnly(candidate);
  }

  /// What members made is read row by row, but for the sum of weights of a loss.
  bool readsRowsOnly(const RowMember& candidate) const {
    const ir::Node& node = graph_.node(candidate.node);
    for (size_t i = 0; i < node.args.size(); ++i) {
      const auto* argument = std::get_if<ir::ValueArg>(&node.args[i]);
      if (argument == nullptr || !argument->value.isValid()) continue;
      const ir::Value& value = graph_.value(argument->value);
      if (!writes_.contains(value.storage.raw())) continue;
      if (candidate.rows.kind == ir::RowKind::kLossBackward &&
          weights_.contains(argument->value.raw())) {
        continue;
      }
      const bool isCut = candidate.rows.rowDimensions[i] > 0;
      if (!isCut || losses_.contains(value.storage.raw()) ||
          !value.type.covers(graph_.storage(value.storage).bytes)) {
        return false;
      }
    }
    return true;
  }

  void join(const RowMember& candidate) {
    region_.members.push_back(candidate);
    for (const ir::Access& access : graph_.accesses(candidate.node)) {
      if (access.reads()) reads_.insert(access.storage.raw());
      if (access.writes()) writes_.insert(access.storage.raw());
    }
    if (candidate.rows.kind != ir::RowKind::kLossForward) return;
    const ir::Node& node = graph_.node(candidate.node);
    losses_.insert(graph_.value(node.results[0]).storage.raw());
    losses_.insert(graph_.value(node.results[1]).storage.raw());
    weights_.insert(node.results[1].raw());
    lossTypes_.push_back(graph_.value(node.results[0]).type);
  }

  /// A node outside the region: after it, if it needs anything of it or of what comes after.
  void placeOutside(ir::NodeId id) {
    const ir::Node& node = graph_.node(id);
    const std::optional<bool> standIn = findStandIn(node);
    bool isLater = keepsOrder(node) && laterKeepsOrder_;
    for (const ir::Access& access : graph_.accesses(id)) {
      const int32_t storage = access.storage.raw();
      if (access.reads() && !access.writes() && standIn == true) continue;
      isLater = isLater || hitsLater(access) || (access.reads() && writes_.contains(storage)) ||
                (access.writes() && (writes_.contains(storage) || reads_.contains(storage)));
    }
    if (!isLater) {
      region_.before.push_back(id);
      if (standIn == true) region_.standIns.push_back(id);
      return;
    }
    region_.after.push_back(id);
    laterKeepsOrder_ = laterKeepsOrder_ || keepsOrder(node);
    for (const ir::Access& access : graph_.accesses(id)) {
      if (access.reads()) laterReads_.insert(access.storage.raw());
      if (access.writes()) laterWrites_.insert(access.storage.raw());
    }
  }

  /// A node that asks only for the shape of what comes later can be given a loss of that shape.
  std::optional<bool> findStandIn(const ir::Node& node) const {
    if (!readsShapeOnly(node)) return std::nullopt;
    const ir::Value& value = graph_.value(std::get<ir::ValueArg>(node.args[0]).value);
    const int32_t storage = value.storage.raw();
    if (!writes_.contains(storage) && !laterWrites_.contains(storage)) return false;
    return llvm::is_contained(lossTypes_, value.type);
  }

  /// Nodes after the last member are not in between: they stay where they are.
  void cutTail() {
    if (region_.members.empty()) return;
    const ir::NodeId last = region_.members.back().node;
    const auto isBehind = [&](ir::NodeId node) { return node > last; };
    llvm::erase_if(region_.before, isBehind);
    llvm::erase_if(region_.standIns, isBehind);
    llvm::erase_if(region_.after, isBehind);
  }

  /// What members made and others touch leaves the region; what others touch afterwards lives on.
  void findLeaving() {
    if (region_.members.empty()) return;
    llvm::DenseSet<int32_t> skipped;
    llvm::DenseSet<int32_t> before;
    for (const RowMember& member : region_.members) skipped.insert(member.node.raw());
    for (const ir::NodeId node : region_.standIns) skipped.insert(node.raw());
    for (const ir::NodeId node : region_.before) before.insert(node.raw());
    Storages outside;
    Storages livesOn;
    for (size_t i = region_.members.front().node.index(); i < graph_.nodes().size(); ++i) {
      if (skipped.contains(static_cast<int32_t>(i))) continue;
      for (const ir::Access& access : graph_.accesses(ir::NodeId(i))) {
        outside.insert(access.storage.raw());
        if (!before.contains(static_cast<int32_t>(i))) livesOn.insert(access.storage.raw());
      }
    }
    int64_t saved = 0;
    Storages taken;
    for (const RowMember& member : region_.members) {
      if (member.rows.kind == ir::RowKind::kLossForward) continue;
      const ir::StorageId made = graph_.value(graph_.node(member.node).results[0]).storage;
      const ir::Storage& storage = graph_.storage(made);
      const bool leaves = outside.contains(made.raw()) || !isLocal(storage);
      LeavingStorage leaving{.storage = made};
      if (leaves) leaving.place = findPlace(made, livesOn, taken);
      if (leaving.place.isValid()) taken.insert(leaving.place.raw());
      if (leaves) region_.leaving.push_back(leaving);
      if (!leaves || leaving.place.isValid()) saved += storage.bytes.value();
    }
    region_.saved = Bytes(saved);
  }

  /// An operand of the same form that nobody reads once the region is done.
  ir::StorageId findPlace(ir::StorageId made, const Storages& livesOn,
                          const Storages& taken) const {
    const ir::Storage& storage = graph_.storage(made);
    if (!isLocal(storage) || storage.role != ir::Role::kActivation) return ir::StorageId();
    for (const RowMember& member : region_.members) {
      const ir::Node& node = graph_.node(member.node);
      for (size_t i = 0; i < node.args.size(); ++i) {
        if (member.rows.rowDimensions[i] == 0) continue;
        const ir::Value& value = graph_.value(std::get<ir::ValueArg>(node.args[i]).value);
        const ir::Storage& operand = graph_.storage(value.storage);
        if (writes_.contains(value.storage.raw()) || taken.contains(value.storage.raw())) continue;
        if (!isLocal(operand) || operand.role != ir::Role::kActivation) continue;
        if (operand.bytes != storage.bytes || operand.home != storage.home) continue;
        if (!value.type.covers(operand.bytes) || value.type.dtype != dtypeOf(made)) continue;
        if (livesOn.contains(value.storage.raw())) continue;
        if (isReadByRowsOnly(value.storage)) return value.storage;
      }
    }
    return ir::StorageId();
  }

  bool isReadByRowsOnly(ir::StorageId storage) const {
    for (const RowMember& member : region_.members) {
      const ir::Node& node = graph_.node(member.node);
      for (size_t i = 0; i < node.args.size(); ++i) {
        const auto* argument = std::get_if<ir::ValueArg>(&node.args[i]);
        if (argument == nullptr || !argument->value.isValid()) continue;
        const ir::Value& value = graph_.value(argument->value);
        if (value.storage != storage) continue;
        if (member.rows.rowDimensions[i] == 0 ||
            !value.type.covers(graph_.storage(storage).bytes)) {
          return false;
        }
      }
    }
    return true;
  }

  ir::DType dtypeOf(ir::StorageId made) const {
    for (const RowMember& member : region_.members) {
      const ir::Value& value = graph_.value(graph_.node(member.node).results[0]);
      if (value.storage == made) return value.type.dtype;
    }
    return ir::DType::kF32;
  }

  void findUnit() {
    for (const RowMember& member : region_.members) {
      const ir::Node& node = graph_.node(member.node);
      for (size_t i = 0; i < node.args.size(); ++i) {
        if (member.rows.rowDimensions[i] == 0) continue;
        align(graph_.value(std::get<ir::ValueArg>(node.args[i]).value).type, member.rows);
      }
      if (member.rows.resultDimensions > 0) align(graph_.value(node.results[0]).type, member.rows);
    }
  }

  void align(const ir::TensorType& type, const RowNode& node) {
    const int64_t elements = type.numElements() / region_.rows;
    const int64_t bytes = elements * ir::elementBytes(type.dtype);
    if (elements == 0) return;
    region_.unit = std::lcm(region_.unit, node.alignBytes / std::gcd(node.alignBytes, bytes));
    region_.unit =
        std::lcm(region_.unit, node.alignElements / std::gcd(node.alignElements, elements));
  }

  const ir::Graph& graph_;
  const std::vector<RowMember>& candidates_;
  RowRegion region_;
  std::vector<RowMember> left_;
  Storages reads_, writes_;            // of members
  Storages laterReads_, laterWrites_;  // of nodes that come after the blocks
  Storages losses_;                    // results of losses: there is no row of them per row
  llvm::DenseSet<int32_t> weights_;    // values: sums of weights, known before the blocks
  std::vector<ir::TensorType> lossTypes_;
  bool laterKeepsOrder_ = false;
};

}  // namespace

RowScan scanRegion(const ir::Graph& graph, int64_t rows, const std::vector<RowMember>& candidates) {
  return Scanner(graph, rows, candidates).run();
}

}  // namespace stowage::passes
