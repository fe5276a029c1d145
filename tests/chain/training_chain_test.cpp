// SPDX-License-Identifier: Apache-2.0
//
// The whole chain on real ops, for every example model and way to train: capture, measure, plan
// under a budget, run inside it, and compare losses, parameters, buffers and optimizer state byte
// for byte with plain libtorch running the same closures.
#include <gtest/gtest.h>

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <set>
#include <vector>

#include "ir/schedule/fingerprint.h"
#include "tests/support/chain.h"

namespace stowage::tests {
namespace {

constexpr int64_t kSteps = 8;  // two more than capture sees of a step that reads values

struct Training {
  const char* name;
  const char* model;
  std::vector<std::string> settings;
  std::vector<int64_t> shares = {100, 80, 65, 50, 40, 35};  // % of the unplanned bytes
  int64_t fitsFrom = 35;  // % from which on a plan must fit; below, the smallest budget stands in
};

// Between them: dropout, tied weights, batch norm, micro-batches, schedules, clipping, both
// optimizers of torch and ours, autocast and plain bfloat16.
const std::vector<Training>& trainings() {
  static const std::vector<Training> all = {
      {"gpt2", "gpt2", {"schedule=step", "clip=1"}},
      {"gpt2_of_24_layers",
       "gpt2",
       {"layers=24", "hidden=64", "sequence=32", "schedule=cosine", "warmup=2", "clip=1"},
       {35}},
      {"gpt2_accumulating",
       "gpt2",
       {"micro_batches=2", "schedule=cosine", "warmup=2", "clip=1"},
       {80, 50, 35}},
      {"llama", "llama", {"schedule=cosine", "warmup=2", "clip=1"}},
      {"llama_bfloat16",
       "llama",
       {"precision=bfloat16", "optimizer=stowage_adamw", "master_weights=on", "schedule=step",
        "clip=1"},
       {100, 80, 65, 50, 40, 35},
       80},
      {"llama_lora", "llama_lora", {"schedule=step", "clip=1"}},
      {"vit_autocast", "vit", {"dropout=0.1", "precision=autocast", "schedule=step", "clip=1"}},
      {"resnet", "resnet", {"optimizer=sgd", "lr=0.05", "schedule=step", "clip=1"}},
      {"resnet_accumulating", "resnet", {"micro_batches=2", "schedule=step", "clip=1"}, {65, 35}},
      {"lstm", "lstm", {"schedule=step", "clip=1"}},
      {"gpt2_bfloat16", "gpt2", {"precision=bfloat16"}},
      {"llama_lora_autocast", "llama_lora", {"precision=autocast"}},
      {"vit_momentum", "vit", {"optimizer=sgd", "schedule=cosine"}},
      {"resnet_autocast", "resnet", {"precision=autocast", "clip=1"}},
      {"lstm_accumulating", "lstm", {"sequence=4", "micro_batches=2", "clip=1"}, {80, 35}},
  };
  return all;
}

class TrainingChain : public testing::TestWithParam<Training> {};

/// A plan for `percent` of the unplanned bytes; where that is too small, for the smallest budget
/// that the answer names, after checking that one alignment unit less is infeasible.
passes::PlannedStep planShare(const Chain& chain, int64_t percent) {
  ir::Expected<passes::PlannedStep> planned = chain.plan(chain.share(percent));
  if (planned) return std::move(*planned);
  const ir::PlanError answer = ir::takePayload(planned.takeError());
  EXPECT_EQ(answer.code(), ir::ErrorCode::kInfeasible) << answer.text();
  EXPECT_FALSE(answer.infeasible()->holders.empty());
  const Bytes smallest = answer.infeasible()->smallestBudget;
  ir::Expected<passes::PlannedStep> below =
      chain.plan(Bytes(smallest.value() - chain.target().alignBytes));
  EXPECT_FALSE(below) << percent << " %: " << smallest.value() << " is not the smallest budget";
  if (!below) llvm::consumeError(below.takeError());
  passes::PlannedStep step = orFail(chain.plan(smallest));
  EXPECT_EQ(step.schedule.arenaBytes(ir::Space::kDevice), smallest);
  return step;
}

/// What one op holds at once, which no plan goes below. On some processors oneDNN's convolutions
/// take more temporary memory than a small network.
Bytes largestNeed(const Chain& chain, const ir::Graph& graph) {
  const ir::NodeCosts costs = chain.costsOf(graph);
  const auto rounded = [&](Bytes bytes) {
    const int64_t unit = chain.target().alignBytes;
    return Bytes((bytes.value() + unit - 1) / unit * unit);
  };
  Bytes largest(0);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    Bytes need = rounded(costs.nodes[i].temporary);
    std::set<int32_t> seen;
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      if (!seen.insert(access.storage.raw()).second) continue;
      need = need + rounded(graph.storage(access.storage).bytes);
    }
    largest = std::max(largest, need);
  }
  return largest;
}

