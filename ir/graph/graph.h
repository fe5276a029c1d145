// SPDX-License-Identifier: Apache-2.0
//
// A graph is one whole training step (forward, loss, backward, optimizer update) in one total
// order.
//   - A Storage is bytes with a role. Memory is planned per storage, never per tensor.
//   - A Value is a tensor that views one storage. Views are values, not nodes: they are never
//   launched.
//   - A Node is one ATen call. It names the values it reads and the storages it writes.
// Several ranks may run one graph together, each with storages of its own: then persistent storages
// may be shards, of which each rank has another one.
// Ownership: the Graph owns everything in dense vectors; ids are positions in them. Nothing points.
// Versions: each write makes a new version of a storage; version 0 is what the storage holds when
// the step begins (nothing, if it is not persistent and no input). `Graph::accesses` states per
// node and storage which version is read and which is made; all legality (moving, recomputing,
// taking over bytes, clean or dirty) is about these versions. They follow from the order, so a pass
// that reorders nodes is legal exactly when it leaves every access's versions as they were. The
// graph is built through GraphBuilder and immutable afterwards; passes make new graphs. Text form:
// ir/text/parser.h, ir/text/printer.h. Invariants: ir/graph/check_graph.h.
#ifndef STOWAGE_IR_GRAPH_GRAPH_H_
#define STOWAGE_IR_GRAPH_GRAPH_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/base/error.h"
#include "ir/base/ids.h"
#include "ir/base/units.h"
#include "ir/graph/type.h"

