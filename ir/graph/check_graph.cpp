// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/check_graph.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringSet.h>

#include <utility>

#include "ir/base/identifier.h"
#include "ir/base/overloaded.h"
#include "ir/graph/host_updates.h"

namespace stowage::ir {

namespace {

bool mustPersist(Role role) {
  return role == Role::kParameter || role == Role::kFrozen || role == Role::kState ||
         role == Role::kMaster || role == Role::kStepCounter || role == Role::kConstant ||
         role == Role::kPending;
}

bool mustNotPersist(Role role) {
  return role == Role::kInput || role == Role::kActivation || role == Role::kOutput;
}

bool isEnumKind(llvm::StringRef kind) {
  return kind == "dtype" || kind == "device" || kind == "layout" || kind == "memory_format";
}

// "f32", "cuda:0"
bool isEnumText(llvm::StringRef text) {
  const auto [name, number] = text.split(':');
  const bool plain =
      !text.contains(':') || (!number.empty() && llvm::all_of(number, llvm::isDigit));
  return isIdentifier(name) && !llvm::isDigit(name.front()) && plain;
}

// Every byte from the storage's base to the end of the tensor belongs to exactly one element.
bool coversWithoutGaps(const TensorType& type) {
  if (type.offset != 0) return false;
  llvm::SmallVector<std::pair<int64_t, int64_t>, 4> dimensions;  // stride, size
  for (size_t i = 0; i < type.sizes.size(); ++i) {
    if (type.sizes[i] == 0) return true;
    if (type.sizes[i] != 1) dimensions.emplace_back(type.strides[i], type.sizes[i]);
  }
  llvm::sort(dimensions);
  int64_t expected = 1;
  for (const auto& [stride, size] : dimensions) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

class GraphChecker {
 public:
  explicit GraphChecker(const Graph& graph) : graph_(graph) {}

  Error check() {
    if (!isIdentifier(graph_.name())) add("the graph's name '" + graph_.name() + "' is no name");
    checkScalars();
    if (graph_.ranks() < 1 || graph_.ranks() > kMostRanks) {
      add("the graph is for " + std::to_string(graph_.ranks()) + " ranks, expected 1 to " +
          std::to_string(kMostRanks));
    }
    checkStorages();
    checkValues();
    // Versions exist only for references that do.
    if (notes_.empty()) {
      for (size_t i = 0; i < graph_.nodes().size(); ++i) checkReferences(NodeId(i));
    }
    if (notes_.empty()) {
      for (size_t i = 0; i < graph_.nodes().size(); ++i) checkNode(NodeId(i));
      checkOutputs();
      checkHostNodes();
    }
    if (notes_.empty()) return success();
    PlanError error(ErrorCode::kInvalidIr, "graph @" + graph_.name() + " breaks " +
                                               std::to_string(notes_.size()) +
                                               (notes_.size() == 1 ? " invariant" : " invariants"));
    for (std::string& note : notes_) error.note(std::move(note));
    return makeError(std::move(error));
  }

 private:
  void add(std::string note) { notes_.push_back(std::move(note)); }

  static std::string nameOf(const Storage& storage) { return "storage \"" + storage.name + "\""; }
  std::string nameOf(ValueId id) const { return "%" + graph_.value(id).name; }
  std::string nameOf(NodeId id) const {
    return "n" + std::to_string(id.raw()) + " " + graph_.describeNode(id);
  }

  void checkScalars() {
    llvm::StringSet<> names;
    for (const StepScalar& scalar : graph_.scalars()) {
      if (!isIdentifier(scalar.name)) add("step scalar '#" + scalar.name + "' has no valid name");
      if (!names.insert(scalar.name).second) add("two step scalars are called #" + scalar.name);
    }
  }

  void checkStorages() {
    llvm::StringSet<> names;
    std::vector<bool> hasValue(graph_.storages().size(), false);
    for (const Value& value : graph_.values()) {
      if (isIn(value.storage, hasValue.size())) hasValue[value.storage.index()] = true;
    }
    for (size_t i = 0; i < graph_.storages().size(); ++i) {
      const Storage& storage = graph_.storages()[i];
      if (storage.name.empty()) add("storage " + std::to_string(i) + " has no name");
      if (!names.insert(storage.name).second)
        add("two storages are called \"" + storage.name + "\"");
      if (!hasValue[i]) add(nameOf(storage) + " has no value");
      checkStorage(storage);
    }
  }

  void checkStorage(const Storage& storage) {
    const std::string name = nameOf(storage);
    const std::string role = std::string(" of role ") + roleName(storage.role);
    if (storage.bytes < Bytes(0)) add(name + " has a negative size");
    if (storage.home == Space::kDisk) add(name + " has its home on disk, expected device or host");
    if (storage.home == Space::kHost && storage.bytes > kMaxHostStorageBytes) {
      add(name + " stays on the host with " + std::to_string(storage.bytes.value()) +
          " bytes, expected at most " + std::to_string(kMaxHostStorageBytes.value()));
    }
    if (mustPersist(storage.role) && !storage.persistent) {
      add(name + role + " does not persist from step to step");
    }
    if (mustNotPersist(storage.role) && storage.persistent) {
      add(name + role + " persists from step to step");
    }
    if (storage.role == Role::kOutput && !storage.output) {
      add(name + role + " is not delivered after the step");
    }
    if (storage.role == Role::kInput && storage.output) {
      add(name + role + " is delivered after the step");
    }
    if (storage.shardOf) checkShard(storage);
  }

  void checkShard(const Storage& storage) {
    const std::string name = nameOf(storage);
    if (graph_.ranks() == 1) add(name + " is a shard in a graph for one rank");
    if (!isState(storage)) add(name + " is a shard and no state that persists");
    const TensorType& whole = *storage.shardOf;
    const std::optional<Bytes> bytes = whole.findExtentBytes();
    if (!bytes || whole.offset != 0 || !whole.isDense()) {
      add(name + " is a shard of a tensor with gaps, or of one that is none");
      return;
    }
    const int64_t each = bytes->value() / graph_.ranks() + (bytes->value() % graph_.ranks() != 0);
    if (storage.bytes < Bytes(each) || storage.bytes.value() % elementBytes(whole.dtype) != 0) {
      add(name + " has " + std::to_string(storage.bytes.value()) + " bytes on each of " +
          std::to_string(graph_.ranks()) + " ranks, expected enough whole elements for the " +
          std::to_string(bytes->value()) + " bytes of its tensor");
    }
  }

  void checkValues() {
    llvm::StringSet<> names;
    for (const Value& value : graph_.values()) {
      if (!isIdentifier(value.name)) add("value '%" + value.name + "' has no valid name");
      if (!names.insert(value.name).second) add("two values are called %" + value.name);
      if (!isIn(value.storage, graph_.storages().size())) {
        add("%" + value.name + " views a storage that does not exist");
        continue;
      }
      const Storage& storage = graph_.storage(value.storage);
      const std::optional<Bytes> extent = value.type.findExtentBytes();
      if (!extent) {
        add("%" + value.name +
            " has a malformed type (strides and sizes that differ in number, something negative, "
            "or an overflow)");
      } else if (*extent > storage.bytes) {
        add("%" + value.name + " ends at byte " + std::to_string(extent->value()) + " of " +
            nameOf(storage) + ", which has " + std::to_string(storage.bytes.value()));
      }
    }
  }

  template <typename Tag>
  static bool isIn(Id<Tag> id, size_t count) {
    return id.isValid() && id.index() < count;
  }
  bool isValue(ValueId id) const { return isIn(id, graph_.values().size()); }
  bool isScalar(ScalarId id) const { return isIn(id, graph_.scalars().size()); }

  void checkReferences(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.scope.isValid() && node.scope.index() >= graph_.scopes().size()) {
      return add("n" + std::to_string(id.raw()) + " " + node.op +
                 " has a scope that does not exist");
    }
    if (!isIdentifier(node.op) || !llvm::StringRef(node.op).contains('.')) {
      add(nameOf(id) + ": expected an op like aten.mm.default");
    }
    for (const Argument& argument : node.args) {
      if (!isWellFormed(argument)) {
        add(nameOf(id) + " has an argument that refers to nothing or has no spelling");
      }
    }
    for (const ValueId result : node.results) {
      if (result.isValid() && !isValue(result)) {
        add(nameOf(id) + " has a result that does not exist");
      }
    }
    checkWrites(id);
  }

  bool isWellFormed(const Argument& argument) const {
    return std::visit(Overloaded{[&](const ScalarArg& scalar) { return isScalar(scalar.scalar); },
                                 [&](const EnumArg& argument) {
                                   return isEnumKind(argument.kind) && isEnumText(argument.text);
                                 },
                                 [&](const WrappedNumberArg& number) {
                                   const auto* scalar = std::get_if<ScalarId>(&number.value);
                                   return scalar == nullptr || isScalar(*scalar);
                                 },
                                 [&](const ValueArg& value) { return isValue(value.value); },
                                 [&](const ValueList& values) {
                                   return llvm::all_of(values, [&](const ValueArg& value) {
                                     return !value.value.isValid() || isValue(value.value);
                                   });
                                 },
                                 [&](const NumberList& numbers) {
                                   return llvm::all_of(numbers, [&](const auto& number) {
                                     const auto* scalar = std::get_if<ScalarArg>(&number);
                                     return scalar == nullptr || isScalar(scalar->scalar);
                                   });
                                 },
                                 [](const auto&) { return true; }},
                      argument);
  }

  void checkWrites(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.writes.empty()) return;
    llvm::SmallDenseSet<int32_t, 8> passed;
    llvm::SmallDenseSet<int32_t, 8> written;
    forEachTensorArgument(node, [&](ValueId value) { passed.insert(value.raw()); });
    for (const Node::Write& write : node.writes) {
      if (!isValue(write.value) || !passed.contains(write.value.raw())) {
        add(nameOf(id) + " writes a value that is none of its arguments");
      } else if (!written.insert(write.value.raw()).second) {
        add(nameOf(id) + " lists the write of " + nameOf(write.value) + " twice");
      }
    }
  }

