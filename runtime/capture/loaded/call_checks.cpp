// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/loaded/call_checks.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <string>
#include <utility>

#include "ir/base/affix.h"
#include "ir/graph/op_table.h"
#include "ir/text/literal.h"
#include "runtime/capture/fake/fake_values.h"
#include "runtime/capture/loaded/index_sources.h"
#include "runtime/capture/ops/call_results.h"
#include "runtime/capture/ops/op_facts.h"
#include "runtime/capture/pt2/pt2_shapes.h"
#include "runtime/capture/trace/trace.h"
#include "runtime/torch/op_call.h"
#include "runtime/torch/torch_boundary.h"
#include "runtime/torch/torch_types.h"

namespace stowage::runtime {
namespace {

ir::Error wrong(const std::string& message) {
  return ir::makeError(ir::ErrorCode::kParse, message);
}

/// The same element type and sizes, and as many bytes without gaps: how a kernel lays out what it
/// makes may depend on the machine.
bool isSameButForLayout(const ir::TensorType& a, const ir::TensorType& b) {
  return a.dtype == b.dtype && a.sizes == b.sizes && a.offset == b.offset &&
         (a == b || llvm::is_contained(a.sizes, 0) || (a.isDense() && b.isDense()));
}

std::string describe(const ir::TensorType& type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  ir::writeType(os, type);
  return os.str();
}

/// Of dimensions by stride, each must reach beyond all that the ones before it touch.
bool mayHoldAByteTwice(const ir::TensorType& type) {
  llvm::SmallVector<std::pair<int64_t, int64_t>, 4> dims;  // stride, size
  for (size_t i = 0; i < type.sizes.size(); ++i) {
    if (type.sizes[i] == 0) return false;
    if (type.sizes[i] > 1) dims.emplace_back(type.strides[i], type.sizes[i]);
  }
  llvm::sort(dims);
  int64_t reach = 0;  // the last element that was touched
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

template <typename Visitor>
void forEachValue(const ir::Argument& argument, Visitor visit) {
  if (const auto* single = std::get_if<ir::ValueArg>(&argument)) {
    if (single->value.isValid()) visit(single->value);
  } else if (const auto* list = std::get_if<ir::ValueList>(&argument)) {
    for (const ir::ValueArg& element : *list) {
      if (element.value.isValid()) visit(element.value);
    }
  }
}

class CallChecker {
 public:
  CallChecker(const ir::Graph& graph, const ir::Target& target)
      : graph_(graph), target_(target), values_(target.device) {}

  ir::Expected<std::optional<WrongCall>> check() {
    if (ir::Error error = values_.addAll(graph_)) return error;
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const ir::NodeId node(i);
      if (!permitted_.allows(graph_.node(node).op)) continue;
      ir::Error error = checkCall(node);
      if (!error) continue;
      ir::PlanError payload = ir::takePayload(std::move(error));
      if (payload.code() == ir::ErrorCode::kOutOfDeviceMemory) {
        return ir::makeError(std::move(payload));
      }
      return WrongCall{node, ir::ErrorCode::kParse, payload.text()};
    }
    return std::nullopt;
  }

 private:
  const at::Tensor& tensorOf(ir::ValueId value) const { return values_.tensorOf(value); }
  std::string nameOf(ir::ValueId value) const { return "%" + graph_.value(value).name; }

  ir::Error checkCall(ir::NodeId id) {
    const std::string where = graph_.describeNode(id);
    ir::Expected<OpCall> call = prepareCall(graph_, id, CallForm::kAsCaptured,
                                            [&](ir::ValueId value) { return tensorOf(value); });
    if (!call) return call.takeError();
    const OpFacts& facts = facts_.lookUp(call->op);
    const ir::Node& node = graph_.node(id);
    ir::Error error = checkWrites(node, facts);
    if (!error) error = checkDevices(node, facts);
    if (!error) error = checkResults(node, facts, call->stack);
    if (!error) error = checkIndexSources(graph_, id);
    if (!error) return ir::success();
    ir::PlanError payload = ir::takePayload(std::move(error));
    return ir::makeError(payload.code(), where + ": " + payload.text());
  }

  /// What the schema says is written is what the node says, each value once.
  ir::Error checkWrites(const ir::Node& node, const OpFacts& facts) const {
    llvm::SmallVector<ir::ValueId, 4> written;
    if (!facts.changesShape) {
      for (const uint32_t index : facts.writtenArguments) {
        if (index >= node.args.size()) continue;
        forEachValue(node.args[index], [&](ir::ValueId value) { written.push_back(value); });
      }
    }
    for (const ir::ValueId value : written) {
      const bool isSaid = llvm::any_of(
          node.writes, [&](const ir::Node::Write& write) { return write.value == value; });
      if (!isSaid) {
        return wrong("the op writes " + nameOf(value) + ", found it read only, expected 'inout " +
                     nameOf(value) + "'");
      }
    }
    for (const ir::Node::Write& write : node.writes) {
      if (!llvm::is_contained(written, write.value)) {
        return wrong("the op does not write " + nameOf(write.value) + ", found it written, " +
                     "expected '" + nameOf(write.value) + "'");
      }
      if (write.whole && !facts.overwrites) {
        return wrong("the op reads " + nameOf(write.value) + " before it writes it, found 'out " +
                     nameOf(write.value) + "', expected 'inout " + nameOf(write.value) + "'");
      }
    }
    return checkWrittenOnce(written);
  }

  /// Elements and lists are worked on side by side: what is there twice is written by two at once.
  ir::Error checkWrittenOnce(llvm::ArrayRef<ir::ValueId> written) const {
    for (size_t i = 0; i < written.size(); ++i) {
      if (mayHoldAByteTwice(graph_.value(written[i]).type)) {
        return wrong(nameOf(written[i]) + " is written and has elements at one place, expected a " +
                     "place for each");
      }
      for (size_t k = i + 1; k < written.size(); ++k) {
        if (!shareBytes(written[i], written[k])) continue;
        return wrong(nameOf(written[i]) + " is written twice, also as " + nameOf(written[k]));
      }
    }
    return ir::success();
  }

  bool shareBytes(ir::ValueId a, ir::ValueId b) const {
    const ir::Value& first = graph_.value(a);
    const ir::Value& second = graph_.value(b);
    if (a == b) return true;
    if (first.storage != second.storage) return false;
    const auto begin = [](const ir::TensorType& type) {
      return Bytes(type.offset * ir::elementBytes(type.dtype));
    };
    return begin(first.type) < second.type.extentBytes() &&
           begin(second.type) < first.type.extentBytes();
  }

  /// Kernels of a GPU follow pointers to its memory; libtorch lets host tensors of one number in,
  /// whose value it reads itself, and copies from and to the host.
  ir::Error checkDevices(const ir::Node& node, const OpFacts& facts) const {
    if (values_.device().is_cpu()) return ir::success();
    const std::string& op = facts.name;
    const bool moves = ir::startsWith(op, "aten.copy_.") || ir::startsWith(op, "aten._to_copy.") ||
                       ir::startsWith(op, "aten.index");
    ir::ValueId onHost;
    bool anyOnDevice = false;
    ir::forEachTensorArgument(node, [&](ir::ValueId value) {
      const at::Tensor& tensor = tensorOf(value);
      anyOnDevice = anyOnDevice || !tensor.is_cpu();
      if (tensor.is_cpu() && tensor.numel() != 1) onHost = value;
    });
    if (moves || !anyOnDevice || !onHost.isValid()) return ir::success();
    return wrong(nameOf(onHost) + " is on the host, expected operands on the device");
  }

  ir::Error checkResults(const ir::Node& node, const OpFacts& facts,
                         const std::vector<c10::IValue>& stack) const {
    if (facts.resultsBy == ResultsBy::kNothing) return ir::success();
    if (facts.ruleOnlyForCpu && !values_.device().is_cpu()) return ir::success();
    const TracedCall call{
        .op = facts, .args = stack, .target = target_, .device = deviceOfCall(stack)};
    ir::Expected<Outputs> outputs = callTorch("", [&] {
      const at::AutoDispatchBelowADInplaceOrView below;
      return findOutputs(call);
    });
    if (!outputs) return outputs.takeError();
    llvm::SmallVector<const OutputTensor*, 4> tensors;
    for (const Output& output : *outputs) {
      for (const OutputTensor& tensor : output.tensors) tensors.push_back(&tensor);
    }
    if (node.results.empty()) return ir::success();  // nothing is said of them
    if (tensors.size() != node.results.size()) {
      return wrong("found " + std::to_string(node.results.size()) + " results, expected " +
                   std::to_string(tensors.size()));
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!node.results[i].isValid()) continue;
      if (ir::Error error = checkResult(node, node.results[i], *tensors[i], call)) return error;
    }
    return checkGroups(node, tensors);
  }

