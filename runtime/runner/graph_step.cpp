// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner/graph_step.h"

#include <ATen/ops/zeros.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringRef.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/calibrate/valid_values.h"
#include "runtime/executor/scalar_feed.h"
#include "runtime/torch/torch_boundary.h"
#include "runtime/torch/torch_types.h"

namespace stowage::runtime {

namespace {

bool isFloatingPoint(ir::DType dtype) { return at::isFloatingType(toScalarType(dtype)); }

bool isOneNumber(const ir::Value& value) {
  return value.type.numElements() == 1 && isFloatingPoint(value.type.dtype);
}

/// What the graph says a storage is, before it speaks of views.
ir::ValueId findDeclaredValue(const ir::Graph& graph, ir::StorageId storage) {
  for (size_t i = 0; i < graph.values().size(); ++i) {
    if (graph.values()[i].storage == storage) return ir::ValueId(i);
  }
  return {};
}

/// All that a step reports of a storage: the largest contiguous tensor in it.
ir::ValueId findWholeValue(const ir::Graph& graph, ir::StorageId storage) {
  ir::ValueId whole;
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const ir::Value& value = graph.values()[i];
    if (value.storage != storage || !value.type.isContiguous()) continue;
    const bool isLarger =
        !whole.isValid() || value.type.numElements() > graph.value(whole).type.numElements();
    if (isLarger) whole = ir::ValueId(i);
  }
  return whole;
}

/// A storage's bytes as a tensor.
at::Tensor viewAs(const ir::TensorType& type, const at::Tensor& bytes) {
  return bytes.view(toScalarType(type.dtype))
      .as_strided({type.sizes.data(), type.sizes.size()},
                  {type.strides.data(), type.strides.size()}, type.offset);
}

bool readByOptimizerAlone(const ir::Graph& graph, ir::StorageId storage) {
  bool isRead = false;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto accesses = graph.accesses(ir::NodeId(i));
    if (llvm::none_of(accesses, [&](const ir::Access& one) { return one.storage == storage; })) {
      continue;
    }
    if (graph.nodes()[i].phase != ir::Phase::kOptimizer) return false;
    isRead = true;
  }
  return isRead;
}

/// Where integers come from an input: the storage itself and integers made of it.
class IntegerFlow {
 public:
  IntegerFlow(const ir::Graph& graph, ir::StorageId input)
      : graph_(graph), input_(input), isOfInput_(graph.storages().size(), false) {
    isOfInput_[input.index()] = true;
  }

  InputBound follow() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) visit(ir::NodeId(i));
    return {.bound = bound_.value_or(2), .isIndex = isIndex_};
  }

 private:
  void visit(ir::NodeId node) {
    bool reads = false;
    ir::forEachTensorArgument(graph_.node(node), [&](ir::ValueId id) {
      const ir::Value& value = graph_.value(id);
      if (!isOfInput_[value.storage.index()]) return;
      reads = true;
      const std::optional<int64_t> bound = findIntegerBound(graph_, node, id);
      if (!bound) return;
      bound_ = std::min(bound_.value_or(*bound), *bound);
      const bool looksUp = graph_.node(node).op == "aten.embedding.default";
      isIndex_ |= looksUp && value.storage == input_;
    });
    if (!reads) return;
    for (const ir::ValueId result : graph_.node(node).results) {
      if (!result.isValid()) continue;
      const ir::Value& made = graph_.value(result);
      if (ir::elementBytes(made.type.dtype) < 4 || isFloatingPoint(made.type.dtype)) continue;
      isOfInput_[made.storage.index()] = true;
    }
  }

  const ir::Graph& graph_;
  ir::StorageId input_;
  std::vector<bool> isOfInput_;
  std::optional<int64_t> bound_;
  bool isIndex_ = false;
};

}  // namespace

ir::Expected<std::unique_ptr<GraphStep>> GraphStep::make(const ir::Graph& graph,
                                                         FirstBytes firstBytes) {
  std::unique_ptr<GraphStep> step(new GraphStep(graph, std::move(firstBytes)));
  if (ir::Error error = step->findInputs()) return error;
  if (ir::Error error = step->checkState()) return error;
  if (ir::Error error = step->findReports()) return error;
  return step;
}

ir::Error GraphStep::findInputs() {
  for (size_t i = 0; i < graph_.storages().size(); ++i) {
    const ir::Storage& storage = graph_.storages()[i];
    if (storage.role != ir::Role::kInput) continue;
    const ir::ValueId value = findDeclaredValue(graph_, ir::StorageId(i));
    if (!value.isValid() || !graph_.value(value).type.covers(storage.bytes)) {
      return ir::makeError(ir::ErrorCode::kUnsupported,
                           "input '" + storage.name +
                               "' has gaps between its elements or shares some, expected one that "
                               "is dense; export the step so");
    }
    inputs_.push_back(value);
    if (isOneNumber(graph_.value(value)) && readByOptimizerAlone(graph_, ir::StorageId(i))) {
      learningRates_.push_back(value);
    }
  }
  return ir::success();
}