  void checkNode(NodeId id) {
    const Node& node = graph_.node(id);
    for (const Node::Write& write : node.writes) {
      if (write.whole) checkWhole(id, write.value);
    }
    llvm::SmallDenseSet<int32_t, 8> passed;
    forEachTensorArgument(node,
                          [&](ValueId value) { passed.insert(graph_.value(value).storage.raw()); });
    for (const Access& access : graph_.accesses(id)) {
      checkAccess(id, access, passed.contains(access.storage.raw()));
    }
  }

  void checkWhole(NodeId id, ValueId value) {
    const Storage& storage = graph_.storage(graph_.value(value).storage);
    const TensorType& type = graph_.value(value).type;
    if (type.extentBytes() == storage.bytes && coversWithoutGaps(type)) return;
    add(nameOf(id) + " writes " + nameOf(storage) + " whole through " + nameOf(value) +
        ", which does not cover it");
  }

  void checkAccess(NodeId id, const Access& access, bool isArgument) {
    const Storage& storage = graph_.storage(access.storage);
    const bool isFilled = storage.persistent || storage.role == Role::kInput;
    if (access.readVersion == 0 && !isFilled) {
      add(nameOf(id) + " reads " + nameOf(storage) + " before anything wrote it");
    }
    if (!access.writes()) return;
    if (storage.role == Role::kFrozen) add(nameOf(id) + " writes frozen " + nameOf(storage));
    if (isArgument || storage.role == Role::kPending) return;
    if (isFilled) {
      add(nameOf(id) + " makes " + nameOf(storage) +
          " as a new result, but it holds bytes when the step begins");
    } else if (access.writtenVersion != 1) {
      add(nameOf(id) + " makes " + nameOf(storage) +
          " as a new result, but an earlier node wrote it");
    }
  }

  void checkOutputs() {
    for (size_t i = 0; i < graph_.storages().size(); ++i) {
      const Storage& storage = graph_.storages()[i];
      if (storage.output && graph_.lastVersion(StorageId(i)) == 0) {
        add(nameOf(storage) + " is delivered after the step, but no node writes it");
      }
    }
  }

  void checkHostNodes() {
    const std::vector<bool> onHost = nodesOnHost(graph_);
    if (!llvm::is_contained(onHost, true)) return;
    for (auto& [id, fault] : findHostFaults(graph_, onHost)) {
      add(nameOf(id) + " cannot run on the host: it " + fault);
    }
  }

  const Graph& graph_;
  std::vector<std::string> notes_;
};

}  // namespace

Error checkGraph(const Graph& graph) { return GraphChecker(graph).check(); }

}  // namespace stowage::ir
