// SPDX-License-Identifier: Apache-2.0
#include "tests/support/abstract_run.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "ir/graph/op_table.h"

namespace stowage::tests {

namespace {

using Hash = uint64_t;

Hash mix(Hash a, Hash b) {
  Hash mixed = a * 0x9e3779b97f4a7c15 + b + 0x632be59bd9b4e019;
  mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9;
  return mixed ^ (mixed >> 32);
}

Hash hashOf(const std::string& text) {
  Hash hash = text.size();
  for (const char c : text) hash = mix(hash, static_cast<unsigned char>(c));
  return hash;
}

Hash hashOf(const ir::TensorType& type) {
  Hash hash = mix(static_cast<Hash>(type.dtype), static_cast<Hash>(type.offset));
  for (const int64_t size : type.sizes) hash = mix(hash, static_cast<Hash>(size));
  for (const int64_t stride : type.strides) hash = mix(hash, static_cast<Hash>(stride));
  return hash;
}

bool isListOp(const ir::Node& node) {
  return node.op.rfind("aten._foreach_", 0) == 0 || node.op.rfind("aten._fused_", 0) == 0 ||
         node.op.rfind("aten._amp_foreach_", 0) == 0;
}

class AbstractRun {
 public:
  explicit AbstractRun(const ir::Graph& graph) : graph_(graph) {
    for (const ir::Storage& storage : graph.storages()) {
      holds_.push_back(storage.persistent ? hashOf(storage.name) : 0);
    }
  }

  std::map<std::string, uint64_t> run(int steps) {
    for (int step = 0; step < steps; ++step) runStep(step);
    for (const ir::Node& node : graph_.nodes()) {
      if (node.phase == ir::Phase::kDeferred) runNode(node, steps - 1);
    }
    for (size_t i = 0; i < holds_.size(); ++i) {
      const ir::Storage& storage = graph_.storages()[i];
      if (ir::isState(storage)) results_[storage.name] = holds_[i];
    }
    return std::move(results_);
  }

 private:
  void runStep(int step) {
    for (size_t i = 0; i < holds_.size(); ++i) {
      const ir::Storage& storage = graph_.storages()[i];
      if (storage.role == ir::Role::kInput) {
        holds_[i] = mix(hashOf(storage.name), static_cast<Hash>(step));
      } else if (!storage.persistent) {
        holds_[i] = 0;
      }
    }
    for (const ir::Node& node : graph_.nodes()) {
      const bool isDeferred = node.phase == ir::Phase::kDeferred;
      if (!isDeferred) runNode(node, step);
      if (isDeferred && step > 0) runNode(node, step - 1);
    }
    for (size_t i = 0; i < holds_.size(); ++i) {
      const ir::Storage& storage = graph_.storages()[i];
      if (storage.output) results_[storage.name + " of " + std::to_string(step)] = holds_[i];
    }
  }

  /// With the step scalars of a step.
  void runNode(const ir::Node& node, int step) {
    scalarStep_ = static_cast<Hash>(step);
    const size_t length = isListOp(node) ? listLength(node) : 0;
    if (length > 0) {
      runList(node, length);
    } else {
      runWhole(node);
    }
  }

  static size_t listLength(const ir::Node& node) {
    size_t length = 0;
    for (const ir::Argument& argument : node.args) {
      if (const auto* list = std::get_if<ir::ValueList>(&argument)) {
        length = std::max(length, list->size());
      }
    }
    return length;
  }

  Hash& holds(ir::ValueId value) { return holds_[graph_.value(value).storage.index()]; }

  const ir::Node::Write* findWrite(const ir::Node& node, ir::ValueId value) const {
    const auto* found = std::find_if(node.writes.begin(), node.writes.end(),
                                     [&](const auto& write) { return write.value == value; });
    return found == node.writes.end() ? nullptr : found;
  }

  /// What an operand adds to the hash: its type, and what it holds unless it is overwritten whole.
  Hash readValue(const ir::Node& node, ir::ValueId value) {
    if (!value.isValid()) return 1;
    const ir::Node::Write* write = findWrite(node, value);
    const Hash held = write != nullptr && write->whole ? 2 : holds(value);
    return mix(hashOf(graph_.value(value).type), held);
  }

  Hash number(const std::variant<bool, int64_t, double, ir::ScalarArg>& element) const {
    if (const auto* real = std::get_if<double>(&element)) return std::bit_cast<Hash>(*real);
    if (const auto* integer = std::get_if<int64_t>(&element)) return static_cast<Hash>(*integer);
    if (const auto* scalar = std::get_if<ir::ScalarArg>(&element)) return hashOf(scalar->scalar);
    return std::get<bool>(element) ? 3 : 4;
  }

