// SPDX-License-Identifier: Apache-2.0
//
// What a finished capture answers: values of persistent storages, and the scalars of the next step.
#include <ATen/core/Tensor.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "runtime/capture/capture.h"
#include "runtime/capture/captured_step_impl.h"
#include "runtime/capture/graph/construction.h"
#include "runtime/capture/graph/graph_replay.h"
#include "runtime/capture/host_state/host_rewind.h"
#include "runtime/capture/host_state/optimizer_state.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {
ScalarValue toScalarValue(const HostNumber& number) {
  return {.isInteger = number.isInteger, .value = number.value, .integer = number.integer};
}

CapturedStep::CapturedStep(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

CapturedStep::~CapturedStep() {
  if (!impl_->stored) impl_->restoreModule();
}

void CapturedStep::Impl::restoreModule() {
  if (!sharedWith.empty()) {  // captured whole: host numbers have gone on with the training
    if (isAwake) sleep();
    return;
  }
  moduleTensors.swapOut();
  if (!before) return;
  before->putBack();
  if (functions.hostState == HostState::kDeclared) rewindHost();
}

CapturedStep::Impl& CapturedStep::internals() { return *impl_; }
ir::Error CapturedStep::checkUnchanged() const {
  if (TracingScope::isOnThisThread()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "a WithoutMemory scope is open, expected it to end before a step");
  }
  return impl_->modes.checkUnchanged();
}
const ir::Graph& CapturedStep::graph() const { return impl_->assembled.graph; }
const std::vector<ir::ValueId>& CapturedStep::inputs() const { return impl_->inputs; }
const std::vector<ir::ValueId>& CapturedStep::reports() const { return impl_->reports; }
const std::vector<ir::ValueId>& CapturedStep::readBacks() const { return impl_->readBacks; }

const ModuleTensor* CapturedStep::Impl::moduleTensorOf(ir::StorageId storage) const {
  return moduleTensors.find(assembled.keys[storage.index()]);
}

const StorageFacts& CapturedStep::Impl::factsOf(ir::StorageId storage) const {
  return *storages.find(assembled.keys[storage.index()]);
}

HostProgress CapturedStep::hostProgress() const {
  HostProgress progress;
  const OptimizerList& optimizers = impl_->functions.optimizer;
  for (const auto& optimizer : optimizers) {
    llvm::append_range(progress.learningRates, optimizer->learningRates());
  }
  for (const ModuleTensor& entry : impl_->moduleTensors.all()) {
    if (const std::optional<double> count = stepCountOf(optimizers, entry.tensor)) {
      progress.stepCounts.emplace(entry.name, *count);
    }
  }
  return progress;
}

void CapturedStep::setLearningRates(const std::vector<double>& rates) {
  llvm::ArrayRef<double> left(rates);
  for (const auto& optimizer : impl_->functions.optimizer) {
    const size_t groups = std::min(optimizer->learningRates().size(), left.size());
    optimizer->setLearningRates(left.take_front(groups));
    left = left.drop_front(groups);
  }
}

FirstValue CapturedStep::firstValue(ir::StorageId storage) const {
  if (mainStorageOf(storage).isValid()) return FirstValue::kShared;
  if (const ModuleTensor* entry = impl_->moduleTensorOf(storage)) {
    return entry->madeAs == 0 ? FirstValue::kLive : FirstValue::kConstruction;
  }
  const StorageFacts& facts = impl_->factsOf(storage);
  return facts.real || facts.handFilled ? FirstValue::kLive : FirstValue::kStep;
}

at::Tensor CapturedStep::liveValue(ir::StorageId storage) const {
  if (const ModuleTensor* entry = impl_->moduleTensorOf(storage)) {
    return entry->original.defined() ? bytesTensor(entry->original.storage()) : at::Tensor();
  }
  const StorageFacts& facts = impl_->factsOf(storage);
  impl_->outside.take(graph().storage(storage).name, facts);
  return facts.contents.defined() ? facts.contents : bytesTensor(facts.real);
}

