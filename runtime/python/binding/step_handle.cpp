// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/binding/step_handle.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>
#include <torch/nn/module.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "ir/text/printer.h"
#include "runtime/capture/captured_step_impl.h"
#include "runtime/capture/dispatch/host_numbers.h"
#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/python/binding/throw_error.h"
#include "runtime/session_impl.h"

namespace stowage::python {
namespace {

/// A module that holds what Python's holds under the same names, and computes nothing.
struct ShellModule : torch::nn::Module {};

/// Storages that the step writes and that neither module nor optimizers hold.
int64_t countWrittenOutside(const Step& step) {
  const runtime::CapturedStep::Impl& captured = step.internals().captured->internals();
  const ir::Graph& graph = captured.assembled.graph;
  int64_t count = 0;
  for (size_t i = 0; i < graph.storages().size(); ++i) {
    const ir::Storage& storage = graph.storages()[i];
    if (!storage.persistent || storage.role == ir::Role::kConstant) continue;
    const runtime::StorageFacts* facts = captured.storages.find(captured.assembled.keys[i]);
    if (facts != nullptr && facts->real) ++count;
  }
  return count;
}

}  // namespace

torch::nn::Module& StepHandle::ownerOf(const std::string& path, std::string& name) {
  if (module_ == nullptr) module_ = std::make_shared<ShellModule>();
  llvm::SmallVector<llvm::StringRef, 8> parts;
  llvm::StringRef(path).split(parts, '.');
  name = parts.pop_back_val().str();
  std::shared_ptr<torch::nn::Module> owner = module_;
  for (const llvm::StringRef part : parts) {
    auto children = owner->named_children();
    std::shared_ptr<torch::nn::Module>* child = children.find(part.str());
    owner = child != nullptr ? *child
                             : owner->register_module<torch::nn::Module>(
                                   part.str(), std::make_shared<ShellModule>());
  }
  return *owner;
}

void StepHandle::addParameter(const std::string& path, at::Tensor tensor) {
  std::string name;
  torch::nn::Module& owner = ownerOf(path, name);
  const bool requiresGrad = tensor.requires_grad();
  owner.register_parameter(name, std::move(tensor), requiresGrad);
}

void StepHandle::addBuffer(const std::string& path, at::Tensor tensor) {
  std::string name;
  ownerOf(path, name).register_buffer(name, std::move(tensor));
}

void StepHandle::addOptimizer(std::vector<at::Tensor> parameters) {
  optimizers_.push_back(std::move(parameters));
}

std::vector<at::Tensor> StepHandle::runWhole(const std::vector<at::Tensor>& inputs,
                                             const runtime::NoteUpdate& noteUpdate) {
  arguments_ = inputs;
  reported_.clear();
  noteUpdate_ = noteUpdate;
  call_("run");
  noteUpdate_ = {};
  arguments_.clear();
  return std::exchange(reported_, {});
}

void StepHandle::capture(const std::string& device, std::vector<std::string> inputNames,
                         std::vector<at::Tensor> examples, bool eachStep, int64_t ranks) {
  device_ = device;
  detail::AnyStep step;
  step.ranks = ranks;
  captureStep(std::move(step), std::move(inputNames), std::move(examples), eachStep);
}

void StepHandle::captureFurther(const c10::intrusive_ptr<StepHandle>& main,
                                std::vector<std::string> inputNames,
                                std::vector<at::Tensor> examples, bool eachStep, bool trains) {
  detail::AnyStep step;
  main_ = main->step();
  step.functions.main = main_->internals().captured.get();
  step.functions.trains = trains;
  device_ = main->device_;
  captureStep(std::move(step), std::move(inputNames), std::move(examples), eachStep);
}

void StepHandle::captureStep(detail::AnyStep step, std::vector<std::string> inputNames,
                             std::vector<at::Tensor> examples, bool eachStep) {
  std::vector<std::shared_ptr<runtime::StepOptimizer>> optimizers;
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    optimizers.push_back(
        makePythonOptimizer(call_, static_cast<int64_t>(i), optimizers_[i], answer_));
  }
  step.functions.whole = [this](const std::vector<at::Tensor>& inputs,
                                const runtime::NoteUpdate& noteUpdate) {
    return runWhole(inputs, noteUpdate);
  };
  inputValues_ = examples;
  step.functions.inputValues = [this] { return inputValues_; };
  step.functions.noteAssumption = [this](double value) {
    answer_.numbers = {value};
    call_("note_assumption");
  };
  step.functions.noteUnknownRead = [this] { call_("note_unknown_read"); };
  step.functions.module = module_;
  step.functions.optimizer = runtime::OptimizerList(std::move(optimizers));
  step.functions.hostState = HostState::kDeclared;
  step.functions.rewind = [this] { call_.quietly("rewind", 0); };
  if (eachStep) step.functions.lossNumbers = LossNumbers::kEachStep;
  step.device = device_;
  step.deterministic = at::globalContext().deterministicAlgorithms();
  step.inputNames = std::move(inputNames);
  step_ = takeOrThrow(detail::tryCapture(std::move(step), examples));
}

void StepHandle::release() {
  step_.reset();
  main_.reset();
}

void StepHandle::noteUpdate() {
  if (noteUpdate_) noteUpdate_();
}

void StepHandle::setHostNumbers(bool areHostNumbers, bool takeValues) {
  runtime::setHostNumbers(areHostNumbers, takeValues);
}

bool StepHandle::holdsNoMemory(const at::Tensor& tensor) const { return runtime::isFake(tensor); }

void StepHandle::answerTensors(std::vector<std::string> names, std::vector<at::Tensor> tensors) {
  answer_.names = std::move(names);
  answer_.tensors = std::move(tensors);
}

void StepHandle::answerNumbers(std::vector<double> numbers) {
  answer_.numbers = std::move(numbers);
}

Step& StepHandle::step() {
  if (!step_) {
    throwError(ir::makeError(ir::ErrorCode::kInvalidArgument,
                             "the step is not captured (any more), expected capture() before"));
  }
  return *step_;
}

std::string StepHandle::graphText() const { return step_ ? ir::toText(step_->graph()) : ""; }

std::string StepHandle::describe() const {
  if (!step_) return "{}";
  const ir::Graph& graph = step_->graph();
  int64_t state = 0, inputs = 0;
  for (const ir::Storage& storage : graph.storages()) {
    if (storage.role == ir::Role::kInput) inputs += storage.bytes.value();
    if (storage.persistent) state += storage.bytes.value();
  }
  const nlohmann::ordered_json json = {{"device", ir::deviceKindName(step_->target().device)},
                                       {"target", step_->target().profile},
                                       {"ranks", graph.ranks()},
                                       {"nodes", graph.nodes().size()},
                                       {"storages", graph.storages().size()},
                                       {"state_bytes", state},
                                       {"input_bytes", inputs},
                                       {"written_outside", countWrittenOutside(*step_)}};
  return json.dump();
}

}  // namespace stowage::python
