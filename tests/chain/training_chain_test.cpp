// SPDX-License-Identifier: Apache-2.0
//
// The whole chain on real ops: capture a training step, measure it, plan it under a budget, run it
// inside that budget, and compare losses, parameters and buffers byte for byte with plain libtorch
// running the same closures.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "passes/plan_step.h"
#include "planner/roofline.h"
#include "runtime/calibrate.h"
#include "tools/training_run.h"

namespace stowage::tools {
namespace {

constexpr uint64_t kSeed = 11;
constexpr int64_t kSteps = 6;

struct Chain {
  Recipe recipe;
  ir::Target target;
  ir::CostTable costs;
  std::vector<Batch> batches;
  TrainingRecord eager;

  BatchSource source() const {
    return [this](int64_t i) -> ir::Expected<Batch> { return batches[static_cast<size_t>(i)]; };
  }
};

template <typename T>
T orFail(ir::Expected<T> value) {
  if (value) return std::move(*value);
  throw std::runtime_error(ir::describe(value.takeError()));
}

std::unique_ptr<ModelStep> captureAgain(const Chain& chain) {
  return orFail(
      captureModel(chain.recipe, {.target = chain.target, .seed = kSeed, .withoutMemory = false}));
}

Chain prepare(Recipe recipe) {
  Chain chain;
  chain.recipe = std::move(recipe);
  chain.target = orFail(planner::findTargetProfile("cpu"));
  const std::unique_ptr<ModelStep> step = captureAgain(chain);
  chain.costs = orFail(runtime::calibrate(
      step->graph, {.intraOpThreads = chain.target.intraOpThreads, .runs = 1, .known = {}}));
  chain.costs.links = chain.target.links;
  for (int64_t i = 0; i < kSteps; ++i)
    chain.batches.push_back(makeInputs(step->training, kSeed + static_cast<uint64_t>(i)));
  chain.eager = orFail(trainEagerly(chain.recipe, chain.target, kSeed, kSteps, chain.source()));
  return chain;
}

passes::PlannedStep planWithin(const Chain& chain, const ir::Graph& graph, Bytes budget) {
  return orFail(passes::planStep(graph, chain.target, chain.costs, {.budget = budget}));
}

/// Plans for `budget`, runs, and gives the first difference from eager ("" when there is none).
std::string differenceWithin(const Chain& chain, Bytes budget) {
  const std::unique_ptr<ModelStep> step = captureAgain(chain);
  const passes::PlannedStep planned = planWithin(chain, step->graph, budget);
  EXPECT_EQ(planned.schedule.arenaBytes(ir::Space::kDevice), budget);
  const ir::NodeCosts costs = orFail(ir::resolveCosts(planned.graph, chain.costs));
  const TrainingRecord record = orFail(trainByPlan(*step,
                                                   {.graph = planned.graph,
                                                    .schedule = planned.schedule,
                                                    .target = chain.target,
                                                    .costs = &costs},
                                                   kSeed, kSteps, chain.source()));
  return firstDifference(chain.eager, record);
}

class Gpt2Chain : public testing::Test {
 protected:
  // Dropout, tied embedding, AdamW with bias correction, a schedule and clipping: what a frozen
  // scalar, a lost random state or a stale version would change.
  static Chain& chain() {
    static Chain chain =
        prepare({.model = "gpt2", .settings = {"preset=tiny", "schedule=step", "clip=1"}});
    return chain;
  }
  static Bytes keepAll() {
    const std::unique_ptr<ModelStep> step = captureAgain(chain());
    return planWithin(chain(), step->graph, Bytes(int64_t{1} << 32)).result.keepAllHeight;
  }
};

TEST_F(Gpt2Chain, EqualsPlainLibtorchAtEveryBudget) {
  const int64_t whole = keepAll().value();
  for (const int64_t percent : {100, 80, 65, 50, 40, 35}) {
    const Bytes budget(whole * percent / 100 / 512 * 512);
    EXPECT_EQ(differenceWithin(chain(), budget), "") << percent << " % of " << whole << " bytes";
  }
}

TEST_F(Gpt2Chain, TheComparisonSeesAnotherRandomState) {
  const TrainingRecord other =
      orFail(trainEagerly(chain().recipe, chain().target, kSeed + 1, kSteps, chain().source()));
  EXPECT_NE(firstDifference(chain().eager, other), "");
}

/// A recipe with something that the others lack.
struct ModelCase {
  Recipe recipe;
};

void PrintTo(const ModelCase& model, std::ostream* os) { *os << model.recipe.text(); }

class ModelChain : public testing::TestWithParam<ModelCase> {};

TEST_P(ModelChain, EqualsPlainLibtorch) {
  const Chain chain = prepare(GetParam().recipe);
  const std::unique_ptr<ModelStep> step = captureAgain(chain);
  const int64_t whole =
      planWithin(chain, step->graph, Bytes(int64_t{1} << 32)).result.keepAllHeight.value();
  for (const int64_t percent : {100, 70}) {
    const Bytes budget(whole * percent / 100 / 512 * 512);
    EXPECT_EQ(differenceWithin(chain, budget), "") << percent << " % of " << whole << " bytes";
  }
}

std::string caseName(const testing::TestParamInfo<ModelCase>& info) {
  std::string name = info.param.recipe.text();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Models, ModelChain,
    testing::Values(
        ModelCase{{"gpt2", {"precision=bfloat16"}}},
        ModelCase{{"gpt2", {"optimizer=stowage_adamw", "schedule=cosine", "micro_batches=2"}}},
        ModelCase{{"llama", {"schedule=cosine", "clip=1"}}},
        ModelCase{{"llama",
                   {"precision=bfloat16", "optimizer=stowage_adamw", "master_weights=on",
                    "schedule=step"}}},
        ModelCase{{"llama_lora", {"precision=autocast"}}},
        ModelCase{{"vit", {"precision=autocast", "dropout=0.1"}}},
        ModelCase{{"vit", {"optimizer=sgd", "schedule=cosine"}}},
        ModelCase{{"resnet", {"optimizer=sgd", "schedule=step"}}},
        ModelCase{{"resnet", {"precision=autocast", "clip=1"}}},
        ModelCase{{"lstm", {"sequence=4", "micro_batches=2", "clip=1"}}}),
    caseName);

}  // namespace
}  // namespace stowage::tools
