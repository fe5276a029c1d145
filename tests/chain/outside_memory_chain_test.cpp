// SPDX-License-Identifier: Apache-2.0
//
// The budget is all that a training takes: once steps are warm, no thread of the process, ours or
// libtorch's, takes 64 KiB or more from the C library, for every example model under half of its
// unplanned bytes. Batches are the caller's and are made before.
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <llvm/ADT/STLExtras.h>

#include <memory>

#include "tests/support/chain.h"
#include "tests/support/outside_memory.h"

namespace stowage::tests {
namespace {

// The numbers of the first steps, six of one that reads values, are known from the capture; the
// step after them is the first that is traced again.
constexpr int64_t kWarm = 7;
constexpr int64_t kSteps = 12;

struct Case {
  const char* model;
  std::vector<std::string> settings;
};

class OutsideMemoryChain : public testing::TestWithParam<Case> {};

/// What a training takes after it is warm. `inStep` runs once in each step.
template <typename InStep>
OutsideMemory takenBy(const Case& asked, InStep inStep) {
  const Chain chain({.model = asked.model, .settings = asked.settings}, kSteps);
  const passes::PlannedStep planned = orFail(chain.plan(chain.share(50)));
  OutsideMemory warm;
  OutsideMemory end;
  chain.run(planned, [&](int64_t step) {
    inStep();
    if (step == kWarm - 1) warm = countAllMemory();
    if (step == kSteps - 1) end = countAllMemory();
  });
  return {end.calls - warm.calls, end.bytes - warm.bytes};
}

/// Without instructions for bfloat16, libtorch's own matrix product takes float32 room from the
/// heap (cpublas_gemm_impl), which no allocator of libtorch's serves.
bool bfloat16TakesHeap() {
  const at::Tensor a = at::ones({256, 256}, at::kBFloat16);
  at::Tensor out = at::mm(a, a);
  const OutsideMemory before = countAllMemory();
  for (const at::Tensor& left : {a, a.t()}) {
    for (const at::Tensor& right : {a, a.t()}) at::mm_out(out, left, right);
  }
  return countAllMemory().calls > before.calls;
}

TEST_P(OutsideMemoryChain, WarmStepsTakeNothing) {
  const auto& settings = GetParam().settings;
  if (llvm::is_contained(settings, "precision=autocast") && bfloat16TakesHeap()) {
    GTEST_SKIP() << "on this processor libtorch's bfloat16 products take room from the heap";
  }
  const OutsideMemory taken = takenBy(GetParam(), [] {});
  EXPECT_EQ(taken.calls, 0) << taken.bytes << " bytes";
}

INSTANTIATE_TEST_SUITE_P(
    Models, OutsideMemoryChain,
    testing::Values(Case{"gpt2", {"micro_batches=2", "schedule=step", "clip=1"}},
                    Case{"llama", {"schedule=cosine", "warmup=2", "clip=1"}},
                    Case{"llama_lora", {"schedule=step", "clip=1"}},
                    Case{"vit", {"dropout=0.1", "precision=autocast", "schedule=step", "clip=1"}},
                    Case{"resnet", {"schedule=step", "clip=1"}},
                    Case{"lstm", {"sequence=8", "schedule=step", "clip=1"}}),
    [](const auto& info) { return std::string(info.param.model); });

TEST(OutsideMemoryControl, AnAllocationInAStepShows) {
  constexpr size_t kBytes = size_t{1} << 20;
  const OutsideMemory taken = takenBy({"lstm", {"sequence=8"}}, [] {
    const std::unique_ptr<uint8_t[]> block(new uint8_t[kBytes]);
    *const_cast<volatile uint8_t*>(block.get()) = 1;
  });
  EXPECT_EQ(taken.calls, kSteps - kWarm);
  EXPECT_EQ(taken.bytes, static_cast<int64_t>(kBytes) * (kSteps - kWarm));
}

}  // namespace
}  // namespace stowage::tests