  Hash hashOf(ir::ScalarId scalar) const {
    return mix(tests::hashOf(graph_.scalars()[scalar.index()].name), scalarStep_);
  }
  static Hash hashOf(const std::string& text) { return tests::hashOf(text); }
  static Hash hashOf(const ir::TensorType& type) { return tests::hashOf(type); }

  /// An argument; of lists the elements [begin, end) only. Tensors that a list op changes beside
  /// its lists collect what all elements give, so no element sees them.
  Hash readArgument(const ir::Node& node, const ir::Argument& argument, size_t begin, size_t end,
                    bool inList) {
    if (const auto* value = std::get_if<ir::ValueArg>(&argument)) {
      const bool collects = inList && findWrite(node, value->value) != nullptr;
      return collects ? 5 : readValue(node, value->value);
    }
    Hash hash = argument.index();
    if (const auto* values = std::get_if<ir::ValueList>(&argument)) {
      for (size_t i = begin; i < std::min(end, values->size()); ++i) {
        hash = mix(hash, readValue(node, (*values)[i].value));
      }
    } else if (const auto* numbers = std::get_if<ir::NumberList>(&argument)) {
      for (size_t i = begin; i < std::min(end, numbers->size()); ++i) {
        hash = mix(hash, number((*numbers)[i]));
      }
    } else if (const auto* real = std::get_if<double>(&argument)) {
      hash = mix(hash, std::bit_cast<Hash>(*real));
    } else if (const auto* integer = std::get_if<int64_t>(&argument)) {
      hash = mix(hash, static_cast<Hash>(*integer));
    } else if (const auto* text = std::get_if<std::string>(&argument)) {
      hash = mix(hash, hashOf(*text));
    } else if (const auto* scalar = std::get_if<ir::ScalarArg>(&argument)) {
      hash = mix(hash, hashOf(scalar->scalar));
    }
    return hash;
  }

  Hash readAll(const ir::Node& node, size_t begin, size_t end, bool inList) {
    Hash hash = hashOf(node.op);
    for (const ir::Argument& argument : node.args) {
      hash = mix(hash, readArgument(node, argument, begin, end, inList));
    }
    return hash;
  }

  void runWhole(const ir::Node& node) {
    Hash hash = readAll(node, 0, SIZE_MAX, /*inList=*/false);
    if (ir::lookUpOp(node.op).random) hash = mix(hash, static_cast<Hash>(++draws_));
    Hash ordinal = 0;
    for (const ir::Node::Write& write : node.writes) store(write.value, mix(hash, ++ordinal));
    for (const ir::ValueId result : node.results) {
      ++ordinal;
      // A result that is an operand, or a view of one, is written as that or not at all.
      if (result.isValid() && !isOperand(node, result)) store(result, mix(hash, ordinal));
    }
  }

  void runList(const ir::Node& node, size_t length) {
    for (size_t i = 0; i < length; ++i) {
      const Hash hash = readAll(node, i, i + 1, /*inList=*/true);
      Hash ordinal = 0;
      for (const ir::Argument& argument : node.args) {
        ++ordinal;
        writeElement(node, argument, i, mix(hash, ordinal));
      }
      if (i < node.results.size() && node.results[i].isValid()) {
        store(node.results[i], mix(hash, ++ordinal));
      }
    }
  }

  void writeElement(const ir::Node& node, const ir::Argument& argument, size_t index, Hash hash) {
    ir::ValueId value;
    if (const auto* single = std::get_if<ir::ValueArg>(&argument)) value = single->value;
    if (const auto* list = std::get_if<ir::ValueList>(&argument)) {
      if (index < list->size()) value = (*list)[index].value;
    }
    if (!value.isValid() || findWrite(node, value) == nullptr) return;
    const bool collects = std::holds_alternative<ir::ValueArg>(argument);
    store(value, collects ? mix(holds(value), hash) : hash);
  }

  bool isOperand(const ir::Node& node, ir::ValueId result) const {
    bool found = false;
    ir::forEachTensorArgument(node, [&](ir::ValueId value) {
      found = found || graph_.value(value).storage == graph_.value(result).storage;
    });
    return found;
  }

  /// A part of a storage leaves the rest as it was.
  void store(ir::ValueId value, Hash hash) {
    const ir::TensorType& type = graph_.value(value).type;
    const int64_t bytes = type.numElements() * ir::elementBytes(type.dtype);
    const bool isPart = Bytes(bytes) < graph_.storage(graph_.value(value).storage).bytes;
    const Hash part = mix(hashOf(type), hash);
    holds(value) = isPart ? mix(holds(value), part) : part;
  }

  const ir::Graph& graph_;
  std::vector<Hash> holds_;  // by storage
  std::map<std::string, uint64_t> results_;
  Hash scalarStep_ = 0;
  int64_t draws_ = 0;
};

}  // namespace

std::map<std::string, uint64_t> runAbstractly(const ir::Graph& graph, int steps) {
  return AbstractRun(graph).run(steps);
}

}  // namespace stowage::tests
