// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/sharded_states.h"

#include <llvm/ADT/EquivalenceClasses.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <map>
#include <utility>

#include "ir/base/affix.h"
#include "ir/graph/op_table.h"
#include "ir/graph/row_ops.h"
#include "passes/normalise/alike_ranks.h"
#include "passes/normalise/list_families.h"

namespace stowage::passes {

namespace {

constexpr const char* kListNorm = "aten._foreach_norm.Scalar";

/// "aten.add_.Tensor" -> "aten.add.Tensor".
std::string withoutInPlace(llvm::StringRef op) {
  const auto [head, overload] = op.rsplit('.');
  llvm::StringRef base = head;
  base.consume_back("_");
  return (base + "." + overload).str();
}

/// A memory format that a tensor of one dimension cannot have.
bool asksForDimensions(const ir::Argument& argument) {
  const auto* named = std::get_if<ir::EnumArg>(&argument);
  return named != nullptr && ir::startsWith(named->text, "channels_last");
}

/// Does element i of each result depend on element i of the operands alone?
bool isElementwise(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  if (llvm::any_of(node.args, asksForDimensions)) return false;
  if (findListLength(graph, id) > 0) return node.op != kListNorm;
  if (ir::lookUpOp(node.op).random) return false;
  const std::string op = withoutInPlace(node.op);
  return ir::lookUpRowOp(op).kind == ir::RowKind::kElementwise ||
         ir::lookUpOp(op).inPlaceOperand >= 0 || op == "aten.copy.default" ||
         op == "aten.zero.default" || op == "aten.fill.Scalar";
}

/// A number as captured; 0 for anything else.
double numberOf(const ir::Graph& graph, const ir::Argument& argument) {
  if (const auto* real = std::get_if<double>(&argument)) return *real;
  if (const auto* integer = std::get_if<int64_t>(&argument)) return static_cast<double>(*integer);
  const auto* scalar = std::get_if<ir::ScalarArg>(&argument);
  if (scalar == nullptr) return 0;
  const ir::StepScalar& value = graph.scalars()[scalar->scalar.index()];
  return value.isInteger ? static_cast<double>(value.integer) : value.value;
}

class RoleFinder {
 public:
  RoleFinder(const ir::Graph& graph, int64_t ranks)
      : graph_(graph),
        ranks_(ranks),
        roles_(graph.storages().size(), ShardRole::kNone),
        uses_(graph.storages().size()) {}

  ShardRoles find() {
    noteUses();
    for (size_t i = 0; i < graph_.nodes().size(); ++i) group(ir::NodeId(i));
    for (size_t i = 0; i < uses_.size(); ++i) checkStorage(ir::StorageId(i));
    for (const ir::Value& value : graph_.values()) checkValue(value);
    spreadBlocks();
    for (size_t i = 0; i < uses_.size(); ++i) setRole(ir::StorageId(i));
    return takeRoles();
  }

 private:
  struct Use {
    int64_t firstInUpdate = -1;  // nodes of the optimizer that access it
    int64_t lastOutside = -1;    // other nodes
    bool isWrittenOutside = false;
    int64_t firstWriteInUpdate = -1;
    bool isGrouped = false;
    std::string block;  // why it cannot be a shard
  };

  Use& useOf(ir::StorageId storage) { return uses_[storage.index()]; }
  const ir::Storage& storage(ir::StorageId id) const { return graph_.storage(id); }
  ir::StorageId storageOf(ir::ValueId value) const { return graph_.value(value).storage; }

  void noteUses() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const bool inUpdate = ir::updatesModel(graph_.nodes()[i].phase);
      for (const ir::Access& access : graph_.accesses(ir::NodeId(i))) {
        Use& use = useOf(access.storage);
        const auto at = static_cast<int64_t>(i);
        if (!inUpdate) use.lastOutside = at;
        if (inUpdate && use.firstInUpdate < 0) use.firstInUpdate = at;
        if (access.writes() && !inUpdate) use.isWrittenOutside = true;
        if (access.writes() && inUpdate && use.firstWriteInUpdate < 0) use.firstWriteInUpdate = at;
      }
    }
  }

  void block(ir::StorageId id, const std::string& why) {
    Use& use = useOf(id);
    if (use.block.empty()) use.block = why;
  }

