// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/graph/graph_assembly.h"

#include <cctype>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "runtime/capture/graph/held_state.h"

namespace stowage::runtime {
namespace {

/// "aten.gelu.default" -> "gelu".
std::string shortName(const std::string& op) {
  const size_t first = op.find('.');
  const size_t last = op.rfind('.');
  return op.substr(first + 1, last - first - 1);
}

/// A name in the text form: letters, digits, '_' and '.'.
std::string identifier(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool legal = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    if (c == ')') continue;
    result += legal ? c : (c == '(' || c == '/' ? '.' : '_');
  }
  return result.empty() ? "value" : result;
}

/// Hands out names, each once: a name asked for again gets a number.
class UniqueNames {
 public:
  std::string claim(const std::string& wanted) {
    if (taken_.insert(wanted).second) return wanted;
    for (int& number = next_[wanted];; ++number) {
      std::string candidate = wanted + "." + std::to_string(number);
      if (taken_.insert(candidate).second) return candidate;
    }
  }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> next_;
};

class Assembler {
 public:
  Assembler(const StepRecord& record, const std::string& name, ir::Provenance provenance)
      : record_(record), builder_(name, std::move(provenance)) {
    valueOf_.resize(record.step.tensors.size());
  }

  AssembledGraph run() && {
    for (const KnownStorage& known : record_.known) addKnown(known);
    addScalars();
    for (size_t i = 0; i < record_.step.nodes.size(); ++i) addNode(i);
    for (const ir::ValueId report : record_.reports) markOutput(report);
    AssembledGraph assembled{.graph = holdStateBetweenSteps(std::move(builder_).finish()),
                             .keys = std::move(keys_),
                             .valueOf = std::move(valueOf_),
                             .firstValues = {}};
    for (const auto& [key, first] : firstValues_) assembled.firstValues.emplace(key, first.value);
    return assembled;
  }

 private:
  struct FirstValue {
    ir::TensorType type;
    ir::ValueId value;
  };

  void addKnown(const KnownStorage& known) {
    if (!known.persistent && known.role != ir::Role::kInput) {
      madeByNodes_.emplace(known.key, &known);
      return;
    }
    const ir::StorageId id = addStorage(known);
    const ir::ValueId value =
        builder_.addValue({.name = valueNames_.claim(identifier(builder_.storage(id).name)),
                           .storage = id,
                           .type = known.type});
    firstValues_.emplace(known.key, FirstValue{known.type, value});
  }

  ir::StorageId addStorage(const KnownStorage& known) {
    const StorageFacts* facts = record_.storages.find(known.key);
    ir::Storage storage;
    storage.name = storageNames_.claim(known.name);
    storage.bytes = Bytes(facts->bytes);
    storage.role = known.role;
    storage.home = facts->host ? ir::Space::kHost : ir::Space::kDevice;
    storage.persistent = known.persistent;
    storage.output = known.role == ir::Role::kGradient && record_.outputGradients;
    const ir::StorageId id = builder_.addStorage(std::move(storage));
    idOf_.emplace(known.key, id);
    keys_.push_back(known.key);
    return id;
  }

  void addScalars() {
    for (const ScalarSite& site : record_.stepScalars) {
      const HostNumber number = numberAt(record_.step, site);
      scalarIds_.push_back(builder_.addScalar({.name = "s" + std::to_string(scalarIds_.size()),
                                               .isInteger = number.isInteger,
                                               .value = number.value,
                                               .integer = number.integer}));
    }
  }

  bool isDropped(const TracedNode& node) const {
    if (!node.op->emptyFactory || node.results.size() != 1) return false;
    const StorageKey key = record_.step.tensors[node.results.front()].storage;
    const StorageFacts* facts = record_.storages.find(key);
    return facts != nullptr && facts->handFilled;
  }

