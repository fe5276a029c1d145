// SPDX-License-Identifier: Apache-2.0
//
// The imported small step does what its archive says: every tensor of the program is as imported
// when its nodes run for real, and three steps of the graph give the bits of the same step written
// with libtorch's autograd. A schedule of learning rates is followed, since the rate is an input.

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/capture/pt2/pt2_import.h"
#include "runtime/capture/pt2/pt2_json.h"
#include "runtime/runner/replay.h"
#include "tests/support/pt2_replay.h"
#include "tests/support/small_pt2.h"

namespace stowage::tests {
namespace {

constexpr int kSteps = 3;
constexpr std::array<double, kSteps> kRates = {1e-2, 5e-3, 1e-4};

/// The step's inputs by position: w, m, v, step, lr, x, t.
std::vector<at::Tensor> firstValues() {
  at::manual_seed(7);
  return {at::randn({3, 2}), at::zeros({3, 2}), at::zeros({3, 2}), at::zeros({}),
          at::zeros({}),     at::randn({4, 3}), at::randn({4, 2})};
}

/// The same step with autograd; changes the values in place and returns the loss.
at::Tensor runEager(std::vector<at::Tensor>& values) {
  at::Tensor weight = values[0].detach().requires_grad_();
  at::Tensor hidden = values[5].mm(weight);
  hidden.mul_(0.5);
  const at::Tensor difference = hidden + at::empty_like(hidden).uniform_() - values[6];
  const at::Tensor loss = (difference * difference).sum();
  loss.backward();
  const at::NoGradGuard noGrad;
  at::_foreach_add_({values[3]}, 1);
  at::_fused_adamw_({values[0]}, {weight.grad()}, {values[1]}, {values[2]}, {}, {values[3]},
                    values[4], 0.9, 0.95, 0.1, 1e-8, /*amsgrad=*/false, /*maximize=*/false);
  return loss.detach();
}

ir::Target cpuTarget() { return {.profile = "cpu", .device = ir::DeviceKind::kCpu}; }

llvm::ArrayRef<uint8_t> bytesOf(const at::Tensor& tensor) {
  return {static_cast<const uint8_t*>(tensor.const_data_ptr()), tensor.nbytes()};
}

TEST(Pt2Replay, TensorsAreAsImported) {
  const runtime::Pt2Program program =
      llvm::cantFail(runtime::readPt2Program(smallStepProgram().dump(), "small"));
  runtime::Pt2Ops ops;
  const runtime::Pt2Graph draft =
      llvm::cantFail(runtime::makePt2Graph(program, ops, cpuTarget(), "small", {.device = "cpu"}));
  Pt2Replay replay(draft);
  const std::vector<at::Tensor> values = firstValues();
  for (size_t i = 0; i < values.size(); ++i) replay.setInput(i, values[i]);
  ir::Error error = replay.runStep();
  EXPECT_FALSE(bool(error)) << ir::describe(std::move(error));
}

/// The comparison above must notice a wrong type and a wrong alias.
TEST(Pt2Replay, NoticesTensorsThatAreNot) {
  const auto run = [](const nlohmann::json& imported) {
    const runtime::Pt2Program program =
        llvm::cantFail(runtime::readPt2Program(imported.dump(), "small"));
    runtime::Pt2Ops ops;
    const runtime::Pt2Graph draft = llvm::cantFail(
        runtime::makePt2Graph(program, ops, cpuTarget(), "small", {.device = "cpu"}));
    Pt2Replay replay(draft);
    const std::vector<at::Tensor> values = firstValues();
    for (size_t i = 0; i < values.size(); ++i) replay.setInput(i, values[i]);
    return ir::describe(replay.runStep());
  };
  // Inputs are as the archive says, whoever gives them.
  nlohmann::json strides = smallStepProgram();
  nlohmann::json& types = strides["graph_module"]["graph"]["tensor_values"];
  types["a_5"] = tensorMeta(7, {4, 3}, {1, 4});
  types["t"] = tensorMeta(7, {3, 4}, {4, 1});
  EXPECT_NE(run(strides).find("tensor 'a_5' has another type"), std::string::npos) << run(strides);
}

TEST(Pt2Replay, GivesTheBitsOfEager) {
  const std::string archive =
      writePt2("replay_test", packPt2(smallStepProgram().dump()), smallStepSideFile());
  const runtime::ImportedStep step = llvm::cantFail(
      runtime::importTrainingStep(archive, {.profile = "cpu", .device = ir::DeviceKind::kCpu}));
  const auto replay = llvm::cantFail(runtime::Replay::make(step.graph));
  const auto storageOf = [&](ir::ValueId value) { return step.graph.value(value).storage; };

  std::vector<at::Tensor> values = firstValues();
  for (const size_t i : {0, 1, 2, 3}) {
    llvm::cantFail(replay->write(storageOf(step.arguments[i]), bytesOf(values[i])));
  }
  for (int i = 0; i < kSteps; ++i) {
    values[4].fill_(kRates[static_cast<size_t>(i)]);
    at::manual_seed(static_cast<uint64_t>(100 + i));
    std::vector<runtime::InputBytes> inputs;
    for (const size_t k : {4, 5, 6})
      inputs.push_back({storageOf(step.arguments[k]), bytesOf(values[k])});
    ir::Error error = replay->runStep(inputs, {});
    ASSERT_FALSE(bool(error)) << ir::describe(std::move(error));

    at::manual_seed(static_cast<uint64_t>(100 + i));
    const at::Tensor loss = runEager(values);
    const auto read = [&](ir::ValueId value) {
      return llvm::cantFail(replay->read(storageOf(value)));
    };
    EXPECT_EQ(read(*step.loss), bytesOf(loss).vec()) << "loss of step " << i;
    for (const size_t k : {0, 1, 2, 3}) {
      EXPECT_EQ(read(step.arguments[k]), bytesOf(values[k]).vec())
          << "input " << k << " after step " << i;
    }
  }
}

}  // namespace
}  // namespace stowage::tests