  ir::Error checkResult(const ir::Node& node, ir::ValueId result, const OutputTensor& made,
                        const TracedCall& call) const {
    const std::string found = "found result " + nameOf(result);
    const ir::Value& value = graph_.value(result);
    if (made.kind == OutputTensor::Kind::kUndefined) return wrong(found + ", expected '_'");
    if (made.kind == OutputTensor::Kind::kFresh) {
      return checkFresh(node, value, found, made, call);
    }
    const bool isArgument = made.kind == OutputTensor::Kind::kArgument;
    const ir::TensorType type = irType(isArgument ? shapeOf(made.base) : made.shape);
    if (!atSamePlaces(value.type, type)) {
      return wrong(found + " of type " + describe(value.type) + ", expected " + describe(type));
    }
    const bool shares = tensorOf(result).storage().unsafeGetStorageImpl() ==
                        made.base.storage().unsafeGetStorageImpl();
    if (!shares) return wrong(found + " with a storage of its own, expected an operand's");
    return ir::success();
  }

  ir::Error checkFresh(const ir::Node& node, const ir::Value& value, const std::string& found,
                       const OutputTensor& made, const TracedCall& call) const {
    const ir::TensorType type = irType(made.shape);
    if (!isSameButForLayout(value.type, type)) {
      return wrong(found + " of type " + describe(value.type) + ", expected " + describe(type));
    }
    bool isOperand = false;
    ir::forEachTensorArgument(node, [&](ir::ValueId operand) {
      isOperand = isOperand || graph_.value(operand).storage == value.storage;
    });
    if (isOperand) return wrong(found + " in an operand's storage, expected one of its own");
    const ir::Storage& storage = graph_.storage(value.storage);
    const Bytes bytes = std::max(type.extentBytes(), Bytes(made.storageBytes));
    if (storage.bytes != bytes) {
      return wrong(found + " in a storage of " + std::to_string(storage.bytes.value()) +
                   " bytes, expected " + std::to_string(bytes.value()));
    }
    const bool isMadeOnHost = made.device.value_or(call.device).is_cpu();
    const bool isOnHost = storage.home == ir::Space::kHost || values_.device().is_cpu();
    if (isMadeOnHost != isOnHost) {
      return wrong(found + (isOnHost ? " on the host" : " on the device") +
                   ", expected it on the " + (isOnHost ? "device" : "host"));
    }
    return ir::success();
  }