ir::Error GraphStep::findReports() {
  for (size_t i = 0; i < graph_.storages().size(); ++i) {
    if (!graph_.storages()[i].output) continue;
    const ir::ValueId value = findWholeValue(graph_, ir::StorageId(i));
    if (value.isValid()) reports_.push_back(value);
  }
  const auto isLoss = [&](ir::ValueId id) {
    return isOneNumber(graph_.value(id)) && graph_.storage(graph_.value(id).storage).name == "loss";
  };
  const auto isNumber = [&](ir::ValueId id) { return isOneNumber(graph_.value(id)); };
  auto loss = llvm::find_if(reports_, isLoss);
  if (loss == reports_.end()) loss = llvm::find_if(reports_, isNumber);
  if (loss == reports_.end()) {
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         "the step reports no loss, expected an output that is one number");
  }
  std::rotate(reports_.begin(), loss, loss + 1);
  return ir::success();
}

ir::Error GraphStep::checkState() const {
  for (size_t i = 0; i < graph_.storages().size(); ++i) {
    const ir::Storage& storage = graph_.storages()[i];
    const bool isUnknown = storage.persistent && storage.role == ir::Role::kRng;
    if (!isUnknown) continue;
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         "'" + storage.name + "' is a generator's state that lives as a tensor");
  }
  return ir::success();
}

std::vector<ir::StorageId> GraphStep::givenStorages() const {
  std::vector<ir::StorageId> given;
  for (size_t i = 0; i < graph_.storages().size(); ++i) {
    const ir::Storage& storage = graph_.storages()[i];
    const bool isGiven =
        storage.persistent &&
        (storage.role == ir::Role::kParameter || storage.role == ir::Role::kFrozen ||
         storage.role == ir::Role::kBuffer || storage.role == ir::Role::kConstant);
    if (isGiven) given.emplace_back(i);
  }
  return given;
}

ir::Expected<std::vector<ScalarValue>> GraphStep::nextScalars(const StepCheck& /*check*/) {
  CapturedScalars feed(graph_);
  ir::Expected<llvm::ArrayRef<ScalarValue>> values = feed.join();
  if (!values) return values.takeError();
  return values->vec();
}

at::Tensor GraphStep::liveValue(ir::StorageId /*storage*/) const { return {}; }

ir::Error GraphStep::replayConstruction(const std::function<bool(ir::StorageId)>& /*wanted*/,
                                        const Deliver& /*deliver*/) const {
  return ir::success();
}

ir::StorageId GraphStep::parameterOf(ir::StorageId master) const {
  llvm::StringRef name(graph_.storage(master).name);
  if (!name.consume_front("master(") || !name.consume_back(")")) return {};
  for (size_t i = 0; i < graph_.storages().size(); ++i) {
    if (graph_.storages()[i].name == name) return ir::StorageId(i);
  }
  return {};
}

ir::Expected<at::Tensor> GraphStep::makeState(ir::StorageId storage, const ValueOf& valueOf) const {
  const ir::Storage& info = graph_.storage(storage);
  if (llvm::is_contained(givenStorages(), storage)) return firstBytes_(storage);
  if (info.role != ir::Role::kMaster) return at::zeros({info.bytes.value()}, at::kByte);
  const ir::StorageId parameter = parameterOf(storage);
  if (!parameter.isValid()) return firstBytes_(storage);
  const ir::ValueId from = findDeclaredValue(graph_, parameter);
  const ir::ValueId to = findDeclaredValue(graph_, storage);
  if (!from.isValid() || !to.isValid()) return firstBytes_(storage);
  const ir::TensorType& read = graph_.value(from).type;
  const ir::TensorType& written = graph_.value(to).type;
  if (read.sizes != written.sizes) return firstBytes_(storage);
  ir::Expected<at::Tensor> bytes = valueOf(parameter);
  if (!bytes) return bytes.takeError();
  at::Tensor made;
  if (ir::Error error = callTorch("copying '" + info.name + "' from its parameter", [&] {
        made = at::zeros({info.bytes.value()}, at::kByte);
        viewAs(written, made).copy_(viewAs(read, *bytes));
      })) {
    return error;
  }
  return made;
}

ir::Error GraphStep::storeTo(const ValueOf& /*bytesOf*/) { return ir::success(); }

InputBound findInputBound(const ir::Graph& graph, ir::StorageId input) {
  return IntegerFlow(graph, input).follow();
}

}  // namespace stowage::runtime
