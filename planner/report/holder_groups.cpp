// SPDX-License-Identifier: Apache-2.0
#include "planner/report/holder_groups.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace stowage::planner {

namespace {

constexpr size_t kMostGroups = 10;
constexpr size_t kMostNames = 3;  // of a group

/// The tensor that fills a storage, as text; "" where none does.
std::vector<std::string> findTypes(const ir::Graph& graph) {
  std::vector<std::string> types(graph.storages().size());
  for (const ir::Value& value : graph.values()) {
    std::string& type = types[value.storage.index()];
    if (!type.empty() || !value.type.covers(graph.storage(value.storage).bytes)) continue;
    type = std::string(ir::dtypeName(value.type.dtype)) + " " + ir::listText(value.type.sizes);
  }
  return types;
}

/// By storage: the phase of its first writer.
std::vector<std::optional<ir::Phase>> findMakers(const ir::Graph& graph) {
  std::vector<std::optional<ir::Phase>> makers(graph.storages().size());
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      std::optional<ir::Phase>& maker = makers[access.storage.index()];
      if (access.writes() && !maker) maker = graph.nodes()[i].phase;
    }
  }
  return makers;
}

const char* kindOf(ir::Role role, std::optional<ir::Phase> maker) {
  switch (role) {
    case ir::Role::kFrozen:
      return "frozen parameter";
    case ir::Role::kState:
      return "optimizer state";
    case ir::Role::kMaster:
      return "master weight";
    case ir::Role::kActivation:
      if (maker == ir::Phase::kBackward) return "gradient";
      return maker == ir::Phase::kForward ? "activation" : "tensor of the update";
    default:
      return ir::roleName(role);
  }
}

std::string countOf(int64_t count, llvm::StringRef kind) {
  std::string text = std::to_string(count) + " " + kind.str();
  if (count == 1) return text;
  const llvm::StringRef tensor = "tensor";
  if (kind.substr(0, tensor.size()) == tensor) {
    return std::to_string(count) + " tensors" + kind.substr(tensor.size()).str();
  }
  return text + "s";
}

struct Members {
  int64_t count = 0;
  std::map<std::string, int64_t> kinds;
  std::vector<std::string> names;
};

ir::Infeasible::Group toGroup(const std::string& type, Bytes each, Members members) {
  ir::Infeasible::Group group{.bytes = Bytes(each.value() * members.count),
                              .count = members.count,
                              .type = type,
                              .kinds = "",
                              .storages = std::move(members.names)};
  for (const auto& [kind, count] : members.kinds) {
    const std::string text = members.count == 1 ? kind : countOf(count, kind);
    group.kinds += (group.kinds.empty() ? "" : ", ") + text;
  }
  return group;
}

}  // namespace

std::vector<ir::Infeasible::Group> groupHolders(const ir::Graph& graph,
                                                llvm::ArrayRef<ir::StorageId> storages,
                                                llvm::ArrayRef<ir::Infeasible::Holder> others,
                                                int64_t alignBytes) {
  const std::vector<std::string> types = findTypes(graph);
  const std::vector<std::optional<ir::Phase>> makers = findMakers(graph);
  std::map<std::tuple<std::string, Bytes, std::string>, Members> byType;
  for (const ir::StorageId id : storages) {
    const ir::Storage& storage = graph.storage(id);
    const std::string& type = types[id.index()];
    // What no tensor fills is like nothing else.
    const std::string apart = type.empty() ? storage.name : "";
    Members& members = byType[{type, roundUp(storage.bytes, alignBytes), apart}];
    ++members.count;
    ++members.kinds[kindOf(storage.role, makers[id.index()])];
    if (members.names.size() < kMostNames) members.names.push_back(storage.name);
  }
  std::vector<ir::Infeasible::Group> groups;
  for (const ir::Infeasible::Holder& other : others) {
    groups.push_back({.bytes = other.bytes, .type = "", .kinds = "", .storages = {other.storage}});
  }
  for (auto& [key, members] : byType) {
    groups.push_back(toGroup(std::get<0>(key), std::get<1>(key), std::move(members)));
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (groups.size() > kMostGroups) groups.resize(kMostGroups);
  return groups;
}

}  // namespace stowage::planner
