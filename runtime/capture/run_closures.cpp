// SPDX-License-Identifier: Apache-2.0
//
// Runs the closures of a step on tensors without memory, for capture and while a plan runs.
// Not here: what is made of their calls (capture.cpp, retrace.cpp).
#include <optional>
#include <utility>

#include "runtime/capture/captured_step_impl.h"
#include "runtime/capture/graph/known_values.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {

std::vector<at::Tensor> CapturedStep::Impl::argumentsOfLoss() const {
  std::vector<at::Tensor> arguments;
  for (const auto& [name, tensor] : inputTensors) arguments.push_back(tensor);
  return arguments;
}

void CapturedStep::Impl::noteGradients() {
  gradients.clear();
  for (const ModuleTensor& entry : moduleTensors.all()) {
    if (entry.role != ir::Role::kParameter || !entry.tensor.grad().defined()) continue;
    gradients.emplace_back(entry.tensor, entry.tensor.grad());
  }
}

ir::Error CapturedStep::Impl::runLoss(ObservedStep& observed) {
  const std::vector<at::Tensor> returned = functions.loss(argumentsOfLoss());
  noteGradients();
  if (ir::Error error = checkLoss(returned)) return error;
  for (const at::Tensor& report : returned) observed.reports.push_back(recorder.idOf(report));
  return ir::success();
}

InputValues CapturedStep::Impl::inputValues() const {
  InputValues values;
  const std::vector<at::Tensor> given =
      functions.inputValues ? functions.inputValues() : std::vector<at::Tensor>();
  for (size_t i = 0; i < given.size() && i < inputTensors.size(); ++i) {
    values.emplace(fakeId(inputTensors[i].second), given[i]);
  }
  return values;
}

std::optional<c10::Scalar> CapturedStep::Impl::knownValueOf(const at::Tensor& tensor) {
  const ir::ValueId id = recorder.idOf(tensor);
  const std::optional<KnownValue> known =
      findKnownValue(recorder.trace(), storages, id, inputValues(), device.is_cpu());
  if (!known) {
    if (functions.noteUnknownRead) functions.noteUnknownRead();
    return std::nullopt;
  }
  const NotTraced notTraced;
  const c10::Scalar value = known->value.item();
  if (known->usesInputs && isObserving) assumed.emplace_back(id, value.toDouble());
  if (known->usesInputs && functions.noteAssumption) functions.noteAssumption(value.toDouble());
  return value;
}

bool CapturedStep::inputsDiffer() const {
  const NotTraced notTraced;
  const InputValues values = impl_->inputValues();
  const StepTrace& step = impl_->steps.back().trace;
  for (const auto& [id, value] : impl_->assumed) {
    const std::optional<KnownValue> known =
        findKnownValue(step, impl_->storages, id, values, impl_->device.is_cpu());
    if (!known || known->value.item().toDouble() != value) return true;
  }
  return false;
}

ir::Error CapturedStep::Impl::runWhole(ObservedStep& observed) {
  bool hasUpdate = false;
  const std::vector<at::Tensor> returned = functions.whole(argumentsOfLoss(), [&] {
    recorder.beginUpdateAfterBackward();
    if (!std::exchange(hasUpdate, true)) noteGradients();
  });
  if (!functions.trains) {
    recorder.beginUpdate();  // an empty one
    noteGradients();
  } else if (!hasUpdate) {
    return ir::makeError(
        ir::ErrorCode::kInvalidArgument,
        "the step never calls step() of an optimizer that it names, expected it to "
        "in every step");
  }
  if (ir::Error error = checkLoss(returned)) return error;
  for (const at::Tensor& report : returned) observed.reports.push_back(recorder.idOf(report));
  return ir::success();
}

ir::Error CapturedStep::Impl::runStep(ObservedStep& observed) {
  if (functions.whole) return runWhole(observed);
  if (ir::Error error = runLoss(observed)) return error;
  recorder.beginUpdate();
  functions.update();
  return ir::success();
}

ir::Error CapturedStep::Impl::trace(const std::string& what,
                                    const std::function<ir::Error()>& run) {
  ir::Error error = callTorch(what, [&]() -> ir::Error {
    const TracingScope scope(tracer);
    std::optional<PinnedAttention> attention;
    if (device.is_cuda()) attention.emplace(options.target);
    return run();
  });
  return error ? explainThrown(std::move(error), tracer, recorder) : ir::success();
}

}  // namespace stowage::runtime
