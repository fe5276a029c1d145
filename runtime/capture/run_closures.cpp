// SPDX-License-Identifier: Apache-2.0
//
// Runs the closures of a step on tensors without memory, for capture and while a plan runs.
// Not here: what is made of their calls (capture.cpp, retrace.cpp).
#include <optional>
#include <utility>

#include "runtime/capture/captured_step_impl.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {

ir::Error CapturedStep::Impl::runLoss(ObservedStep& observed) {
  std::vector<at::Tensor> arguments;
  for (const auto& [name, tensor] : inputTensors) arguments.push_back(tensor);
  const std::vector<at::Tensor> returned = functions.loss(arguments);
  gradients.clear();
  for (const ModuleTensor& entry : moduleTensors.all()) {
    if (entry.role != ir::Role::kParameter || !entry.tensor.grad().defined()) continue;
    gradients.emplace_back(entry.tensor, entry.tensor.grad());
  }
  if (ir::Error error = checkLoss(returned)) return error;
  for (const at::Tensor& report : returned) observed.reports.push_back(recorder.idOf(report));
  return ir::success();
}

ir::Error CapturedStep::Impl::runStep(ObservedStep& observed) {
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
