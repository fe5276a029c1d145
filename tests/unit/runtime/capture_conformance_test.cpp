// SPDX-License-Identifier: Apache-2.0
//
// Every ATen call of real training steps on the CPU, compared with what the tracer says of the same
// step without memory: op, sizes, strides, dtypes, aliasing and bytes of storages. A shape rule that
// is wrong, or an op that eager does not run, shows here.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>

#include "runtime/capture/module_tensors.h"
#include "tests/support/real_recorder.h"
#include "tools/models/model.h"

namespace stowage::tests {
namespace {

struct ModelCase {
  const char* name;
  std::vector<std::string> settings;
};

void PrintTo(const ModelCase& model, std::ostream* os) {
  *os << model.name;
  for (const std::string& setting : model.settings) *os << ' ' << setting;
}

/// Two steps: the first creates optimizer state.
std::function<void()> twoSteps(const tools::TrainingStep& step, std::vector<at::Tensor> inputs) {
  return [&step, inputs = std::move(inputs)] {
    for (int i = 0; i < 2; ++i) {
      step.loss(inputs);
      step.update();
    }
  };
}

std::vector<at::Tensor> fakeInputs(const tools::TrainingStep& step) {
  std::vector<at::Tensor> inputs;
  for (const at::Tensor& real : tools::makeInputs(step, 1)) {
    const runtime::TensorShape shape = runtime::shapeOf(real);
    inputs.push_back(runtime::makeTensor(
        runtime::makeFakeStorage(runtime::extentOf(shape), c10::Device(c10::kCPU), false), shape));
  }
  return inputs;
}

class CaptureConformance : public testing::TestWithParam<ModelCase> {};

TEST_P(CaptureConformance, TracerSaysWhatEagerDoes) {
  auto real = tools::makeTrainingStep(GetParam().name, GetParam().settings);
  ASSERT_TRUE(static_cast<bool>(real)) << ir::describe(real.takeError());
  const CallTexts expected = recordReal(twoSteps(*real, tools::makeInputs(*real, 1)));

  auto fake = tools::makeTrainingStep(GetParam().name, GetParam().settings);
  ASSERT_TRUE(static_cast<bool>(fake)) << ir::describe(fake.takeError());
  auto tensors = runtime::ModuleTensors::find(fake->module, fake->optimizer.get());
  ASSERT_TRUE(static_cast<bool>(tensors)) << ir::describe(tensors.takeError());
  tensors->swapIn(c10::Device(c10::kCPU));
  ir::Target target;
  target.profile = "cpu";
  auto traced = recordFake(target, twoSteps(*fake, fakeInputs(*fake)));
  ASSERT_TRUE(static_cast<bool>(traced)) << ir::describe(traced.takeError());
  EXPECT_GT(expected.size(), 50u);
  EXPECT_EQ(firstDifference(expected, *traced), "");
}

std::string caseName(const testing::TestParamInfo<ModelCase>& info) {
  std::string name = info.param.name;
  for (const std::string& setting : info.param.settings) name += "_" + setting;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Models, CaptureConformance,
    testing::Values(
        ModelCase{"gpt2", {}}, ModelCase{"gpt2", {"precision=autocast", "clip=1"}},
        ModelCase{"gpt2", {"precision=bfloat16"}},
        ModelCase{"gpt2", {"optimizer=stowage_adamw", "micro_batches=2"}},
        ModelCase{"gpt2", {"dropout=0", "optimizer=sgd"}}, ModelCase{"llama", {}},
        ModelCase{"llama", {"tied=on", "precision=bfloat16", "optimizer=stowage_adamw",
                            "master_weights=on"}},
        ModelCase{"llama_lora", {}}, ModelCase{"vit", {"dropout=0.1"}},
        ModelCase{"vit", {"precision=autocast"}}, ModelCase{"resnet", {}},
        ModelCase{"resnet", {"layers=50", "optimizer=sgd"}},
        ModelCase{"resnet", {"precision=autocast"}}, ModelCase{"lstm", {}},
        ModelCase{"lstm", {"micro_batches=2", "clip=1"}}),
    caseName);

}  // namespace
}  // namespace stowage::tests