namespace stowage::ir {

/// What a storage is for. Decides persistence only by default; `Storage::persistent` is what
/// counts.
enum class Role : uint8_t {
  kParameter,    // written by the optimizer each step
  kFrozen,       // persistent, no step writes it: clean for ever once loaded
  kBuffer,       // running statistics, counters, rotary caches
  kGradient,     // step-local, or persistent when zero_grad keeps it
  kState,        // optimizer state
  kMaster,       // fp32 copy of a parameter
  kStepCounter,  // optimizer step count on the device
  kRng,          // generator state as a tensor
  kInput,        // bound anew each step; version 0 arrives in host memory
  kActivation,   // everything the step makes for itself, temporaries of composites included
  kConstant,     // persistent bytes made outside the step that are no parameter or buffer
  kOutput,       // delivered to the caller after the step (losses, metrics)
  kPending       // made by a step for its deferred updates, which run in the next one; read before
                 // the step makes it anew
};
const char* roleName(Role role);
std::optional<Role> findRole(llvm::StringRef name);

struct Storage {
  std::string
      name;  // unique; what pins match: "layers.0.attn.wq", "grad(wte)", "m(wte)", "h.3.mlp/gelu.0"
  Bytes bytes;  // exact, not rounded to the target's alignment
  Role role = Role::kActivation;
  Space home =
      Space::kDevice;  // kHost: a small host tensor of a CUDA step (never planned, never moved)
  bool persistent = false;  // lives from step to step: the schedule is a cycle over it
  bool output = false;      // its last version is delivered to the host after the step
  /// Of a shard: the tensor, dense and from offset 0, whose bytes all ranks have together. Rank r
  /// has those from r * `bytes` on; what lies beyond the tensor's end is zero when steps begin.
  std::optional<TensorType> shardOf = std::nullopt;
  friend bool operator==(const Storage&, const Storage&) = default;
};
/// Of the tensor that it is, or is a shard of.
inline Bytes wholeBytes(const Storage& storage) {
  return storage.shardOf ? storage.shardOf->extentBytes() : storage.bytes;
}
/// What a training is between two steps, when no update is pending: what checkpoints hold.
inline bool isState(const Storage& storage) {
  return storage.persistent && storage.role != Role::kInput && storage.role != Role::kPending;
}

struct Value {
  std::string name;  // unique identifier in the text form, without '%'
  StorageId storage;
  TensorType type;
  friend bool operator==(const Value&, const Value&) = default;
};

/// A host number that the optimizer computes anew each step (learning rate, bias correction). The
/// graph knows where it is used, never its value in a later step: that is fed while the step runs.
struct StepScalar {
  std::string name;
  bool isInteger = false;
  double value = 0;  // as captured; integers are exact in `integer`
  int64_t integer = 0;
  friend bool operator==(const StepScalar&, const StepScalar&) = default;
};

struct NoneArg {
  friend bool operator==(NoneArg, NoneArg) = default;
};
struct ValueArg {
  ValueId value;  // invalid: an absent optional tensor inside a list
  friend bool operator==(const ValueArg&, const ValueArg&) = default;
};
/// A tensor made from a host number on the spot (`x * 2.0`): takes part in type promotion as a
/// number.
struct WrappedNumberArg {
  DType dtype = DType::kF64;
  std::variant<int64_t, double, ScalarId> value;
  friend bool operator==(const WrappedNumberArg&, const WrappedNumberArg&) = default;
};
struct ScalarArg {
  ScalarId scalar;  // a step scalar
  friend bool operator==(const ScalarArg&, const ScalarArg&) = default;
};
/// Enumerations of ATen by name, so that a file does not depend on their numbers:
/// kind "dtype" | "device" | "layout" | "memory_format", text e.g. "f32", "cpu", "cuda:0",
/// "strided", "channels_last".
struct EnumArg {
  std::string kind;
  std::string text;
  friend bool operator==(const EnumArg&, const EnumArg&) = default;
};
struct ComplexArg {
  double real = 0, imaginary = 0;
  friend bool operator==(const ComplexArg&, const ComplexArg&) = default;
};
using ValueList = std::vector<ValueArg>;
/// A list of numbers of one kind. Element ScalarArg occurs in Scalar[] arguments of list ops.
using NumberList = std::vector<std::variant<bool, int64_t, double, ScalarArg>>;

/// One argument, in the order of the op's schema, defaults included.
using Argument = std::variant<NoneArg, bool, int64_t, double, std::string, ComplexArg, ScalarArg,
                              EnumArg, WrappedNumberArg, ValueArg, ValueList, NumberList>;

/// kDeferred: an update of the step before, with its step scalars; not run while nothing is
/// pending.
enum class Phase : uint8_t { kForward, kBackward, kOptimizer, kDeferred };
const char* phaseName(Phase phase);
std::optional<Phase> findPhase(llvm::StringRef name);
/// Of the optimizer, in this step or deferred from the one before?
inline bool updatesModel(Phase phase) {
  return phase == Phase::kOptimizer || phase == Phase::kDeferred;
}

struct Node {
  std::string op;  // "aten.mm.default": namespace.name.overload, overload "default" when empty
  std::vector<Argument> args;
  llvm::SmallVector<ValueId, 2>
      results;  // invalid id: an output the schema has but this call left undefined
  /// Values among the arguments that the op changes. `whole`: every byte of the storage is written
  /// without being read (zero_, fill_, full copy_), so what it held before is dead.
  struct Write {
    ValueId value;
    bool whole = false;
    friend bool operator==(const Write&, const Write&) = default;
  };
  llvm::SmallVector<Write, 1> writes;
  Phase phase = Phase::kForward;
  ScopeId scope;        // module path
  bool onHost = false;  // runs on the host, on operands in host memory (ir/graph/host_updates.h)
};

/// What a node does to one storage. At most one per node and storage, in order of first appearance
/// (arguments, then results). A storage first made by a node has writes = whole = true, readVersion
/// -1.
struct Access {
  StorageId storage;
  int32_t readVersion = -1;     // -1: not read
  int32_t writtenVersion = -1;  // -1: not written
  bool whole = false;           // written without needing the earlier bytes
  bool reads() const { return readVersion >= 0; }
  bool writes() const { return writtenVersion >= 0; }
  friend bool operator==(const Access&, const Access&) = default;
};

/// Where the graph came from: carried through files, never interpreted by the planner.
struct Provenance {
  std::string producer;  // "stowage 0.1.0, torch 2.11.0"
  std::string
      recipe;  // how to make the same step again: "gpt2 batch=4 sequence=512", or an archive's name
  std::string device;  // "cpu" or "cuda"
  std::string target;  // name of the target profile the capture was made for
  int stepsCaptured = 0;
  bool deterministic = true;  // captured with the kernels of libtorch's deterministic mode
  friend bool operator==(const Provenance&, const Provenance&) = default;
};

class Graph {
 public:
  const std::string& name() const { return name_; }
  const Provenance& provenance() const { return provenance_; }
  /// How many run it together; 1: a step of one process.
  int64_t ranks() const { return ranks_; }