int64_t countIf(const passes::PlannedStep& step, bool (*holds)(const ir::Command&)) {
  return llvm::count_if(step.schedule.commands, holds);
}
bool copies(const ir::Command& command) { return command.kind == ir::CommandKind::kCopy; }
bool isRecompute(const ir::Command& command) { return command.recompute > 0; }
bool reusesInPlace(const ir::Command& command) { return command.takes.isValid(); }

void expectEqualAtEveryShare(const Chain& chain, const Training& training) {
  for (const int64_t percent : training.shares) {
    const passes::PlannedStep step = planShare(chain, percent);
    const bool isEnoughForOneOp = chain.share(percent) >= largestNeed(chain, step.graph);
    if (percent >= training.fitsFrom && isEnoughForOneOp) {
      EXPECT_EQ(step.schedule.arenaBytes(ir::Space::kDevice), chain.share(percent)) << percent;
    }
    if (percent < 100) {
      EXPECT_GT(countIf(step, copies), 0) << percent;
    }
    EXPECT_GT(countIf(step, reusesInPlace), 0) << percent;
    EXPECT_EQ(chain.difference(step), "") << percent << " % of " << chain.keepAll().value();
  }
}

/// Under the smallest budget that works without a host.
void expectEqualWithRecomputesAlone(const Chain& chain) {
  constexpr planner::Allowed kRecomputesAlone = {.offload = false};
  const ir::PlanError answer = ir::takePayload(chain.plan(Bytes(1), kRecomputesAlone).takeError());
  ASSERT_EQ(answer.code(), ir::ErrorCode::kInfeasible) << answer.text();
  const Bytes smallest = answer.infeasible()->smallestBudget;
  EXPECT_LT(smallest, chain.keepAll());
  const passes::PlannedStep step = orFail(chain.plan(smallest, kRecomputesAlone));
  EXPECT_GT(countIf(step, isRecompute), 0);
  EXPECT_EQ(chain.difference(step), "") << "recomputes alone, " << smallest.value();
}

TEST_P(TrainingChain, EqualsPlainLibtorchAtEveryBudget) {
  const Chain chain({.model = GetParam().model, .settings = GetParam().settings}, kSteps);
  ASSERT_EQ(chain.eager().reports.size(), static_cast<size_t>(kSteps));
  expectEqualAtEveryShare(chain, GetParam());
  expectEqualWithRecomputesAlone(chain);
}

INSTANTIATE_TEST_SUITE_P(All, TrainingChain, testing::ValuesIn(trainings()),
                         [](const auto& info) { return std::string(info.param.name); });

/// In by-layer order, whether or not it is the fastest here.
void expectEqualByLayer(const std::vector<std::string>& settings) {
  const Chain chain({.model = "gpt2", .settings = settings}, kSteps);
  const ir::Graph hoisted = orFail(chain.planIn(passes::Order::kHoisted, chain.share(100))).graph;
  for (const int64_t percent : {100, 50}) {
    const passes::PlannedStep step =
        orFail(chain.planIn(passes::Order::kByLayer, chain.share(percent)));
    EXPECT_NE(ir::fingerprint(step.graph), ir::fingerprint(hoisted));
    EXPECT_EQ(chain.difference(step), "") << percent << " %";
  }
}

TEST(TrainingChainByLayer, EqualsPlainLibtorch) {
  expectEqualByLayer({"micro_batches=4", "sequence=16", "dropout=0", "clip=1"});
}

// Dropout keeps forward in the order of the program: only backward goes by layer.
TEST(TrainingChainByLayer, EqualsPlainLibtorchWithDropout) {
  expectEqualByLayer({"micro_batches=4", "sequence=16", "schedule=step"});
}

}  // namespace
}  // namespace stowage::tests