  /// Storages of what an elementwise node treats together are one group; other nodes take theirs
  /// out of all groups.
  void group(ir::NodeId id) {
    const ir::Node& node = graph_.node(id);
    if (!ir::updatesModel(node.phase)) return;
    const bool isNorm = isNormOfMean(id);
    const bool isAlone = isElementwise(graph_, id);
    for (const std::vector<ir::ValueId>& element : elementsOf(node)) {
      ir::ValueId first;
      const bool isMixed = isAlone && mixesDimensions(node, element);
      for (const ir::ValueId value : element) {
        const ir::TensorType& type = graph_.value(value).type;
        if (type.numElements() < 2) continue;
        useOf(storageOf(value)).isGrouped = true;
        if (!first.isValid()) first = value;
        groups_.unionSets(storageOf(first).index(), storageOf(value).index());
        const bool isLike = type.sizes == graph_.value(first).type.sizes;
        if (isNorm || (isAlone && isLike && !isMixed)) continue;
        block(storageOf(value), graph_.describeNode(id) + " is no update element by element");
      }
    }
  }

  /// Does it make or write one element from many here, or give one more than one dimension, in
  /// which a shard has none?
  bool mixesDimensions(const ir::Node& node, llvm::ArrayRef<ir::ValueId> element) const {
    const auto isOne = [&](ir::ValueId value) {
      return graph_.value(value).type.numElements() < 2;
    };
    const auto isMade = [&](ir::ValueId value) {
      return llvm::is_contained(node.results, value) ||
             llvm::any_of(node.writes,
                          [&](const ir::Node::Write& write) { return write.value == value; });
    };
    if (llvm::all_of(element, isOne)) return false;
    return llvm::any_of(element, [&](ir::ValueId value) {
      return isOne(value) && (isMade(value) || graph_.value(value).type.sizes.size() > 1);
    });
  }

  /// Norms of what a gradient's mean is, while it is that: zeros beyond its end add nothing.
  bool isNormOfMean(ir::NodeId id) {
    const ir::Node& node = graph_.node(id);
    if (!isWholeNorm(graph_, node)) return false;
    bool isOfMean = true;
    ir::forEachTensorArgument(node, [&](ir::ValueId value) {
      const Use& use = useOf(storageOf(value));
      const bool isChanged =
          use.firstWriteInUpdate >= 0 && use.firstWriteInUpdate < static_cast<int64_t>(id.index());
      isOfMean = isOfMean && isMadeOutside(storageOf(value)) && !isChanged;
    });
    return isOfMean;
  }

  void checkStorage(ir::StorageId id) {
    const Use& use = useOf(id);
    if (!use.isGrouped) return;
    const ir::Storage& info = storage(id);
    const bool isParameter = info.role == ir::Role::kParameter;
    if (info.role == ir::Role::kInput || info.output) block(id, "it comes in or goes out whole");
    if (info.home != ir::Space::kDevice) block(id, "it is a tensor of the host");
    const bool isRead = use.lastOutside >= 0;
    if (info.persistent && isRead && (!isParameter || use.isWrittenOutside)) {
      block(id, "forward or backward use or write it");
    }
    if (isRead && use.lastOutside > use.firstInUpdate) {
      block(id, "its update comes before it is last used");
    }
  }

  void checkValue(const ir::Value& value) {
    const Use& use = useOf(value.storage);
    if (!use.isGrouped) return;
    const bool isGathered = use.lastOutside >= 0;
    const auto [entry, isNew] = dtypes_.emplace(value.storage, value.type.dtype);
    if (!isNew && entry->second != value.type.dtype) {
      block(value.storage, "it has values of two types");
    }
    if (!isGathered && !isFlat(value)) block(value.storage, "an update reads a part of it");
  }

  /// All of its storage, row-major.
  bool isFlat(const ir::Value& value) const {
    return value.type.isContiguous() && value.type.covers(storage(value.storage).bytes);
  }

  /// One that cannot be a shard keeps its group from it; so do sizes, and values in the update.
  void spreadBlocks() {
    for (const ir::Node& node : graph_.nodes()) {
      if (!ir::updatesModel(node.phase)) continue;
      ir::forEachTensorArgument(node, [&](ir::ValueId id) {
        const ir::Value& value = graph_.value(id);
        if (useOf(value.storage).isGrouped && !isFlat(value)) {
          block(value.storage, "an update reads a part of it, or in another order than memory's");
        }
      });
    }
    for (auto group = groups_.begin(); group != groups_.end(); ++group) {
      if (!group->isLeader()) continue;
      std::string why;
      bool hasParameter = false;
      int64_t elements = -1;
      for (const size_t member :
           llvm::make_range(groups_.member_begin(group), groups_.member_end())) {
        const ir::StorageId id(member);
        hasParameter = hasParameter || storage(id).role == ir::Role::kParameter;
        if (why.empty()) why = uses_[member].block;
        const int64_t own = storage(id).bytes.value() / ir::elementBytes(dtypes_.at(id));
        if (why.empty() && elements >= 0 && own != elements) why = "its update has another size";
        elements = own;
      }
      if (why.empty() && elements < ranks_) why = "it has fewer elements than there are ranks";
      if (!hasParameter) why = "no parameter is updated with it";
      for (const size_t member :
           llvm::make_range(groups_.member_begin(group), groups_.member_end())) {
        uses_[member].block = why;
      }
    }
  }