void CapturedStep::releaseLiveValues() { impl_->moduleTensors.releaseOriginals(); }

ir::Error CapturedStep::replayConstruction(const std::function<bool(ir::StorageId)>& wanted,
                                           const Deliver& deliver) const {
  std::unordered_map<FakeId, ir::StorageId> targets;
  Construction* construction = nullptr;
  for (const ModuleTensor& entry : impl_->moduleTensors.all()) {
    if (entry.madeAs == 0) continue;
    auto* maker = static_cast<Construction*>(const_cast<void*>(entry.maker.get()));
    if (construction != nullptr && maker != construction) {
      return ir::makeError(ir::ErrorCode::kUnsupported,
                           "the model was built in several WithoutMemory scopes, expected one");
    }
    construction = maker;
    const ir::StorageId id = impl_->idOf.at(entry.id);
    if (wanted(id)) targets.emplace(entry.madeAs, id);
  }
  if (targets.empty()) return ir::success();
  return construction->replay(
      [&](FakeId id) { return targets.contains(id); },
      [&](FakeId id, const at::Tensor& bytes) { return deliver(targets.at(id), bytes); });
}

/// Has a tensor without memory a value between steps?
bool CapturedStep::Impl::isKept(const at::Tensor& tensor) const {
  const auto id = idOf.find(fakeId(tensor));
  return isFake(tensor) && id != idOf.end() && assembled.graph.storage(id->second).persistent;
}

ir::Expected<at::Tensor> CapturedStep::makeState(ir::StorageId storage,
                                                 const ValueOf& valueOf) const {
  return impl_->firstValues->make(impl_->assembled.keys[storage.index()],
                                  [&](StorageKey key) { return valueOf(impl_->idOf.at(key)); });
}

ir::Error CapturedStep::storeTo(const ValueOf& bytesOf) {
  if (impl_->stored) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "storeTo has given the tensors back already: they are the module's");
  }
  std::vector<std::pair<at::Tensor, FakeId>> held;
  for (const ModuleTensor& entry : impl_->moduleTensors.all()) {
    held.emplace_back(entry.tensor, entry.id);
  }
  for (const ModuleTensor& entry : impl_->moduleTensors.all()) {
    forEachStateTensor(impl_->functions.optimizer, entry.tensor,
                       [&](llvm::StringRef, ir::Role, const at::Tensor& tensor) {
                         if (impl_->isKept(tensor)) held.emplace_back(tensor, fakeId(tensor));
                       });
  }
  std::unordered_map<FakeId, c10::Storage> storages;
  for (auto& entry : held) {
    c10::Storage& storage = storages[entry.second];
    if (!storage) {
      ir::Expected<at::Tensor> bytes = bytesOf(impl_->idOf.at(entry.second));
      if (!bytes) return bytes.takeError();
      storage = bytes->storage();
    }
    const auto give = [&] { entry.first.set_data(makeTensor(storage, shapeOf(entry.first))); };
    if (ir::Error error = callTorch("storing a tensor back", give)) return error;
  }
  if (ir::Error error = impl_->storeOutsideTensors(bytesOf)) return error;
  if (ir::Error error = impl_->storeGradients(bytesOf)) return error;
  forgetWorkingTensors(impl_->functions.optimizer);
  impl_->stored = true;
  return ir::success();
}

ir::Error CapturedStep::Impl::storeOutsideTensors(const ValueOf& bytesOf) {
  for (size_t i = 0; i < assembled.keys.size(); ++i) {
    const ir::StorageId id(i);
    const ir::Storage& storage = assembled.graph.storage(id);
    const StorageFacts* facts = storages.find(assembled.keys[i]);
    const bool isWritten = storage.persistent && storage.role != ir::Role::kConstant;
    if (!isWritten || facts == nullptr || !facts->real) continue;
    ir::Expected<at::Tensor> bytes = bytesOf(id);
    if (!bytes) return bytes.takeError();
    const auto give = [&] { bytesTensor(facts->real).copy_(*bytes); };
    if (ir::Error error = callTorch("storing '" + storage.name + "' back", give)) return error;
  }
  return ir::success();
}

