// SPDX-License-Identifier: Apache-2.0
//
// Deferred updates on real ops: a training whose updates run in the next step gives the bits of
// plain libtorch, with learning rates that change from step to step, clipping, running statistics
// and micro-batches.
#include <gtest/gtest.h>

#include <llvm/ADT/STLExtras.h>

#include <vector>

#include "tests/support/chain.h"

namespace stowage::tests {
namespace {

constexpr int64_t kSteps = 5;

struct Training {
  const char* name;
  const char* model;
  std::vector<std::string> settings;
};

const std::vector<Training>& trainings() {
  static const std::vector<Training> all = {
      {"gpt2_clipped", "gpt2", {"schedule=step", "clip=1"}},
      {"llama_clipped", "llama", {"schedule=cosine", "warmup=2", "clip=1"}},
      {"llama_bfloat16",
       "llama",
       {"precision=bfloat16", "optimizer=stowage_adamw", "schedule=step", "clip=1"}},
      {"resnet_accumulating",
       "resnet",
       {"micro_batches=2", "optimizer=sgd", "lr=0.05", "schedule=step", "clip=1"}},
      {"llama_lora", "llama_lora", {"schedule=step", "clip=1"}},
  };
  return all;
}

int64_t countDeferred(const ir::Graph& graph) {
  return llvm::count_if(graph.nodes(),
                        [](const ir::Node& node) { return node.phase == ir::Phase::kDeferred; });
}

class DeferredChain : public testing::TestWithParam<Training> {};

TEST_P(DeferredChain, EqualsPlainLibtorch) {
  const Chain chain({.model = GetParam().model, .settings = GetParam().settings}, kSteps);
  for (const int64_t percent : {100, 60}) {
    ir::Expected<passes::PlannedStep> planned =
        chain.planIn(passes::Order::kDeferred, chain.share(percent));
    if (!planned) {
      const ir::PlanError answer = ir::takePayload(planned.takeError());
      ASSERT_TRUE(answer.infeasible().has_value()) << answer.text();
      planned = chain.planIn(passes::Order::kDeferred, answer.infeasible()->smallestBudget);
    }
    const passes::PlannedStep step = orFail(std::move(planned));
    EXPECT_GT(countDeferred(step.graph), 0);
    EXPECT_EQ(chain.difference(step), "") << percent << " % of " << chain.keepAll().value();
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeferredChain, testing::ValuesIn(trainings()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stowage::tests