  bool isMadeOutside(ir::StorageId id) {
    return !storage(id).persistent && useOf(id).isWrittenOutside;
  }

  void setRole(ir::StorageId id) {
    const Use& use = useOf(id);
    ShardRole& role = roles_[id.index()];
    const bool isShard = use.isGrouped && use.block.empty();
    if (isMadeOutside(id)) {
      if (use.firstInUpdate >= 0) role = isShard ? ShardRole::kGradient : ShardRole::kMean;
    } else if (isShard) {
      const bool isGathered = storage(id).role == ir::Role::kParameter && use.lastOutside >= 0;
      role = isGathered ? ShardRole::kParameter : ShardRole::kOfUpdate;
    }
  }

  ShardRoles takeRoles() {
    ShardRoles found;
    for (size_t i = 0; i < uses_.size(); ++i) {
      const ir::Storage& info = graph_.storages()[i];
      const bool isUpdated = uses_[i].firstWriteInUpdate >= 0 && info.role == ir::Role::kParameter;
      if (!isUpdated || roles_[i] != ShardRole::kNone) continue;
      ++found.whole;
      if (found.whole > 1) continue;
      found.firstWhole = "'" + info.name + "' stays whole: " +
                         (uses_[i].block.empty() ? "it has no two elements" : uses_[i].block);
    }
    found.of = std::move(roles_);
    return found;
  }

  const ir::Graph& graph_;
  int64_t ranks_;
  std::vector<ShardRole> roles_;
  std::vector<Use> uses_;
  std::map<ir::StorageId, ir::DType> dtypes_;
  llvm::EquivalenceClasses<size_t> groups_;
};

}  // namespace

ir::Expected<ShardRoles> findShardRoles(const ir::Graph& graph, int64_t ranks) {
  if (ir::Error error = checkRanksStayAlike(graph)) return error;
  return RoleFinder(graph, ranks).find();
}

std::vector<std::vector<ir::ValueId>> elementsOf(const ir::Node& node) {
  size_t length = 0;
  for (const ir::Argument& argument : node.args) {
    const auto* list = std::get_if<ir::ValueList>(&argument);
    if (list != nullptr) length = std::max(length, list->size());
  }
  std::vector<std::vector<ir::ValueId>> elements(std::max<size_t>(length, 1));
  const auto add = [&](size_t at, ir::ValueId value) {
    if (value.isValid()) elements[at].push_back(value);
  };
  for (const ir::Argument& argument : node.args) {
    if (const auto* single = std::get_if<ir::ValueArg>(&argument)) {
      for (size_t i = 0; i < elements.size(); ++i) add(i, single->value);
    } else if (const auto* list = std::get_if<ir::ValueList>(&argument)) {
      for (size_t i = 0; i < list->size(); ++i) add(i, (*list)[i].value);
    }
  }
  const bool isPerElement = node.results.size() == elements.size();
  for (size_t i = 0; i < node.results.size(); ++i) add(isPerElement ? i : 0, node.results[i]);
  return elements;
}

bool isWholeNorm(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != kListNorm && node.op != "aten.norm.Scalar" &&
      node.op != "aten.linalg_vector_norm.default") {
    return false;
  }
  // Others are no sums of powers, or zeros beyond the end would count.
  if (node.args.size() < 2 || !(numberOf(graph, node.args[1]) > 0)) return false;
  const bool isOfDimensions = node.op == "aten.linalg_vector_norm.default" &&
                              !std::holds_alternative<ir::NoneArg>(node.args[2]);
  if (isOfDimensions || node.results.size() != elementsOf(node).size()) return false;
  return llvm::all_of(node.results, [&](ir::ValueId result) {
    return result.isValid() && graph.value(result).type.sizes.empty();
  });
}

}  // namespace stowage::passes
