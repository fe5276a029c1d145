// SPDX-License-Identifier: Apache-2.0
#include "ir/text/graph_printer.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/text/argument_printer.h"
#include "ir/text/literal.h"
#include "ir/text/parser.h"

namespace stowage::ir {

GraphPrinter::GraphPrinter(const Graph& graph, llvm::raw_ostream& os, PrintOptions options)
    : graph_(graph), os_(os), options_(options) {
  if (options_.comments) lives_ = computeLives(graph);
  findPlaces();
}

void GraphPrinter::print() {
  printHeader();
  printScalars();
  printTop();
  for (size_t i = 0; i < graph_.nodes().size(); ++i) printNode(NodeId(i));
  printRest();
  os_ << "}\n";
}

void GraphPrinter::findPlaces() {
  rootOf_.assign(graph_.storages().size(), ValueId());
  isProduced_.assign(graph_.storages().size(), false);
  inPlace_.assign(graph_.values().size(), false);
  declared_.assign(graph_.values().size(), false);
  std::vector<bool> seenValue(graph_.values().size(), false);
  std::vector<bool> seenStorage(graph_.storages().size(), false);
  for (const Node& node : graph_.nodes()) {
    forEachTensorArgument(node, [&](ValueId id) {
      seenValue[id.index()] = true;
      seenStorage[graph_.value(id).storage.index()] = true;
    });
    for (const ValueId id : node.results) {
      if (!id.isValid() || seenValue[id.index()]) continue;
      seenValue[id.index()] = true;
      inPlace_[id.index()] = true;
      const size_t storage = graph_.value(id).storage.index();
      if (seenStorage[storage]) continue;
      seenStorage[storage] = true;
      isProduced_[storage] = true;
      rootOf_[storage] = id;
    }
  }
  for (size_t i = 0; i < graph_.values().size(); ++i) {
    ValueId& root = rootOf_[graph_.values()[i].storage.index()];
    if (root.isValid()) continue;
    root = ValueId(i);
    inPlace_[i] = false;
  }
}

void GraphPrinter::printHeader() {
  const Provenance& provenance = graph_.provenance();
  const auto printText = [&](const char* key, llvm::StringRef text) {
    if (text.empty()) return;
    os_ << ' ' << key << '=';
    writeQuoted(os_, text);
  };
  os_ << "graph @" << graph_.name() << " version=" << kTextVersion;
  printText("device", provenance.device);
  printText("target", provenance.target);
  printText("recipe", provenance.recipe);
  printText("producer", provenance.producer);
  if (provenance.stepsCaptured != 0) os_ << " steps=" << provenance.stepsCaptured;
  if (graph_.ranks() != 1) os_ << " ranks=" << graph_.ranks();
  if (!provenance.deterministic) os_ << " nondeterministic";
  os_ << " {\n";
}

void GraphPrinter::printScalars() {
  for (const StepScalar& scalar : graph_.scalars()) {
    os_ << "  scalar #" << scalar.name << (scalar.isInteger ? " : i64 = " : " : f64 = ");
    if (scalar.isInteger) {
      os_ << scalar.integer;
    } else {
      writeDouble(os_, scalar.value);
    }
    os_ << '\n';
  }
}

void GraphPrinter::printTop() {
  for (size_t i = 0; i < graph_.values().size(); ++i) {
    const ValueId id(i);
    const StorageId storage = graph_.value(id).storage;
    if (isRoot(id) && !isProduced_[storage.index()]) {
      printRootStatement(id);
    } else if (!isRoot(id) && !inPlace_[i] && declared_[rootOf_[storage.index()].index()]) {
      printViewStatement(id);
    } else {
      break;
    }
  }
  for (size_t i = 0; i < rootOf_.size(); ++i) {
    const ValueId root = rootOf_[i];
    if (!root.isValid()) {
      os_ << "  // a storage without a value: ";
      writeQuoted(os_, graph_.storages()[i].name);
      os_ << '\n';
    } else if (!isProduced_[i] && !declared_[root.index()]) {
      printRootStatement(root);
    }
  }
}

void GraphPrinter::printRootStatement(ValueId id) {
  const Storage& storage = graph_.storage(graph_.value(id).storage);
  os_ << "  " << roleName(storage.role) << " %" << graph_.value(id).name;
  declareRoot(id, Place::kStatement);
  if (options_.comments) {
    os_ << "  //";
    printLife(graph_.value(id).storage);
  }
  os_ << '\n';
}

void GraphPrinter::printViewStatement(ValueId id) {
  os_ << "  view %" << graph_.value(id).name;
  declareView(id);
  os_ << '\n';
}

void GraphPrinter::printRest() {
  for (size_t i = 0; i < graph_.values().size(); ++i) {
    if (!declared_[i]) printViewStatement(ValueId(i));
  }
}

void GraphPrinter::printNode(NodeId id) {
  const Node& node = graph_.node(id);
  printPhase(node);
  forEachTensorArgument(node, [&](ValueId value) {
    if (!declared_[value.index()]) printViewStatement(value);
  });
  os_ << "  ";
  llvm::interleave(
      node.results, [&](ValueId result) { printResult(result); }, [&] { os_ << ", "; });
  if (!node.results.empty()) os_ << " = ";
  os_ << node.op << '(';
  const auto writeValue = [this](ValueId value) { os_ << '%' << graph_.value(value).name; };
  const auto writeScalar = [this](ScalarId scalar) {
    os_ << '#' << graph_.scalars()[scalar.index()].name;
  };
  ArgumentPrinter(os_, {.writeValue = writeValue, .writeScalar = writeScalar}).print(node);
  os_ << ')';
  if (node.onHost) os_ << " on host";
  if (options_.comments) printComment(id);
  os_ << '\n';
}

void GraphPrinter::printPhase(const Node& node) {
  if (node.phase == phase_ && node.scope == scope_) return;
  phase_ = node.phase;
  scope_ = node.scope;
  os_ << phaseName(node.phase) << ' ';
  writeQuoted(os_, graph_.scope(node));
  os_ << ":\n";
}

void GraphPrinter::printResult(ValueId id) {
  if (!id.isValid()) {
    os_ << '_';
    return;
  }
  os_ << '%' << graph_.value(id).name;
  if (declared_[id.index()]) return;
  if (isRoot(id)) {
    declareRoot(id, Place::kResult);
  } else {
    declareView(id);
  }
}

void GraphPrinter::declareRoot(ValueId id, Place place) {
  const Value& value = graph_.value(id);
  const Storage& storage = graph_.storage(value.storage);
  if (storage.name != value.name) {
    os_ << ' ';
    writeQuoted(os_, storage.name);
  }
  printRole(storage, place);
  if (storage.home == Space::kHost) os_ << " host";
  if (value.storage.raw() != lastStorage_ + 1) os_ << " storage=" << value.storage.raw();
  lastStorage_ = value.storage.raw();
  printValueId(id);
  os_ << " : ";
  writeType(os_, value.type);
  if (value.type.findExtentBytes() != storage.bytes) os_ << " bytes=" << storage.bytes.value();
  if (storage.shardOf) {
    os_ << " shard of ";
    writeType(os_, *storage.shardOf);
  }
}

// A delivered storage without another role is an output, and an output is always delivered.
void GraphPrinter::printRole(const Storage& storage, Place place) {
  const Role fallback = storage.output ? Role::kOutput : Role::kActivation;
  const bool isStated =
      place == Place::kStatement || storage.role == Role::kOutput || storage.role == fallback;
  if (!isStated) os_ << ' ' << roleName(storage.role);
  if (storage.persistent != isPersistentByDefault(storage.role)) {
    os_ << (storage.persistent ? " persistent" : " transient");
  }
  const bool followsFromRole = place == Place::kStatement && storage.role == Role::kOutput;
  if (storage.output && !followsFromRole) os_ << " output";
}

void GraphPrinter::declareView(ValueId id) {
  const Value& value = graph_.value(id);
  os_ << " of %" << graph_.value(rootOf_[value.storage.index()]).name;
  printValueId(id);
  os_ << " : ";
  writeType(os_, value.type);
}

void GraphPrinter::printValueId(ValueId id) {
  if (id.raw() != lastValue_ + 1) os_ << " value=" << id.raw();
  lastValue_ = id.raw();
  declared_[id.index()] = true;
}

void GraphPrinter::printComment(NodeId id) {
  os_ << "  // n" << id.raw();
  for (const Access& access : graph_.accesses(id)) {
    if (access.writtenVersion != 1 || !isProduced_[access.storage.index()]) continue;
    os_ << ", %" << graph_.value(rootOf_[access.storage.index()]).name;
    printLife(access.storage);
  }
}

void GraphPrinter::printLife(StorageId id) {
  const NodeRange live = lives_[id.index()].live;
  os_ << ' ' << formatBytes(graph_.storage(id).bytes);
  if (!live.isEmpty()) os_ << " live [" << live.begin << ", " << live.end << ')';
}

bool GraphPrinter::isRoot(ValueId id) const {
  return rootOf_[graph_.value(id).storage.index()] == id;
}

}  // namespace stowage::ir
