// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/row_regions.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "passes/normalise/graph_edit.h"
#include "passes/normalise/row_region_scan.h"

namespace stowage::passes {

namespace {

// A region pays if it saves this share of the most that one node touches, and its nodes touch at
// least that share of what it must save: smaller ones would only add launches.
constexpr int64_t kSmallestShare = 8;
// ... and if one of its nodes touches this share of the most that any node outside of all regions
// touches: the step needs what the latter touches anyway, at each budget.
constexpr int64_t kSmallestPart = 2;

int64_t touchedBytes(const ir::Graph& graph, ir::NodeId node) {
  int64_t bytes = 0;
  for (const ir::Access& access : graph.accesses(node)) {
    bytes += graph.storage(access.storage).bytes.value();
  }
  return bytes;
}

/// Joins nodes to components.
class Components {
 public:
  explicit Components(size_t nodes) : parent_(nodes) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  size_t find(size_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void join(size_t a, size_t b) { parent_[find(b)] = find(a); }

 private:
  std::vector<size_t> parent_;
};

class RegionFinder {
 public:
  explicit RegionFinder(const ir::Graph& graph) : graph_(graph) {
    int64_t most = 0;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      touched_.push_back(touchedBytes(graph, ir::NodeId(i)));
      most = std::max(most, touched_.back());
    }
    smallestSaving_ = std::max<int64_t>(most / kSmallestShare, 1);
  }

  RowRegions run() {
    std::vector<RowRegion> found;
    for (const int64_t rows : possibleRows()) {
      for (RowRegion& region : findAll(rows)) {
        if (region.saved.value() >= smallestSaving_) found.push_back(std::move(region));
      }
    }
    RowRegions chosen = chooseApart(std::move(found));
    keepLarge(chosen.regions);
    return chosen;
  }

 private:
  bool isCandidate(size_t node) const {
    return touched_[node] >= std::max<int64_t>(smallestSaving_ / kSmallestShare, 1);
  }

  /// Products of leading dimensions of what candidates make or read, largest first.
  std::vector<int64_t> possibleRows() const {
    std::set<int64_t, std::greater<>> rows;
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const ir::Node& node = graph_.nodes()[i];
      const ir::RowKind kind = ir::lookUpRowOp(node.op).kind;
      if (!isCandidate(i) || kind == ir::RowKind::kNone || kind == ir::RowKind::kShapeOnly)
        continue;
      if (node.results.empty() || !node.results[0].isValid()) continue;
      const ir::TensorType& type = graph_.value(node.results[0]).type;
      int64_t product = 1;
      for (size_t k = 0; k + 1 < type.sizes.size(); ++k) {
        product *= type.sizes[k];
        if (product > 1) rows.insert(product);
      }
    }
    return {rows.begin(), rows.end()};
  }

  std::vector<RowRegion> findAll(int64_t rows) const {
    std::vector<RowMember> members;
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (!isCandidate(i) || keepsOrder(graph_.nodes()[i])) continue;
      std::optional<RowNode> node = findRowNode(graph_, graph_.nodes()[i], rows);
      if (node && makesFreshStorages(ir::NodeId(i), *node)) {
        members.push_back({ir::NodeId(i), std::move(*node)});
      }
    }
    std::vector<RowRegion> found;
    while (!members.empty()) {
      std::vector<RowMember> left;
      for (std::vector<RowMember>& component : split(members)) {
        RowScan scan = scanRegion(graph_, rows, component);
        if (scan.region.members.size() > 1) found.push_back(std::move(scan.region));
        llvm::append_range(left, std::move(scan.left));
      }
      llvm::sort(left, [](const RowMember& a, const RowMember& b) { return a.node < b.node; });
      members = std::move(left);
    }
    return found;
  }

  /// On the device, all of each, and written once: a block then writes its rows once.
  bool makesFreshStorages(ir::NodeId node, const RowNode& rows) const {
    for (const ir::Access& access : graph_.accesses(node)) {
      if (!access.writes()) continue;
      if (access.reads() || access.writtenVersion != 1 || graph_.lastVersion(access.storage) != 1) {
        return false;
      }
    }
    return llvm::all_of(graph_.node(node).results, [&](ir::ValueId id) {
      const ir::Value& value = graph_.value(id);
      const ir::Storage& storage = graph_.storage(value.storage);
      const bool isWhole = value.type.offset == 0 && value.type.covers(storage.bytes);
      return storage.home == ir::Space::kDevice && !storage.persistent &&
             (isWhole || rows.kind == ir::RowKind::kLossForward);
    });
  }

  /// Members that hand rows to each other.
  std::vector<std::vector<RowMember>> split(const std::vector<RowMember>& members) const {
    Components components(members.size());
    llvm::DenseMap<int32_t, size_t> madeBy;
    for (size_t i = 0; i < members.size(); ++i) {
      const ir::Node& node = graph_.node(members[i].node);
      ir::forEachTensorArgument(node, [&](ir::ValueId value) {
        const auto maker = madeBy.find(graph_.value(value).storage.raw());
        if (maker != madeBy.end()) components.join(maker->second, i);
      });
      for (const ir::ValueId result : node.results) {
        if (result.isValid()) madeBy[graph_.value(result).storage.raw()] = i;
      }
    }
    std::vector<std::vector<RowMember>> parts;
    llvm::DenseMap<size_t, size_t> partOf;
    for (size_t i = 0; i < members.size(); ++i) {
      const auto [entry, isNew] = partOf.try_emplace(components.find(i), parts.size());
      if (isNew) parts.emplace_back();
      parts[entry->second].push_back(members[i]);
    }
    return parts;
  }

  static RowRegions chooseApart(std::vector<RowRegion> found) {
    llvm::stable_sort(found, [](const RowRegion& a, const RowRegion& b) {
      return std::pair(a.unit < a.rows, a.saved) > std::pair(b.unit < b.rows, b.saved);
    });
    std::vector<RowRegion> chosen;
    for (RowRegion& region : found) {
      const auto overlaps = [&](const RowRegion& other) {
        return region.members.front().node <= other.members.back().node &&
               other.members.front().node <= region.members.back().node;
      };
      if (!llvm::any_of(chosen, overlaps)) chosen.push_back(std::move(region));
    }
    RowRegions result;
    for (RowRegion& region : chosen) {
      if (region.unit < region.rows) {
        result.regions.push_back(std::move(region));
      } else {
        ++result.leftWhole;
      }
    }
    llvm::sort(result.regions, [](const RowRegion& a, const RowRegion& b) {
      return a.members.front().node < b.members.front().node;
    });
    return result;
  }

  void keepLarge(std::vector<RowRegion>& regions) const {
    std::vector<int64_t> outside = touched_;
    for (const RowRegion& region : regions) {
      for (const RowMember& member : region.members) outside[member.node.index()] = 0;
    }
    if (outside.empty()) return;
    const int64_t most = *std::max_element(outside.begin(), outside.end());
    llvm::erase_if(regions, [&](const RowRegion& region) {
      return llvm::all_of(region.members, [&](const RowMember& member) {
        return touched_[member.node.index()] < most / kSmallestPart;
      });
    });
  }

  const ir::Graph& graph_;
  std::vector<int64_t> touched_;  // by node
  int64_t smallestSaving_ = 1;
};

}  // namespace

RowRegions findRowRegions(const ir::Graph& graph) { return RegionFinder(graph).run(); }

}  // namespace stowage::passes
