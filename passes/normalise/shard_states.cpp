// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/shard_states.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringSet.h>

#include <map>
#include <utility>
#include <vector>

#include "ir/graph/collectives.h"
#include "passes/manage/pass_options.h"
#include "passes/normalise/sharded_states.h"

namespace stowage::passes {

namespace {

/// A shard is whole vectors of any processor: kernels may round an element of a vector otherwise
/// than one of the rest behind the last vector.
constexpr int64_t kUnit = 64;

ir::TensorType flatType(ir::DType dtype, int64_t elements) {
  return {.dtype = dtype, .sizes = {elements}, .strides = {1}};
}

class ShardWriter {
 public:
  ShardWriter(const ir::Graph& graph, ShardRoles roles, int64_t ranks)
      : graph_(graph),
        roles_(std::move(roles)),
        ranks_(ranks),
        builder_(graph),
        valuesOf_(graph.storages().size()) {
    for (size_t i = 0; i < graph.values().size(); ++i) {
      valuesOf_[graph.values()[i].storage.index()].emplace_back(i);
      valueNames_.insert(graph.values()[i].name);
    }
    for (const ir::Storage& storage : graph.storages()) storageNames_.insert(storage.name);
  }

  ir::Graph write() {
    for (size_t i = 0; i < graph_.storages().size(); ++i) prepare(ir::StorageId(i));
    findLastWriters();
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const ir::Node& node = graph_.nodes()[i];
      ir::updatesModel(node.phase) ? writeUpdate(node) : writeOther(i, node);
    }
    builder_.setRanks(ranks_);
    return std::move(builder_).finish();
  }

  int64_t shards() const { return static_cast<int64_t>(shardOf_.size()); }
  int64_t norms() const { return norms_; }

 private:
  ShardRole roleOf(ir::StorageId id) const { return roles_.of[id.index()]; }
  ShardRole roleOf(ir::ValueId id) const { return roleOf(graph_.value(id).storage); }
  /// Elements of each rank.
  int64_t lengthOf(ir::StorageId id) const {
    const int64_t each = (elementsOfStorage(id) + ranks_ - 1) / ranks_;
    return (each + kUnit - 1) / kUnit * kUnit;
  }
  int64_t elementsOfStorage(ir::StorageId id) const {
    return graph_.storage(id).bytes.value() / ir::elementBytes(dtypeOf(id));
  }
  ir::DType dtypeOf(ir::StorageId id) const { return graph_.value(firstValueOf(id)).type.dtype; }
  const std::string& nameOf(ir::StorageId id) const { return graph_.value(firstValueOf(id)).name; }
  ir::ValueId firstValueOf(ir::StorageId id) const { return valuesOf_[id.index()].front(); }
  /// What it is to whoever keeps it between steps; bytes, where its first value is a part of it.
  ir::TensorType wholeTypeOf(ir::StorageId id) const {
    const ir::TensorType& type = graph_.value(firstValueOf(id)).type;
    const Bytes bytes = graph_.storage(id).bytes;
    return type.covers(bytes) ? type : flatType(ir::DType::kU8, bytes.value());
  }

  static std::string unused(const std::string& wanted, llvm::StringSet<>& taken) {
    std::string name = wanted;
    for (int i = 1; !taken.insert(name).second; ++i) name = wanted + "." + std::to_string(i);
    return name;
  }

  /// A storage that the step makes, and the value of all its elements.
  ir::ValueId addFlat(const std::string& value, const std::string& storage, ir::Role role,
                      const ir::TensorType& type) {
    const Bytes bytes(type.numElements() * ir::elementBytes(type.dtype));
    const ir::StorageId id =
        builder_.addStorage({.name = unused(storage, storageNames_), .bytes = bytes, .role = role});
    return builder_.addValue({.name = unused(value, valueNames_), .storage = id, .type = type});
  }
  ir::ValueId addView(ir::ValueId of, const std::string& name, ir::TensorType type) {
    const ir::StorageId storage = builder_.value(of).storage;
    return builder_.addValue(
        {.name = unused(name, valueNames_), .storage = storage, .type = std::move(type)});
  }

  /// What was in this storage whole becomes a shard, in place or beside what is gathered.
  void prepare(ir::StorageId id) {
    const ShardRole role = roleOf(id);
    if (role != ShardRole::kParameter && role != ShardRole::kOfUpdate) return;
    const ir::DType dtype = dtypeOf(id);
    const int64_t length = lengthOf(id);
    const ir::TensorType shard = flatType(dtype, length);
    const std::string name = graph_.storage(id).name;
    if (role == ShardRole::kParameter) {
      const ir::ValueId whole = addFlat(nameOf(id) + ".whole", "whole(" + name + ")",
                                        ir::Role::kActivation, flatType(dtype, length * ranks_));
      for (const ir::ValueId value : valuesOf_[id.index()]) {
        builder_.value(value).storage = builder_.value(whole).storage;
      }
      const ir::ValueId own = builder_.addValue(
          {.name = unused(nameOf(id) + ".shard", valueNames_), .storage = id, .type = shard});
      shardOf_[id] = own;
      wholeOf_[id] = whole;
    } else {
      for (const ir::ValueId value : valuesOf_[id.index()]) builder_.value(value).type = shard;
    }
    ir::Storage& own = builder_.storage(id);
    own.bytes = Bytes(length * ir::elementBytes(dtype));
    if (ir::isState(own)) own.shardOf = wholeTypeOf(id);
  }

