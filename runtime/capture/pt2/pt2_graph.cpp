// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/pt2/pt2_graph.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringSet.h>

#include <algorithm>
#include <utility>

#include "ir/graph/check_graph.h"
#include "runtime/capture/pt2/pt2_arguments.h"
#include "runtime/capture/pt2/pt2_shapes.h"

namespace stowage::runtime {
namespace {

// Sums of sizes stay far from overflow.
constexpr int64_t kMaxTotalBytes = int64_t{1} << 60;

class GraphMaker {
 public:
  GraphMaker(const Pt2Program& program, Pt2Ops& ops, const ir::Target& target,
             ir::GraphBuilder builder)
      : program_(program), ops_(ops), builder_(std::move(builder)), shapes_(target) {
    valueOf_.resize(program.tensors.size());
  }

  ir::Expected<Pt2Graph> make() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      if (ir::Error error = addInput(i)) return error;
    }
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (ir::Error error = addNode(program_.nodes[i])) {
        return inPt2Node(program_, i, std::move(error));
      }
    }
    for (const Pt2Output& output : program_.outputs) {
      const ir::ValueId value = valueOf_[static_cast<size_t>(output.tensor)];
      if (!value.isValid()) {
        return malformed("output '" + tensorOf(output.tensor).name + "' is made by no node");
      }
      outputs_.push_back(value);
    }
    return finish();
  }

 private:
  static ir::Error malformed(const std::string& message) {
    return ir::makeError(ir::ErrorCode::kParse, message);
  }
  static ir::Error unsupported(const std::string& message) {
    return ir::makeError(ir::ErrorCode::kUnsupported, message);
  }

  Pt2Graph finish() {
    Pt2Graph draft{.calls = std::move(builder_).finish(),
                   .inputs = std::move(inputs_),
                   .outputs = std::move(outputs_),
                   .ops = std::move(nodeOps_)};
    ir::GraphBuilder launched(draft.calls);
    for (size_t i = 0; i < draft.ops.size(); ++i) {
      const ir::Node& node = draft.calls.nodes()[i];
      if (makesViewsOnly(*draft.ops[i], node)) continue;
      launched.addNode(node);
      draft.sources.push_back(i);
    }
    draft.graph = std::move(launched).finish();
    return draft;
  }

  const Pt2Tensor& tensorOf(int32_t tensor) const {
    return program_.tensors[static_cast<size_t>(tensor)];
  }

  ir::Error addInput(size_t position) {
    const int32_t tensor = program_.inputs[position].tensor;
    inputs_.emplace_back();
    if (tensor < 0) return ir::success();
    const ir::TensorType& type = tensorOf(tensor).type;
    ir::Expected<ir::StorageId> storage = addStorage(tensor, type.extentBytes(), ir::Role::kInput);
    if (!storage) return storage.takeError();
    ir::Expected<ir::ValueId> value = addValue(tensor, type, *storage);
    if (!value) return value.takeError();
    inputs_.back() = *value;
    return define(tensor, *value);
  }

  /// A storage for this tensor, and named after it.
  ir::Expected<ir::StorageId> addStorage(int32_t tensor, Bytes bytes, ir::Role role) {
    const Pt2Tensor& source = tensorOf(tensor);
    ir::Storage storage{.name = source.name, .bytes = bytes, .role = role};
    if (builder_.provenance().device != "cpu" && source.device == "cpu") {
      storage.home = ir::Space::kHost;
      if (storage.bytes > ir::kMaxHostStorageBytes) {
        return unsupported("tensor '" + source.name + "' of a step for a GPU has " +
                           std::to_string(storage.bytes.value()) +
                           " bytes on the host, expected at most " +
                           std::to_string(ir::kMaxHostStorageBytes.value()));
      }
    }
    totalBytes_ += std::min(storage.bytes.value(), kMaxTotalBytes);
    if (totalBytes_ > kMaxTotalBytes) {
      return malformed("tensor '" + source.name + "' brings the step above " +
                       formatBytes(Bytes(kMaxTotalBytes)));
    }
    if (ir::Error error = shapes_.values().addStorage(storage)) return error;
    valuesOf_.emplace_back();
    return builder_.addStorage(std::move(storage));
  }

  /// Equal tensors over one storage are one value.
  ir::Expected<ir::ValueId> addValue(int32_t tensor, const ir::TensorType& type,
                                     ir::StorageId storage) {
    for (const ir::ValueId value : valuesOf_[storage.index()]) {
      if (builder_.value(value).type == type) return value;
    }
    std::string name = pt2Identifier(tensorOf(tensor).name);
    while (!names_.insert(name).second) name += "_";
    ir::Value value{.name = std::move(name), .storage = storage, .type = type};
    if (ir::Error error = shapes_.values().addValue(value)) return error;
    const ir::ValueId id = builder_.addValue(std::move(value));
    valuesOf_[storage.index()].push_back(id);
    return id;
  }

  ir::Error define(int32_t tensor, ir::ValueId value) {
    ir::ValueId& slot = valueOf_[static_cast<size_t>(tensor)];
    if (slot.isValid()) return malformed("tensor '" + tensorOf(tensor).name + "' is made twice");
    slot = value;
    return ir::success();
  }

  ir::Error addNode(const Pt2Node& source) {
    ir::Expected<const Pt2Op*> op = ops_.lookUp(source.target);
    if (!op) return op.takeError();
    ir::Expected<std::vector<ir::Argument>> arguments =
        convertPt2Arguments(source.inputs, (*op)->facts->schema(),
                            [&](int32_t tensor) { return valueOf_[static_cast<size_t>(tensor)]; });
    if (!arguments) return arguments.takeError();
    node_ = ir::Node{.op = (*op)->name(), .args = std::move(*arguments)};
    groups_.clear();
    if (ir::Error error = checkStrides(**op)) return error;
    addWrites(**op);
    ir::Expected<Pt2Results> results = shapes_.findResults(*(*op)->facts, node_);
    if (!results) return results.takeError();
    results_ = std::move(*results);
    if (ir::Error error = addResults(**op, source.outputs)) return error;
    builder_.addNode(std::move(node_));
    nodeOps_.push_back(*op);
    return ir::success();
  }

  /// Ops that are given strides were given those that the archive's trace had.
  ir::Error checkStrides(const Pt2Op& op) {
    const bool takesStrides = op.name().find("as_strided") != std::string::npos;
    if (!takesStrides || !isMoved(node_.args[0])) return ir::success();
    return unsupported(
        "it is given strides, and libtorch lays its argument out otherwise than the "
        "archive says");
  }

  bool isMoved(const ir::Argument& argument) {
    const auto* base = std::get_if<ir::ValueArg>(&argument);
    return base != nullptr && base->value.isValid() &&
           moved_.count(builder_.value(base->value).storage.raw()) > 0;
  }

  /// Such a call does nothing on the device.
  static bool makesViewsOnly(const Pt2Op& op, const ir::Node& node) {
    return !op.returns.empty() && node.writes.empty() &&
           llvm::all_of(op.returns, [](const Pt2Return& result) {
             return result.kind == Pt2Return::Kind::kView;
           });
  }

  void addWrites(const Pt2Op& op) {
    if (op.facts->changesShape) return;
    llvm::SmallDenseSet<int32_t, 8> written;
    const auto add = [&](ir::ValueId id) {
      if (!id.isValid() || !written.insert(id.raw()).second) return;
      const ir::Value& value = builder_.value(id);
      const bool whole =
          op.facts->overwrites && value.type.covers(builder_.storage(value.storage).bytes);
      node_.writes.push_back({.value = id, .whole = whole});
    };
    for (const uint32_t index : op.facts->writtenArguments) {
      if (const auto* value = std::get_if<ir::ValueArg>(&node_.args[index])) add(value->value);
      if (const auto* list = std::get_if<ir::ValueList>(&node_.args[index])) {
        for (const ir::ValueArg& element : *list) add(element.value);
      }
    }
  }

  ir::Error addResults(const Pt2Op& op, const std::vector<Pt2Value>& outputs) {
    if (outputs.size() != op.returns.size()) {
      return malformed("found " + std::to_string(outputs.size()) + " outputs, expected " +
                       std::to_string(op.returns.size()));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      // Whole numbers are no results of a node: those who need one have it as an argument.
      if (std::holds_alternative<Pt2IntegerResult>(outputs[i]) && !op.returns[i].isTensor) continue;
      ir::Expected<Pt2TensorList> tensors = tensorsOf(outputs[i], op.returns[i].isList);
      if (!tensors) return tensors.takeError();
      for (const Pt2TensorRef& tensor : *tensors) {
        if (ir::Error error = addResult(op, op.returns[i], tensor.tensor)) return error;
      }
    }
    return results_.checkCount();
  }

  static ir::Expected<Pt2TensorList> tensorsOf(const Pt2Value& output, bool isList) {
    if (const auto* list = std::get_if<Pt2TensorList>(&output); list != nullptr && isList) {
      return *list;
    }
    if (!isList && std::holds_alternative<ir::NoneArg>(output)) return Pt2TensorList(1);
    if (const auto* single = std::get_if<Pt2TensorRef>(&output); single != nullptr && !isList) {
      return Pt2TensorList{*single};
    }
    return malformed(std::string("found an output that is no ") +
                     (isList ? "list of tensors" : "tensor"));
  }

  ir::Error addResult(const Pt2Op& op, const Pt2Return& how, int32_t tensor) {
    node_.results.emplace_back();
    if (tensor < 0) {
      results_.skip();
      return ir::success();
    }
    const bool isFresh = how.kind == Pt2Return::Kind::kFresh;
    const Pt2Tensor& source = tensorOf(tensor);
    const bool mayMove = isFresh || isMoved(node_.args[how.argument]);
    ir::Expected<Pt2ResultType> result = results_.next(source.name, source.type, mayMove);
    if (!result) return result.takeError();
    ir::Expected<ir::ValueId> value =
        isFresh ? addFresh(*result, tensor) : addAlias(op, how, result->type, tensor);
    if (!value) return value.takeError();
    node_.results.back() = *value;
    return define(tensor, *value);
  }

  ir::Expected<ir::ValueId> addFresh(const Pt2ResultType& result, int32_t tensor) {
    const Pt2Tensor& source = tensorOf(tensor);
    if (result.group >= 0) {
      for (const auto& [group, storage] : groups_) {
        if (group == result.group) return addValue(tensor, result.type, storage);
      }
    }
    if (result.type.offset != 0) {
      return unsupported("result '" + source.name + "' begins at element " +
                         std::to_string(result.type.offset) + " of a storage that no argument has");
    }
    ir::Expected<ir::StorageId> storage = addStorage(tensor, result.storage, ir::Role::kActivation);
    if (!storage) return storage.takeError();
    if (result.group >= 0) groups_.emplace_back(result.group, *storage);
    if (!atSamePlaces(source.type, result.type)) moved_.insert(storage->raw());
    return addValue(tensor, result.type, *storage);
  }

  ir::Expected<ir::ValueId> addAlias(const Pt2Op& op, const Pt2Return& how,
                                     const ir::TensorType& type, int32_t tensor) {
    const Pt2Tensor& source = tensorOf(tensor);
    const std::string what = "result '" + source.name + "' ";
    const auto* base = std::get_if<ir::ValueArg>(&node_.args[how.argument]);
    if (base == nullptr) {
      return unsupported(what + "is a view of an argument that is no single tensor");
    }
    const ir::Value& operand = builder_.value(base->value);
    if (how.kind == Pt2Return::Kind::kArgument && operand.type != type) {
      return malformed(what + "has another type than the argument that it is");
    }
    if (!op.changesType && operand.type.dtype != type.dtype) {
      return malformed(what + "is a view of elements of another type");
    }
    const ir::Storage& storage = builder_.storage(operand.storage);
    if (type.extentBytes() > storage.bytes) {
      return malformed(what + "ends at byte " + std::to_string(type.extentBytes().value()) +
                       " of storage '" + storage.name + "', which has " +
                       std::to_string(storage.bytes.value()));
    }
    return addValue(tensor, type, operand.storage);
  }

  const Pt2Program& program_;
  Pt2Ops& ops_;
  ir::GraphBuilder builder_;
  std::vector<ir::ValueId> valueOf_;                         // by tensor of the program
  std::vector<llvm::SmallVector<ir::ValueId, 2>> valuesOf_;  // by storage
  std::vector<ir::ValueId> inputs_;
  std::vector<ir::ValueId> outputs_;
  llvm::StringSet<> names_;
  std::vector<const Pt2Op*> nodeOps_;
  Pt2Shapes shapes_;
  llvm::DenseSet<int32_t> moved_;  // storages that the archive has laid out otherwise
  int64_t totalBytes_ = 0;
  // Of the node being made:
  ir::Node node_;
  Pt2Results results_;
  llvm::SmallVector<std::pair<int32_t, ir::StorageId>, 2> groups_;
};

}  // namespace

std::string pt2Identifier(llvm::StringRef name) {
  std::string result;
  for (const char c : name) result += llvm::isAlnum(c) || c == '_' || c == '.' ? c : '_';
  return result.empty() ? "value" : result;
}

std::string describePt2Node(const Pt2Program& program, size_t position) {
  const Pt2Node& node = program.nodes[position];
  return "node " + std::to_string(position) + " '" + node.name + "' (" + node.target + ")";
}

ir::Error inPt2Node(const Pt2Program& program, size_t position, ir::Error error) {
  const ir::PlanError payload = ir::takePayload(std::move(error));
  return ir::makeError(payload.code(), describePt2Node(program, position) + ": " + payload.text());
}

ir::Expected<Pt2Graph> makePt2Graph(const Pt2Program& program, Pt2Ops& ops,
                                    const ir::Target& target, const std::string& name,
                                    ir::Provenance provenance) {
  return GraphMaker(program, ops, target, ir::GraphBuilder(name, std::move(provenance))).make();
}

}  // namespace stowage::runtime
