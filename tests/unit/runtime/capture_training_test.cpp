// SPDX-License-Identifier: Apache-2.0
//
// Whole steps: small models with real optimizers, captured on the CPU.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "ir/printer.h"
#include "runtime/capture/capture.h"

namespace stowage::runtime {
namespace {

ir::Target cpuTarget() {
  ir::Target target;
  target.profile = "cpu";
  return target;
}

TEST(CaptureTraining, RecordsMultilayerPerceptron) {
  torch::nn::Sequential model(torch::nn::Linear(8, 16), torch::nn::GELU(), torch::nn::Linear(16, 4));
  torch::optim::AdamW optimizer(model->parameters(), 1e-3);
  StepFunctions functions;
  functions.module = model.ptr();
  functions.optimizer = &optimizer;
  functions.loss = [&](const std::vector<at::Tensor>& inputs) {
    at::Tensor loss = torch::nn::functional::cross_entropy(model->forward(inputs[0]), inputs[1]);
    loss.backward();
    return std::vector<at::Tensor>{loss};
  };
  functions.update = [&] {
    optimizer.step();
    optimizer.zero_grad();
  };
  auto step = captureStep(functions, {{"x", {2, 8}, torch::kFloat}, {"y", {2}, torch::kLong}},
                          {.target = cpuTarget()});
  ASSERT_TRUE(bool(step)) << ir::describe(step.takeError());
  puts(ir::toText((*step)->graph()).c_str());
}

}  // namespace
}  // namespace stowage::runtime