namespace {
/// Is the first thing that a step does with it to write it whole? Then no plan keeps it from step
/// to step.
bool beginsOverwritten(const StepTrace& step, StorageKey key) {
  for (const TracedNode& node : step.nodes) {
    for (const ir::Node::Write& write : node.writes) {
      if (step.tensors[write.value].storage == key) return write.whole;
    }
    for (const ir::Argument& argument : node.args) {
      const auto* value = std::get_if<ir::ValueArg>(&argument);
      if (value != nullptr && step.tensors[value->value].storage == key) return false;
    }
  }
  return false;
}
}  // namespace

bool CapturedStep::Impl::keepsGradient(const at::Tensor& gradient) const {
  const auto id = idOf.find(fakeId(gradient));
  return id != idOf.end() && assembled.graph.storage(id->second).persistent &&
         !beginsOverwritten(steps.back().trace, fakeId(gradient));
}

ir::Error CapturedStep::Impl::storeGradients(const ValueOf& bytesOf) {
  for (const ModuleTensor& entry : moduleTensors.all()) {
    at::Tensor gradient = entry.tensor.grad();
    if (entry.role != ir::Role::kParameter || !isFake(gradient)) continue;
    if (!keepsGradient(gradient)) {
      at::Tensor(entry.tensor).mutable_grad().reset();
      continue;
    }
    ir::Expected<at::Tensor> bytes = bytesOf(idOf.at(fakeId(gradient)));
    if (!bytes) return bytes.takeError();
    const auto give = [&] { gradient.set_data(makeTensor(bytes->storage(), shapeOf(gradient))); };
    if (ir::Error error = callTorch("storing a gradient back", give)) return error;
  }
  return ir::success();
}

void CapturedStep::Impl::rewindHost() {
  if (!hostNumbers.empty()) hostNumbers.front().putBack();
  rewindSchedulers(functions.schedulers, savedCounts);
  if (functions.rewind) functions.rewind();
}

ir::Error CapturedStep::Impl::checkRewind() {
  if (functions.hostState == HostState::kHidden) {
    hostNumbers.front().putBack();
    return ir::success();
  }
  rewindHost();
  ir::Expected<std::vector<ScalarValue>> values = scalarsByTracing({});
  rewindHost();
  if (!values) return values.takeError();
  const std::vector<ScalarValue> seen = scalarsSeenIn(0);
  for (size_t i = 0; i < seen.size(); ++i) {
    // What the first step lacks was seen with the number of the second.
    if (firstValues->alignment().firstOf[stepScalars[i].node] < 0) continue;
    const bool same = (*values)[i].integer == seen[i].integer &&
                      ((*values)[i].value == seen[i].value || std::isnan(seen[i].value));
    if (same) continue;
    const uint32_t node = stepScalars[i].node;
    const std::string number =
        "a host number of " + steps.back().trace.nodes[node].op->name + placeOf(node);
    return ir::makeError(
        ir::ErrorCode::kUnsupported,
        functions.whole
            ? number +
                  " was another one when the step ran again from its beginning: what the step "
                  "counts or draws itself could not be put back; give it to the step as an "
                  "argument (a tensor), or set it before the step"
            : number +
                  " is not put back by rewinding the optimizer, the schedulers and `rewind`: "
                  "name what holds it there, or leave hostState kHidden");
  }
  return ir::success();
}

ir::Error CapturedStep::beginSteps() {
  if (!std::exchange(impl_->begun, true)) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "another runner has taken steps of this captured step, whose host numbers "
                       "went on with it; capture again for a second one");
}

}  // namespace stowage::runtime