  void addNode(size_t position) {
    const TracedNode& traced = record_.step.nodes[position];
    if (isDropped(traced)) return;
    current_ = position;
    ir::Node node;
    node.op = traced.op->name;
    node.args = traced.args;
    for (ir::Argument& argument : node.args) translate(argument);
    placeScalars(position, node);
    for (const ir::ValueId result : traced.results) {
      node.results.push_back(result.isValid() ? translate(result) : ir::ValueId());
    }
    for (const ir::Node::Write& write : traced.writes) {
      node.writes.push_back({.value = translate(write.value), .whole = write.whole});
    }
    node.phase = traced.phase;
    node.scope = builder_.internScope(record_.scopes[position]);
    builder_.addNode(std::move(node));
  }

  void translate(ir::Argument& argument) {
    if (auto* device = std::get_if<ir::EnumArg>(&argument)) {
      if (record_.onCpu && device->kind == "device") device->text = "cpu";
    }
    if (auto* value = std::get_if<ir::ValueArg>(&argument)) value->value = translate(value->value);
    if (auto* list = std::get_if<ir::ValueList>(&argument)) {
      for (ir::ValueArg& value : *list) {
        if (value.value.isValid()) value.value = translate(value.value);
      }
    }
  }

  ir::ValueId translate(ir::ValueId tensor) {
    ir::ValueId& value = valueOf_[tensor.index()];
    if (!value.isValid()) value = makeValue(record_.step.tensors[tensor]);
    return value;
  }

  ir::ValueId makeValue(const TracedTensor& tensor) {
    const auto known = firstValues_.find(tensor.storage);
    if (known != firstValues_.end() && known->second.type == tensor.type)
      return known->second.value;
    const ir::StorageId storage = storageOf(tensor.storage);
    std::string name = valueNames_.claim(identifier(builder_.storage(storage).name));
    return builder_.addValue({.name = std::move(name), .storage = storage, .type = tensor.type});
  }

  ir::StorageId storageOf(StorageKey key) {
    const auto existing = idOf_.find(key);
    if (existing != idOf_.end()) return existing->second;
    if (const auto known = madeByNodes_.find(key); known != madeByNodes_.end()) {
      return addStorage(*known->second);
    }
    const std::string& scope = record_.scopes[current_];
    const std::string op = shortName(record_.step.nodes[current_].op->name);
    return addStorage({.key = key,
                       .name = activationName(scope.empty() ? op : scope + "/" + op),
                       .role = ir::Role::kActivation,
                       .persistent = false,
                       .type = {},
                       .path = {}});
  }

  /// "h.3.mlp/gelu.0", counted per module and op.
  std::string activationName(const std::string& stem) {
    return stem + "." + std::to_string(activationCount_[stem]++);
  }

  void placeScalars(size_t position, ir::Node& node) {
    for (; nextScalar_ < record_.stepScalars.size(); ++nextScalar_) {
      const ScalarSite& site = record_.stepScalars[nextScalar_];
      if (site.node != position) return;
      const ir::ScalarId id = scalarIds_[nextScalar_];
      ir::Argument& argument = node.args[site.argument];
      if (auto* list = std::get_if<ir::NumberList>(&argument)) {
        (*list)[static_cast<size_t>(site.element)] = ir::ScalarArg{id};
      } else if (auto* wrapped = std::get_if<ir::WrappedNumberArg>(&argument)) {
        wrapped->value = id;
      } else {
        argument = ir::ScalarArg{id};
      }
    }
  }

  void markOutput(ir::ValueId report) {
    builder_.storage(builder_.value(translate(report)).storage).output = true;
  }

  const StepRecord& record_;
  ir::GraphBuilder builder_;
  std::vector<StorageKey> keys_;
  std::vector<ir::ValueId> valueOf_;
  std::unordered_map<StorageKey, ir::StorageId> idOf_;
  std::unordered_map<StorageKey, FirstValue> firstValues_;
  std::unordered_map<StorageKey, const KnownStorage*> madeByNodes_;
  std::vector<ir::ScalarId> scalarIds_;
  std::unordered_map<std::string, int> activationCount_;
  UniqueNames storageNames_, valueNames_;
  size_t nextScalar_ = 0;
  size_t current_ = 0;
};

}  // namespace

AssembledGraph assembleGraph(const StepRecord& record, const std::string& name,
                             ir::Provenance provenance) {
  return Assembler(record, name, std::move(provenance)).run();
}

}  // namespace stowage::runtime
