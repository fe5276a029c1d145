// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/graph.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <type_traits>
#include <utility>

#include "ir/base/printable.h"

namespace stowage::ir {

namespace {

constexpr std::array<const char*, 13> kRoleNames = {
    "parameter", "frozen", "buffer",     "gradient", "state",  "master", "step_counter",
    "rng",       "input",  "activation", "constant", "output", "pending"};
static_assert(static_cast<size_t>(Role::kPending) + 1 == kRoleNames.size());

constexpr std::array<const char*, 4> kPhaseNames = {"forward", "backward", "optimizer", "deferred"};
static_assert(static_cast<size_t>(Phase::kDeferred) + 1 == kPhaseNames.size());

template <typename Enum, size_t kCount>
std::optional<Enum> findByName(const std::array<const char*, kCount>& names, llvm::StringRef name) {
  for (size_t i = 0; i < kCount; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

// How a node uses one storage, before versions are known.
struct Use {
  StorageId storage;
  bool reads = false;
  bool writes = false;
};

// Collects the uses of one node after another, in order of first appearance. Slots are remembered
// per storage and node, so that a node costs what its operands cost and no more.
class UseCollector {
 public:
  UseCollector(llvm::ArrayRef<Value> values, size_t storageCount)
      : values_(values), lastNode_(storageCount, -1), slot_(storageCount, 0) {}

  const std::vector<Use>& collect(const Node& node) {
    ++currentNode_;
    uses_.clear();
    pendingWhole_.clear();
    for (const Node::Write& write : node.writes) {
      if (write.whole) pendingWhole_.insert(write.value.raw());
    }
    forEachTensorArgument(node, [&](ValueId id) { addArgument(id); });
    const size_t argumentUses = uses_.size();
    for (const Node::Write& write : node.writes) {
      if (Use* use = findUse(write.value)) use->writes = true;
    }
    for (const ValueId id : node.results) {
      Use* use = findUse(id);
      if (use == nullptr) continue;
      const bool fresh = static_cast<size_t>(use - uses_.data()) >= argumentUses;
      if (fresh) use->writes = true;
    }
    return uses_;
  }

 private:
  // The first time that a whole-write target appears it is only a target; every other appearance of
  // a value is a read.
  void addArgument(ValueId id) {
    Use* use = findUse(id);
    if (use != nullptr && !pendingWhole_.erase(id.raw())) use->reads = true;
  }

  Use* findUse(ValueId id) {
    if (!id.isValid() || id.index() >= values_.size()) return nullptr;
    const StorageId storage = values_[id.index()].storage;
    if (!storage.isValid() || storage.index() >= slot_.size()) return nullptr;
    if (lastNode_[storage.index()] != currentNode_) {
      lastNode_[storage.index()] = currentNode_;
      slot_[storage.index()] = uses_.size();
      uses_.push_back({.storage = storage});
    }
    return &uses_[slot_[storage.index()]];
  }

  llvm::ArrayRef<Value> values_;
  std::vector<int64_t> lastNode_;
  std::vector<size_t> slot_;
  std::vector<Use> uses_;
  llvm::SmallDenseSet<int32_t, 4> pendingWhole_;
  int64_t currentNode_ = -1;
};

// The text form marks writes where arguments stand, so their order is that of the arguments.
void sortWritesByArgument(Node& node) {
  if (node.writes.size() < 2) return;
  llvm::SmallDenseMap<int32_t, size_t, 8> position;
  size_t next = 0;
  forEachTensorArgument(node, [&](ValueId id) { position.try_emplace(id.raw(), next++); });
  const auto rank = [&](const Node::Write& write) {
    const auto entry = position.find(write.value.raw());
    return entry == position.end() ? next : entry->second;
  };
  llvm::stable_sort(node.writes,
                    [&](const Node::Write& a, const Node::Write& b) { return rank(a) < rank(b); });
}

}  // namespace

const char* roleName(Role role) { return kRoleNames[static_cast<size_t>(role)]; }
std::optional<Role> findRole(llvm::StringRef name) { return findByName<Role>(kRoleNames, name); }

const char* phaseName(Phase phase) { return kPhaseNames[static_cast<size_t>(phase)]; }
std::optional<Phase> findPhase(llvm::StringRef name) {
  return findByName<Phase>(kPhaseNames, name);
}

bool isPersistentByDefault(Role role) {
  switch (role) {
    case Role::kParameter:
    case Role::kFrozen:
    case Role::kBuffer:
    case Role::kState:
    case Role::kMaster:
    case Role::kStepCounter:
    case Role::kRng:
    case Role::kConstant:
    case Role::kPending:
      return true;
    default:
      return false;
  }
}

llvm::StringRef Graph::scope(const Node& node) const {
  return node.scope.isValid() ? llvm::StringRef(scopes_[node.scope.index()]) : llvm::StringRef();
}

llvm::ArrayRef<Access> Graph::accesses(NodeId id) const {
  const uint32_t begin = firstAccess_[id.index()];
  const uint32_t end = firstAccess_[id.index() + 1];
  return llvm::ArrayRef<Access>(accesses_).slice(begin, end - begin);
}

std::string Graph::describeNode(NodeId id) const {
  const Node& described = node(id);
  std::string text = described.op + " (";
  if (const llvm::StringRef path = scope(described); !path.empty()) {
    text += printable(path) + ", ";
  }
  return text + phaseName(described.phase) + ")";
}

namespace {

/// Arguments of nodes, numbers bit by bit; a NaN is as good as another.
struct SameArguments {
  static bool same(double a, double b) {
    if (std::isnan(a) && std::isnan(b)) return true;
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  }
  static bool same(const ComplexArg& a, const ComplexArg& b) {
    return same(a.real, b.real) && same(a.imaginary, b.imaginary);
  }
  static bool same(const WrappedNumberArg& a, const WrappedNumberArg& b) {
    return a.dtype == b.dtype && same(a.value, b.value);
  }
  template <typename... Kinds>
  static bool same(const std::variant<Kinds...>& a, const std::variant<Kinds...>& b) {
    if (a.index() != b.index()) return false;
    return std::visit(
        [&](const auto& left) { return same(left, std::get<std::decay_t<decltype(left)>>(b)); }, a);
  }
  template <typename Element>
  static bool same(const std::vector<Element>& a, const std::vector<Element>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Element& x, const Element& y) { return same(x, y); });
  }
  template <typename Other>
  static bool same(const Other& a, const Other& b) {
    return a == b;
  }
};

}  // namespace

bool operator==(const Graph& a, const Graph& b) {
  if (a.name_ != b.name_ || a.provenance_ != b.provenance_ || a.ranks_ != b.ranks_ ||
      a.storages_ != b.storages_ || a.values_ != b.values_ || a.scalars_ != b.scalars_ ||
      a.nodes_.size() != b.nodes_.size()) {
    return false;
  }
  for (size_t i = 0; i < a.nodes_.size(); ++i) {
    const Node& left = a.nodes_[i];
    const Node& right = b.nodes_[i];
    if (left.op != right.op || !SameArguments::same(left.args, right.args) ||
        left.results != right.results || left.writes != right.writes || left.phase != right.phase ||
        left.onHost != right.onHost || a.scope(left) != b.scope(right)) {
      return false;
    }
  }
  return true;
}

GraphBuilder::GraphBuilder(std::string name, Provenance provenance) {
  graph_.name_ = std::move(name);
  graph_.provenance_ = std::move(provenance);
}

GraphBuilder::GraphBuilder(const Graph& graph) : graph_(graph) {
  graph_.nodes_.clear();
  graph_.accesses_.clear();
  graph_.firstAccess_.clear();
  graph_.lastVersion_.clear();
  for (size_t i = 0; i < graph_.scopes_.size(); ++i) scopeIds_[graph_.scopes_[i]] = ScopeId(i);
}

StorageId GraphBuilder::addStorage(Storage storage) {
  graph_.storages_.push_back(std::move(storage));
  return StorageId(graph_.storages_.size() - 1);
}

ValueId GraphBuilder::addValue(Value value) {
  graph_.values_.push_back(std::move(value));
  return ValueId(graph_.values_.size() - 1);
}

ScalarId GraphBuilder::addScalar(StepScalar scalar) {
  graph_.scalars_.push_back(std::move(scalar));
  return ScalarId(graph_.scalars_.size() - 1);
}

ScopeId GraphBuilder::internScope(llvm::StringRef path) {
  if (path.empty()) return ScopeId();
  const auto [entry, isNew] = scopeIds_.try_emplace(path, ScopeId(graph_.scopes_.size()));
  if (isNew) graph_.scopes_.push_back(path.str());
  return entry->second;
}

NodeId GraphBuilder::addNode(Node node) {
  sortWritesByArgument(node);
  graph_.nodes_.push_back(std::move(node));
  return NodeId(graph_.nodes_.size() - 1);
}

Graph GraphBuilder::finish() && {
  std::vector<int32_t> version(graph_.storages_.size(), 0);
  UseCollector collector(graph_.values_, graph_.storages_.size());
  graph_.accesses_.clear();
  graph_.firstAccess_.assign(1, 0);
  for (const Node& node : graph_.nodes_) {
    for (const Use& use : collector.collect(node)) {
      int32_t& current = version[use.storage.index()];
      Access access{.storage = use.storage};
      if (use.reads) access.readVersion = current;
      if (use.writes) {
        access.writtenVersion = ++current;
        access.whole = !use.reads;
      }
      graph_.accesses_.push_back(access);
    }
    graph_.firstAccess_.push_back(static_cast<uint32_t>(graph_.accesses_.size()));
  }
  graph_.lastVersion_ = std::move(version);
  return std::move(graph_);
}

std::optional<ScalarId> firstStepScalar(const Node& node) {
  for (const Argument& argument : node.args) {
    if (const auto* single = std::get_if<ScalarArg>(&argument)) return single->scalar;
    if (const auto* wrapped = std::get_if<WrappedNumberArg>(&argument)) {
      if (const auto* scalar = std::get_if<ScalarId>(&wrapped->value)) return *scalar;
    } else if (const auto* list = std::get_if<NumberList>(&argument)) {
      for (const auto& element : *list) {
        if (const auto* scalar = std::get_if<ScalarArg>(&element)) return scalar->scalar;
      }
    }
  }
  return std::nullopt;
}

}  // namespace stowage::ir