  llvm::ArrayRef<Storage> storages() const { return storages_; }
  llvm::ArrayRef<Value> values() const { return values_; }
  llvm::ArrayRef<Node> nodes() const { return nodes_; }
  llvm::ArrayRef<StepScalar> scalars() const { return scalars_; }
  llvm::ArrayRef<std::string> scopes() const { return scopes_; }

  const Storage& storage(StorageId id) const { return storages_[id.index()]; }
  const Value& value(ValueId id) const { return values_[id.index()]; }
  const Node& node(NodeId id) const { return nodes_[id.index()]; }
  /// "" when the node has no module path.
  llvm::StringRef scope(const Node& node) const;

  /// Accesses of a node, one per storage, derived from arguments, results and writes.
  llvm::ArrayRef<Access> accesses(NodeId id) const;
  /// Version a storage has when the step is over: the number of writes to it.
  int32_t lastVersion(StorageId id) const { return lastVersion_[id.index()]; }
  /// "aten.mm.default (layers.31.mlp.down, backward)": how messages name a node.
  std::string describeNode(NodeId id) const;
  /// Everything equal, ids of storages, values, scalars and nodes included; module paths by their
  /// text. Numbers among the arguments bit by bit, and a NaN equals a NaN.
  friend bool operator==(const Graph& a, const Graph& b);

 private:
  friend class GraphBuilder;
  std::string name_;
  Provenance provenance_;
  int64_t ranks_ = 1;
  std::vector<Storage> storages_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<StepScalar> scalars_;
  std::vector<std::string> scopes_;
  std::vector<Access> accesses_;       // all nodes', concatenated
  std::vector<uint32_t> firstAccess_;  // nodes + 1 entries
  std::vector<int32_t> lastVersion_;
};

inline constexpr int64_t kMostRanks = int64_t{1} << 20;

/// Builds a graph, or a changed copy of one (the constructor from a Graph, for passes).
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name, Provenance provenance = {});
  /// Starts with everything but the nodes of `graph`: ids of storages, values, scalars, scopes
  /// stay.
  explicit GraphBuilder(const Graph& graph);

  StorageId addStorage(Storage storage);
  ValueId addValue(Value value);
  ScalarId addScalar(StepScalar scalar);
  /// The id of a module path, the same for equal text. "" gives an invalid id.
  ScopeId internScope(llvm::StringRef path);
  /// Brings `writes` into the order of the arguments.
  NodeId addNode(Node node);

  Storage& storage(StorageId id) { return graph_.storages_[id.index()]; }
  Value& value(ValueId id) { return graph_.values_[id.index()]; }
  Provenance& provenance() { return graph_.provenance_; }
  void setRanks(int64_t ranks) { graph_.ranks_ = ranks; }

  /// Derives accesses and versions. Does not check invariants: that is checkGraph
  /// (ir/graph/check_graph.h). References to values or storages that do not exist have no access.
  Graph finish() &&;

 private:
  Graph graph_;
  llvm::StringMap<ScopeId> scopeIds_;
};

/// Do storages of this role live from step to step unless they say otherwise?
bool isPersistentByDefault(Role role);

/// Calls `visit(ValueId)` for every tensor argument of `node`, list elements included, in order.
template <typename Visitor>
void forEachTensorArgument(const Node& node, Visitor visit) {
  for (const Argument& argument : node.args) {
    if (const auto* single = std::get_if<ValueArg>(&argument)) {
      if (single->value.isValid()) visit(single->value);
    } else if (const auto* list = std::get_if<ValueList>(&argument)) {
      for (const ValueArg& element : *list) {
        if (element.value.isValid()) visit(element.value);
      }
    }
  }
}

/// The first number among the arguments that changes from step to step.
std::optional<ScalarId> firstStepScalar(const Node& node);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_GRAPH_GRAPH_H_
