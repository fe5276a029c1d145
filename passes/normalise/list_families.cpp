// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/list_families.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "ir/base/affix.h"

namespace stowage::passes {

namespace {

using StorageList = std::vector<ir::StorageId>;

/// "aten._foreach_add_.Scalar" -> "_foreach_add_"; "" outside aten.
llvm::StringRef baseName(llvm::StringRef op) {
  if (!op.consume_front("aten.")) return "";
  return op.split('.').first;
}

bool isListOp(llvm::StringRef op) {
  static constexpr std::array<const char*, 4> kFused = {
      "_fused_adam_", "_fused_adamw_", "_fused_sgd_", "_amp_foreach_non_finite_check_and_unscale_"};
  const llvm::StringRef base = baseName(op);
  return ir::startsWith(base, "_foreach_") ||
         std::any_of(kFused.begin(), kFused.end(), [&](const char* name) { return base == name; });
}

/// `_foreach_addcdiv_.Tensor` takes the scalars of all elements as one tensor.
bool hasScalarTensor(llvm::StringRef op) {
  return ir::endsWith(op, ".Tensor") && ir::startsWith(baseName(op), "_foreach_addc");
}

StorageList storagesOf(const ir::Graph& graph, const ir::ValueList& list) {
  StorageList storages;
  for (const ir::ValueArg& element : list) {
    storages.push_back(element.value.isValid() ? graph.value(element.value).storage
                                               : ir::StorageId());
  }
  return storages;
}

/// All lists of a node as storages, the results last.
std::vector<StorageList> listsOf(const ir::Graph& graph, const ir::Node& node) {
  std::vector<StorageList> lists;
  for (const ir::Argument& argument : node.args) {
    const auto* list = std::get_if<ir::ValueList>(&argument);
    if (list != nullptr && !list->empty()) lists.push_back(storagesOf(graph, *list));
  }
  if (!node.results.empty()) {
    StorageList results;
    for (const ir::ValueId result : node.results) {
      results.push_back(result.isValid() ? graph.value(result).storage : ir::StorageId());
    }
    lists.push_back(std::move(results));
  }
  return lists;
}

/// Does the node write a storage that two elements name, or one element and an argument beside the
/// lists? Then the buckets would not be independent.
bool sharesAWrittenStorage(const ir::Graph& graph, ir::NodeId id,
                           const std::vector<StorageList>& lists) {
  constexpr auto kBesideTheLists = static_cast<size_t>(-1);
  std::map<ir::StorageId, size_t> elementOf;
  std::vector<ir::StorageId> shared;
  for (const ir::Argument& argument : graph.node(id).args) {
    const auto* single = std::get_if<ir::ValueArg>(&argument);
    if (single == nullptr || !single->value.isValid()) continue;
    elementOf.emplace(graph.value(single->value).storage, kBesideTheLists);
  }
  for (const StorageList& list : lists) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i].isValid()) continue;
      const auto [entry, isNew] = elementOf.emplace(list[i], i);
      if (!isNew && entry->second != i) shared.push_back(list[i]);
    }
  }
  return std::any_of(shared.begin(), shared.end(), [&](ir::StorageId storage) {
    const auto accesses = graph.accesses(id);
    return std::any_of(accesses.begin(), accesses.end(), [&](const ir::Access& access) {
      return access.storage == storage && access.writes();
    });
  });
}

bool numbersLineUp(const ir::Node& node, size_t length) {
  return std::all_of(node.args.begin(), node.args.end(), [&](const ir::Argument& argument) {
    const auto* numbers = std::get_if<ir::NumberList>(&argument);
    return numbers == nullptr || numbers->empty() || numbers->size() == length;
  });
}

int64_t tensorBytes(const ir::Graph& graph, ir::ValueId value) {
  if (!value.isValid()) return 0;
  const ir::TensorType& type = graph.value(value).type;
  return type.numElements() * ir::elementBytes(type.dtype);
}

void growElementBytes(const ir::Graph& graph, const ir::Node& node, std::vector<int64_t>& bytes) {
  for (const ir::Argument& argument : node.args) {
    const auto* list = std::get_if<ir::ValueList>(&argument);
    if (list == nullptr || list->empty()) continue;
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = std::max(bytes[i], tensorBytes(graph, (*list)[i].value));
    }
  }
  for (size_t i = 0; i < node.results.size(); ++i) {
    bytes[i] = std::max(bytes[i], tensorBytes(graph, node.results[i]));
  }
}

/// Sets of numbers that grow together; the smallest member stands for a set.
class UnionFind {
 public:
  explicit UnionFind(size_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void unite(size_t a, size_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<size_t> parent_;
};

}  // namespace

size_t findListLength(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  if (!isListOp(node.op) || hasScalarTensor(node.op)) return 0;
  const std::vector<StorageList> lists = listsOf(graph, node);
  if (lists.empty()) return 0;
  const size_t length = lists.front().size();
  const bool aligned = std::all_of(lists.begin(), lists.end(),
                                   [&](const StorageList& list) { return list.size() == length; });
  if (!aligned || !numbersLineUp(node, length)) return 0;
  return sharesAWrittenStorage(graph, id, lists) ? 0 : length;
}

ListFamilies findListFamilies(const ir::Graph& graph) {
  ListFamilies result;
  std::vector<ir::NodeId> nodes;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!isListOp(graph.nodes()[i].op)) continue;
    if (findListLength(graph, ir::NodeId(i)) > 0) {
      nodes.push_back(ir::NodeId(i));
    } else {
      ++result.leftWhole;
    }
  }
  UnionFind sets(nodes.size());
  std::map<StorageList, size_t> firstWithList;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (StorageList& list : listsOf(graph, graph.node(nodes[i]))) {
      sets.unite(i, firstWithList.emplace(std::move(list), i).first->second);
    }
  }
  std::map<size_t, size_t> familyOf;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto [entry, isNew] = familyOf.emplace(sets.find(i), result.families.size());
    if (isNew) {
      result.families.emplace_back();
      result.families.back().elementBytes.resize(findListLength(graph, nodes[i]));
    }
    ListFamily& family = result.families[entry->second];
    family.nodes.push_back(nodes[i]);
    growElementBytes(graph, graph.node(nodes[i]), family.elementBytes);
  }
  return result;
}

}  // namespace stowage::passes
