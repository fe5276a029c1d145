// SPDX-License-Identifier: Apache-2.0
//
// Every ATen call of real training steps on the CPU, compared with what the tracer says of the same
// step without memory: op, sizes, strides, dtypes, aliasing and bytes of storages. A shape rule
// that is wrong, or an op that eager does not run, shows here.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <utility>

#include "runtime/capture/host_state/module_tensors.h"
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

/// What real training of `model` and its trace differ in first; `edit` makes the trace wrong.
std::string differenceOf(const ModelCase& model, const EditResults& edit = {}) {
  auto real = tools::makeTrainingStep(model.name, model.settings);
  if (!real) return ir::describe(real.takeError());
  const CallTexts expected = recordReal(twoSteps(*real, tools::makeInputs(*real, 1)));
  EXPECT_GT(expected.size(), 50u);

  auto fake = tools::makeTrainingStep(model.name, model.settings);
  if (!fake) return ir::describe(fake.takeError());
  auto tensors = runtime::ModuleTensors::find(fake->module, fake->optimizer.get());
  if (!tensors) return ir::describe(tensors.takeError());
  tensors->swapIn(c10::Device(c10::kCPU));
  ir::Target target;
  target.profile = "cpu";
  auto traced = recordFake(target, twoSteps(*fake, fakeInputs(*fake)), edit);
  return traced ? firstDifference(expected, *traced) : ir::describe(traced.takeError());
}

class CaptureConformance : public testing::TestWithParam<ModelCase> {};

TEST_P(CaptureConformance, TracerSaysWhatEagerDoes) { EXPECT_EQ(differenceOf(GetParam()), ""); }

/// Puts a tensor like the first result of `op`, but with `shape` changed by `change`, in its place.
EditResults wrongRule(const std::string& op, void (*change)(runtime::TensorShape& shape)) {
  return [op, change](const std::string& called, torch::jit::Stack& results) {
    if (called != op) return;
    c10::IValue& first = results[results.size() - (op == "aten.native_layer_norm.default" ? 3 : 1)];
    runtime::TensorShape shape = runtime::shapeOf(first.toTensor());
    change(shape);
    const int64_t bytes = runtime::extentOf(shape);
    first =
        runtime::makeTensor(runtime::makeFakeStorage(bytes, c10::Device(c10::kCPU), false), shape);
  };
}

TEST(CaptureConformanceControl, AWrongLayoutShows) {
  const std::string text = differenceOf(
      {"gpt2", {}}, wrongRule("aten.native_layer_norm.default",
                              [](auto& shape) { std::swap(shape.strides[0], shape.strides[1]); }));
  EXPECT_NE(text, "");
}

TEST(CaptureConformanceControl, AWrongTypeShows) {
  const std::string text = differenceOf(
      {"llama", {"precision=bfloat16"}},
      wrongRule("aten.embedding.default", [](auto& shape) { shape.dtype = at::kFloat; }));
  EXPECT_NE(text.find("fake: "), std::string::npos) << text;
}

TEST(CaptureConformanceControl, AWrongOffsetShows) {
  const std::string text = differenceOf(
      {"gpt2", {}}, wrongRule("aten.gelu.default", [](auto& shape) { shape.offset = 1; }));
  EXPECT_NE(text.find("offset=1"), std::string::npos) << text;
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
    testing::Values(ModelCase{"gpt2", {}}, ModelCase{"gpt2", {"precision=autocast", "clip=1"}},
                    ModelCase{"gpt2", {"precision=bfloat16"}},
                    ModelCase{"gpt2", {"optimizer=stowage_adamw", "micro_batches=2"}},
                    ModelCase{"gpt2", {"dropout=0", "optimizer=sgd"}}, ModelCase{"llama", {}},
                    ModelCase{"llama",
                              {"tied=on", "precision=bfloat16", "optimizer=stowage_adamw",
                               "master_weights=on"}},
                    ModelCase{"llama_lora", {}},
                    ModelCase{"llama_lora", {"quantise=nf4", "precision=bfloat16"}},
                    ModelCase{"vit", {"dropout=0.1"}}, ModelCase{"vit", {"precision=autocast"}},
                    ModelCase{"resnet", {}}, ModelCase{"resnet", {"layers=50", "optimizer=sgd"}},
                    ModelCase{"resnet", {"precision=autocast"}}, ModelCase{"lstm", {}},
                    ModelCase{"lstm", {"micro_batches=2", "clip=1"}}),
    caseName);

}  // namespace
}  // namespace stowage::tests