  /// Fresh results share a storage where the op lets them, and nowhere else.
  ir::Error checkGroups(const ir::Node& node, llvm::ArrayRef<const OutputTensor*> tensors) const {
    const auto isFresh = [&](size_t i) {
      return node.results[i].isValid() && tensors[i]->kind == OutputTensor::Kind::kFresh;
    };
    const auto storageOf = [&](size_t i) { return graph_.value(node.results[i]).storage; };
    for (size_t i = 0; i < tensors.size(); ++i) {
      for (size_t k = i + 1; k < tensors.size(); ++k) {
        if (!isFresh(i) || !isFresh(k)) continue;
        const int32_t group = tensors[i]->storageGroup;
        const bool share = group >= 0 && group == tensors[k]->storageGroup;
        if (share == (storageOf(i) == storageOf(k))) continue;
        return wrong("found results " + nameOf(node.results[i]) + " and " +
                     nameOf(node.results[k]) + (share ? " in two storages" : " in one storage") +
                     ", expected " + (share ? "one" : "two"));
      }
    }
    return ir::success();
  }

  const ir::Graph& graph_;
  const ir::Target& target_;
  FakeValues values_;
  OpFactsTable facts_;
  PermittedOps permitted_;
};

}  // namespace

ir::Expected<std::optional<WrongCall>> findWrongCall(const ir::Graph& graph,
                                                     const ir::Target& target) {
  return CallChecker(graph, target).check();
}

}  // namespace stowage::runtime
