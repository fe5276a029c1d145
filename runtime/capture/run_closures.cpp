// SPDX-License-Identifier: Apache-2.0
//
// Runs the closures of a step on tensors without memory, for capture and while a plan runs.
// Not here: what is made of their calls (capture.cpp, retrace.cpp).
#include <torch/csrc/autograd/graph_task.h>

#include <optional>
#include <utility>

#include "runtime/capture/captured_step_impl.h"
#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/capture/graph/known_values.h"
#include "runtime/torch/internals/sdpa_choice.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {
namespace {

template <typename Number>
std::vector<Number> elementsOf(const at::Tensor& tensor) {
  const at::Tensor values =
      tensor.detach().to(c10::CppTypeToScalarType<Number>::value).contiguous();
  const Number* data = values.const_data_ptr<Number>();
  return {data, data + values.numel()};
}

}  // namespace

std::vector<at::Tensor> CapturedStep::Impl::argumentsOfLoss() {
  std::vector<at::Tensor> arguments;
  std::vector<std::pair<at::Tensor, StorageKey>> inputsOfStep;
  for (const auto& [name, tensor] : inputTensors) {
    const auto bytes = static_cast<int64_t>(tensor.storage().nbytes());
    arguments.push_back(makeTensor(makeFakeStorage(bytes, device, false), shapeOf(tensor)));
    inputsOfStep.emplace_back(arguments.back(), fakeId(tensor));
  }
  storages.setInputs(inputsOfStep);
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

std::optional<KnownValue> CapturedStep::Impl::findKnown(const at::Tensor& tensor,
                                                        KnownFor purpose) {
  return findKnownValue(recorder.trace(), storages, recorder.idOf(tensor), inputValues(),
                        {.isOnCpu = device.is_cpu(), .purpose = purpose});
}

void CapturedStep::Impl::noteAssumed(const at::Tensor& tensor, std::optional<SizeQuestion> question,
                                     std::vector<double> answer) {
  for (const double number : answer) {
    if (functions.noteAssumption) functions.noteAssumption(number);
  }
  if (isObserving) assumed.push_back({recorder.idOf(tensor), question, std::move(answer)});
}

std::optional<c10::Scalar> CapturedStep::Impl::knownValueOf(const at::Tensor& tensor) {
  const std::optional<KnownValue> known = findKnown(tensor, KnownFor::kHost);
  if (!known) {
    if (functions.noteUnknownRead) functions.noteUnknownRead();
    return std::nullopt;
  }
  const NotTraced notTraced;
  const c10::Scalar value = known->value.item();
  if (known->usesInputs) noteAssumed(tensor, std::nullopt, {value.toDouble()});
  return value;
}

std::optional<int64_t> CapturedStep::Impl::sizeOf(const at::Tensor& tensor, SizeQuestion question) {
  const std::optional<KnownValue> known = findKnown(tensor, KnownFor::kSize);
  if (!known) return std::nullopt;
  const NotTraced notTraced;
  const std::optional<int64_t> size = answerOf(known->value, question);
  // Backward asks for what forward has asked before.
  const bool isInBackward = torch::autograd::get_current_graph_task_id() != -1;
  if (size && known->usesInputs && !isInBackward) {
    noteAssumed(tensor, question, {static_cast<double>(*size)});
  }
  return size;
}

std::optional<std::vector<int64_t>> CapturedStep::Impl::numbersOf(const at::Tensor& tensor) {
  const std::optional<KnownValue> known = findKnown(tensor, KnownFor::kSize);
  if (!known || !c10::isIntegralType(known->value.scalar_type(), /*includeBool=*/false)) {
    return std::nullopt;
  }
  const NotTraced notTraced;
  std::vector<int64_t> numbers = elementsOf<int64_t>(known->value);
  if (known->usesInputs) noteAssumed(tensor, std::nullopt, elementsOf<double>(known->value));
  return numbers;
}

bool CapturedStep::inputsDiffer() const {
  if (impl_->assumed.empty()) return false;
  const NotTraced notTraced;
  const InputValues values = impl_->inputValues();
  for (const Assumed& asked : impl_->assumed) {
    const std::optional<KnownValue> known =
        findKnownValue(impl_->steps.back().trace, impl_->storages, asked.tensor, values,
                       {.isOnCpu = impl_->device.is_cpu(),
                        .purpose = asked.question ? KnownFor::kSize : KnownFor::kHost});
    if (!known) return true;
    if (!asked.question) {
      if (elementsOf<double>(known->value) != asked.answer) return true;
      continue;
    }
    const std::optional<int64_t> size = answerOf(known->value, *asked.question);
    if (!size || static_cast<double>(*size) != asked.answer.front()) return true;
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
        "the step never calls step() of an optimizer that it names, expected it to in every step; "
        "where gradients accumulate over several batches, give all of them to one step");
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
    if (device.is_cuda()) attention.emplace(options.target, &isFake);
    return run();
  });
  return error ? explainThrown(std::move(error), tracer, recorder) : ir::success();
}

}  // namespace stowage::runtime