  void findLastWriters() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (ir::updatesModel(graph_.nodes()[i].phase)) continue;
      for (const ir::Access& access : graph_.accesses(ir::NodeId(i))) {
        const ShardRole role = roleOf(access.storage);
        const bool isGradient = role == ShardRole::kGradient || role == ShardRole::kMean;
        if (isGradient && access.writes()) lastWriter_[access.storage] = i;
      }
    }
  }

  // --- forward and backward ---

  void writeOther(size_t at, const ir::Node& node) {
    for (const ir::Access& access : graph_.accesses(ir::NodeId(at)))
      gatherFor(node, access.storage);
    builder_.addNode(node);
    for (const ir::Access& access : graph_.accesses(ir::NodeId(at))) {
      const auto last = lastWriter_.find(access.storage);
      if (last != lastWriter_.end() && last->second == at) reduce(node, access.storage);
    }
  }

  void gatherFor(const ir::Node& reader, ir::StorageId parameter) {
    const auto whole = wholeOf_.find(parameter);
    if (whole == wholeOf_.end()) return;
    add(ir::kAllGather.str(), {ir::ValueArg{shardOf_.at(parameter)}, ranks_}, whole->second,
        reader);
    wholeOf_.erase(whole);
  }

  void reduce(const ir::Node& writer, ir::StorageId gradient) {
    const ir::DType dtype = dtypeOf(gradient);
    const int64_t elements = elementsOfStorage(gradient);
    const int64_t length = lengthOf(gradient);
    const std::string name = graph_.storage(gradient).name;
    ir::ValueId parts =
        addView(firstValueOf(gradient), nameOf(gradient) + ".flat", flatType(dtype, elements));
    const int64_t beyond = length * ranks_ - elements;
    if (beyond > 0) {
      const ir::ValueId padded = addFlat(nameOf(gradient) + ".padded", "padded(" + name + ")",
                                         ir::Role::kGradient, flatType(dtype, length * ranks_));
      add("aten.constant_pad_nd.default",
          {ir::ValueArg{parts}, ir::NumberList{int64_t{0}, beyond}, int64_t{0}}, padded, writer);
      parts = padded;
    }
    const ir::ValueId received = addFlat(nameOf(gradient) + ".received", "received(" + name + ")",
                                         ir::Role::kGradient, flatType(dtype, length * ranks_));
    add(ir::kAllToAll.str(), {ir::ValueArg{parts}, ranks_}, received, writer);
    const ir::ValueId own = addFlat(nameOf(gradient) + ".mean", "mean(" + name + ")",
                                    ir::Role::kGradient, flatType(dtype, length));
    add(ir::kAddParts.str(), {ir::ValueArg{received}, ranks_, true}, own, writer);
    if (roleOf(gradient) == ShardRole::kMean) {
      const ir::ValueId all = addFlat(nameOf(gradient) + ".mean", "whole(mean(" + name + "))",
                                      ir::Role::kGradient, flatType(dtype, length * ranks_));
      add(ir::kAllGather.str(), {ir::ValueArg{own}, ranks_}, all, writer);
      wholeMeanOf_[gradient] = all;
    } else {
      shardOfMean_[gradient] = own;
    }
  }

  void add(std::string op, std::vector<ir::Argument> args, ir::ValueId result,
           const ir::Node& beside) {
    ir::Node node{.op = std::move(op), .args = std::move(args), .results = {result}};
    node.phase = beside.phase;
    node.scope = beside.scope;
    builder_.addNode(std::move(node));
  }

  // --- the update ---

  /// What an update reads or writes instead.
  ir::ValueId inUpdate(ir::ValueId id) {
    if (!id.isValid()) return id;
    const ir::Value& value = graph_.value(id);
    switch (roleOf(value.storage)) {
      case ShardRole::kParameter:
        return shardOf_.at(value.storage);
      case ShardRole::kGradient:
        return shardOfMean_.at(value.storage);
      case ShardRole::kMean: {
        const auto [entry, isNew] = meanViews_.emplace(id, ir::ValueId());
        if (isNew) {
          entry->second = addView(wholeMeanOf_.at(value.storage), value.name + ".mean", value.type);
        }
        return entry->second;
      }
      default:
        return id;
    }
  }

  void writeUpdate(const ir::Node& node) {
    ir::Node own = node;
    for (ir::Argument& argument : own.args) {
      if (auto* single = std::get_if<ir::ValueArg>(&argument)) {
        single->value = inUpdate(single->value);
      } else if (auto* list = std::get_if<ir::ValueList>(&argument)) {
        for (ir::ValueArg& element : *list) element.value = inUpdate(element.value);
      }
    }
    for (ir::Node::Write& write : own.writes) write.value = inUpdate(write.value);
    // A result that is an operand of an in-place op is that operand's value.
    for (ir::ValueId& result : own.results) result = inUpdate(result);
    if (!isWholeNorm(graph_, node) || !addPartNorms(node, own)) builder_.addNode(std::move(own));
  }

  /// Of a node whose operands are shards: `own` with results of its own, and of each the norm over
  /// all ranks. False: there is no shard among them.
  bool addPartNorms(const ir::Node& node, ir::Node own) {
    std::vector<std::pair<ir::ValueId, ir::ValueId>> parts;  // the part's norm, the whole one
    const auto elements = elementsOf(node);
    for (size_t i = 0; i < own.results.size(); ++i) {
      const bool isOfShard = isShard(elements[i].front());
      const ir::ValueId whole = own.results[i];
      if (!isOfShard || !whole.isValid()) continue;
      const ir::Value& value = graph_.value(whole);
      own.results[i] =
          addFlat(value.name + ".part", "part of norm", ir::Role::kActivation, value.type);
      parts.emplace_back(own.results[i], whole);
    }
    if (parts.empty()) return false;
    const ir::Argument order = own.args.at(1);
    builder_.addNode(own);
    for (const auto& [part, whole] : parts) {
      const ir::Value& value = graph_.value(whole);
      const ir::DType dtype = value.type.dtype;
      const ir::ValueId all = addFlat(value.name + ".parts", "norms of parts",
                                      ir::Role::kActivation, flatType(dtype, ranks_));
      const ir::ValueId flat = addView(part, value.name + ".flat", flatType(dtype, 1));
      add(ir::kAllGather.str(), {ir::ValueArg{flat}, ranks_}, all, node);
      add("aten.linalg_vector_norm.default",
          {ir::ValueArg{all}, order, ir::NoneArg{}, false, ir::NoneArg{}}, whole, node);
      ++norms_;
    }
    return true;
  }

  bool isShard(ir::ValueId id) const {
    const ShardRole role = roleOf(id);
    return role != ShardRole::kNone && role != ShardRole::kMean;
  }

  const ir::Graph& graph_;
  ShardRoles roles_;
  int64_t ranks_;
  ir::GraphBuilder builder_;
  std::vector<std::vector<ir::ValueId>> valuesOf_;  // by storage of the graph before
  llvm::StringSet<> valueNames_;
  llvm::StringSet<> storageNames_;
  std::map<ir::StorageId, ir::ValueId> shardOf_;  // of parameters
  std::map<ir::StorageId, ir::ValueId> wholeOf_;  // not gathered yet
  std::map<ir::StorageId, size_t> lastWriter_;    // of gradients
  std::map<ir::StorageId, ir::ValueId> shardOfMean_;
  std::map<ir::StorageId, ir::ValueId> wholeMeanOf_;
  std::map<ir::ValueId, ir::ValueId> meanViews_;
  int64_t norms_ = 0;
};

}  // namespace

