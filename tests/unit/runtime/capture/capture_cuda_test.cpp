// SPDX-License-Identifier: Apache-2.0
//
// Steps captured for CUDA targets in a process without GPU, driver or CUDA libraries: which kernels
// each target gets, and what two captures of one model differ in.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "planner/targets/roofline.h"
#include "runtime/torch/torch_version.h"
#include "tools/training/model_step.h"

namespace stowage::tools {
namespace {

using OpCounts = std::map<std::string, int>;

ir::Target profile(const std::string& name, bool deterministic = true) {
  ir::Expected<ir::Target> target = planner::findTargetProfile(name, runtime::torchVersion());
  EXPECT_TRUE(static_cast<bool>(target)) << name;
  target->deterministic = deterministic;
  return *target;
}

OpCounts opsOf(const Recipe& recipe, const ir::Target& target) {
  OpCounts counts;
  auto step = captureModel(recipe, {.target = target, .seed = 1, .withoutMemory = true});
  if (!step) {
    ADD_FAILURE() << recipe.text() << ": " << ir::describe(step.takeError());
    return counts;
  }
  for (const ir::Node& node : (*step)->graph.nodes()) ++counts[node.op];
  return counts;
}

/// The attention kernels of a step: "flash", "efficient", "cudnn"; "math" when it is made of
/// others.
std::set<std::string> attentionOf(const Recipe& recipe, const ir::Target& target) {
  std::set<std::string> kernels;
  for (const auto& [op, count] : opsOf(recipe, target)) {
    for (const char* kernel : {"flash", "efficient", "cudnn"}) {
      const std::string forward =
          std::string("aten._scaled_dot_product_") + kernel + "_attention.default";
      if (op == forward) kernels.insert(kernel);
    }
    if (op == "aten._safe_softmax.default") kernels.insert("math");
  }
  return kernels;
}

struct AttentionCase {
  Recipe recipe;
  const char* target;
  bool deterministic;
  const char* kernel;
};

void PrintTo(const AttentionCase& c, std::ostream* os) {
  *os << c.recipe.text() << " on " << c.target << (c.deterministic ? ", deterministic" : "");
}

class CaptureAttention : public testing::TestWithParam<AttentionCase> {};

TEST_P(CaptureAttention, IsTheKernelOfTheTarget) {
  const AttentionCase& c = GetParam();
  EXPECT_EQ(attentionOf(c.recipe, profile(c.target, c.deterministic)),
            std::set<std::string>{c.kernel});
}

// On an H200 with libtorch 2.11: bfloat16 took cuDNN and float32 the efficient kernel; in
// deterministic mode bfloat16 took flash, and grouped queries in float32 had no fused kernel.

/// From 2.15 on, the efficient kernel groups queries.
const char* groupedKernel() {
  return runtime::torchVersion() == std::string("2.11.0") ? "math" : "efficient";
}
/// From 2.15 on, cuDNN drops out multiples of a sixteenth alone.
const char* anyDropout() {
  return runtime::torchVersion() == std::string("2.11.0") ? "cudnn" : "flash";
}
const Recipe kHalf = {"gpt2", {"precision=bfloat16", "dropout=0.125"}};
const Recipe kHalfAnyDropout = {"gpt2", {"precision=bfloat16", "dropout=0.1"}};
const Recipe kFull = {"gpt2", {}};
const Recipe kGrouped = {"llama", {}};
const Recipe kGroupedHalf = {"llama", {"precision=bfloat16"}};

INSTANTIATE_TEST_SUITE_P(Targets, CaptureAttention,
                         testing::Values(AttentionCase{kHalf, "h200", true, "flash"},
                                         AttentionCase{kHalf, "h200", false, "cudnn"},
                                         AttentionCase{kHalfAnyDropout, "h200", false,
                                                       anyDropout()},
                                         AttentionCase{kHalf, "a100", false, "flash"},
                                         AttentionCase{kHalf, "l40s", false, "flash"},
                                         AttentionCase{kHalf, "rtx4090", true, "flash"},
                                         AttentionCase{kHalf, "rtx5090", false, "flash"},
                                         AttentionCase{kFull, "h200", true, "efficient"},
                                         AttentionCase{kFull, "h200", false, "efficient"},
                                         AttentionCase{kFull, "a100", true, "efficient"},
                                         AttentionCase{kGroupedHalf, "h200", false, "cudnn"},
                                         AttentionCase{kGroupedHalf, "a100", true, "flash"},
                                         AttentionCase{kGrouped, "h200", true, groupedKernel()}));

/// Ops of which the two captures have different numbers.
std::set<std::string> differences(const OpCounts& a, const OpCounts& b) {
  std::set<std::string> ops;
  const auto countIn = [](const OpCounts& counts, const std::string& op) {
    const auto found = counts.find(op);
    return found == counts.end() ? 0 : found->second;
  };
  for (const auto& [op, count] : a) {
    if (countIn(b, op) != count) ops.insert(op);
  }
  for (const auto& [op, count] : b) {
    if (countIn(a, op) != count) ops.insert(op);
  }
  return ops;
}

TEST(CaptureCuda, TwoGpusDifferInAttentionAlone) {
  const std::set<std::string> expected = {
      "aten._scaled_dot_product_cudnn_attention.default",
      "aten._scaled_dot_product_cudnn_attention_backward.default",
      "aten._scaled_dot_product_flash_attention.default",
      "aten._scaled_dot_product_flash_attention_backward.default"};
  EXPECT_EQ(differences(opsOf(kHalf, profile("h200", false)), opsOf(kHalf, profile("a100", false))),
            expected);
}

TEST(CaptureCuda, CpuAndGpuDifferInAttentionAlone) {
  const Recipe recipe = {"gpt2", {"precision=bfloat16", "dropout=0"}};
  const std::set<std::string> expected = {
      "aten._scaled_dot_product_flash_attention.default",
      "aten._scaled_dot_product_flash_attention_backward.default",
      "aten._scaled_dot_product_flash_attention_for_cpu.default",
      "aten._scaled_dot_product_flash_attention_for_cpu_backward.default"};
  const OpCounts gpu = opsOf(recipe, profile("h200"));  // first, see below
  EXPECT_EQ(differences(opsOf(recipe, profile("cpu")), gpu), expected);
}

TEST(CaptureCuda, WithDropoutTheCpuMakesAttentionAndDropoutOfOtherOps) {
  // The fake GPU must be there before the process's first backward pass.
  const OpCounts gpu = opsOf(kHalf, profile("h200"));
  const OpCounts cpu = opsOf(kHalf, profile("cpu"));
  for (const char* op :
       {"aten.bernoulli_.float", "aten._safe_softmax.default", "aten.bmm.default"}) {
    EXPECT_GT(cpu.count(op), 0u) << op;
    EXPECT_EQ(gpu.count(op), 0u) << op;
  }
  EXPECT_EQ(cpu.count("aten.native_dropout.default"), 0u);
  EXPECT_GT(gpu.count("aten.native_dropout.default"), 0u);
}

TEST(CaptureCuda, FusedKernelsStayWhole) {
  const OpCounts llama = opsOf(kGroupedHalf, profile("h200"));
  EXPECT_EQ(llama.count("aten._fused_rms_norm.default"), 1u);
  EXPECT_EQ(llama.count("aten._fused_rms_norm_backward.default"), 1u);
  EXPECT_EQ(llama.count("aten.silu_backward.default"), 1u);
  EXPECT_EQ(llama.count("aten.rsqrt.default"), 0u);
  const OpCounts resnet = opsOf({"resnet", {}}, profile("h200"));
  EXPECT_EQ(resnet.count("aten.cudnn_batch_norm.default"), 1u);
  EXPECT_EQ(resnet.count("aten.native_batch_norm.default"), 0u);
}

TEST(CaptureCuda, EveryModelIsCapturedForEveryTarget) {
  for (const char* target : {"h200", "a100", "a10g", "b200", "l40s", "rtx4090", "rtx5090"}) {
    for (const ModelInfo& model : modelCatalogue()) {
      EXPECT_GT(opsOf({model.name, {"precision=autocast"}}, profile(target)).size(), 10u);
      EXPECT_GT(opsOf({model.name, {"optimizer=stowage_adamw", "clip=1"}}, profile(target)).size(),
                10u);
    }
  }
}

TEST(CaptureCuda, HostTensorsOfTheStepStayOnTheHost) {
  auto step = captureModel(kFull, {.target = profile("h200"), .seed = 1, .withoutMemory = true});
  ASSERT_TRUE(static_cast<bool>(step)) << ir::describe(step.takeError());
  int onHost = 0;
  for (const ir::Storage& storage : (*step)->graph.storages()) {
    if (storage.home != ir::Space::kHost) continue;
    ++onHost;
    EXPECT_LE(storage.bytes.value(), 64) << storage.name;  // seeds of the efficient kernel
  }
  EXPECT_GT(onHost, 0);
}

}  // namespace
}  // namespace stowage::tools