ir::Expected<std::unique_ptr<Pass>> ShardStates::parse(llvm::StringRef text) {
  ShardStatesOptions options;
  OptionReader reader("shard-states", text);
  options.ranks = reader.readNumber("ranks", options.ranks);
  if (ir::Error error = reader.finish()) return error;
  if (options.ranks < 1 || options.ranks > ir::kMostRanks) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "shard-states: option 'ranks' is " + std::to_string(options.ranks) +
                             ", expected 1 to " + std::to_string(ir::kMostRanks));
  }
  return std::make_unique<ShardStates>(options);
}

std::string ShardStates::options() const {
  if (options_.ranks == ShardStatesOptions().ranks) return "";
  return "ranks=" + std::to_string(options_.ranks);
}

ir::Expected<PassReport> ShardStates::run(PassState& state) const {
  if (options_.ranks == state.graph.ranks()) return PassReport{};
  if (state.graph.ranks() != 1) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "the step is for " + std::to_string(state.graph.ranks()) +
                             " ranks, expected one of one process to shard for " +
                             std::to_string(options_.ranks));
  }
  ir::Expected<ShardRoles> roles = findShardRoles(state.graph, options_.ranks);
  if (!roles) return roles.takeError();
  PassReport report;
  report.changed = true;
  const int64_t whole = roles->whole;
  if (!roles->firstWhole.empty()) report.remarks.push_back(roles->firstWhole);
  ShardWriter writer(state.graph, std::move(*roles), options_.ranks);
  ir::Graph graph = writer.write();
  report.counters = {{"shards", writer.shards()}, {"whole", whole}, {"norms", writer.norms()}};
  state.graph = std::move(graph);
  return report;
}

}  // namespace stowage::passes
