// SPDX-License-Identifier: Apache-2.0
//
// QLoRA on real ops: frozen weights are planned as the 4 bits that they are stored in. What the
// step makes of them is an activation like any other, which small budgets recompute for backward;
// what is stored never goes back to the host. The bits are those of plain libtorch.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "ir/base/affix.h"
#include "tests/support/chain.h"

namespace stowage::tests {
namespace {

constexpr int64_t kSteps = 6;

/// Few tokens, so that weights are most of what the step holds.
tools::Recipe fewTokens() {
  return {.model = "llama_lora",
          .settings = {"quantise=nf4", "precision=bfloat16", "layers=2", "batch=1", "sequence=16",
                       "vocabulary=64"}};
}

class QloraChain : public testing::Test {
 protected:
  static const Chain& chain() {
    static const Chain one(fewTokens(), kSteps);
    return one;
  }
};

bool isScale(const ir::Storage& storage) { return ir::endsWith(storage.name, ".weight_scales"); }

/// The weights that the step makes of what is stored: results of a product with scales.
std::set<int32_t> madeWeights(const ir::Graph& graph) {
  std::set<int32_t> made;
  for (const ir::Node& node : graph.nodes()) {
    ir::forEachTensorArgument(node, [&](ir::ValueId operand) {
      if (!isScale(graph.storage(graph.value(operand).storage))) return;
      made.insert(graph.value(node.results[0]).storage.raw());
    });
  }
  return made;
}

int64_t bytesOf(const ir::Graph& graph, const std::set<int32_t>& storages) {
  int64_t bytes = 0;
  for (const int32_t id : storages) {
    bytes += graph.storage(ir::StorageId(static_cast<size_t>(id))).bytes.value();
  }
  return bytes;
}

/// The most bytes of `storages` that are on the device at once.
int64_t mostAtOnce(const passes::PlannedStep& step, const std::set<int32_t>& storages) {
  const ir::Schedule& schedule = step.schedule;
  const size_t end = schedule.commands.size();
  std::vector<size_t> first(schedule.residencies.size(), end), last(first.size(), 0);
  const auto touch = [&](ir::ResidencyId id, size_t at) {
    if (!id.isValid()) return;
    first[id.index()] = std::min(first[id.index()], at);
    last[id.index()] = std::max(last[id.index()], at);
  };
  for (size_t at = 0; at < end; ++at) {
    const ir::Command& command = schedule.commands[at];
    for (const ir::ResidencyId id : command.in) touch(id, at);
    for (const ir::ResidencyId id : command.out) touch(id, at);
    touch(command.from, at);
    touch(command.to, at);
  }
  int64_t most = 0;
  for (size_t at = 0; at < end; ++at) {
    int64_t now = 0;
    for (size_t i = 0; i < first.size(); ++i) {
      const ir::Residency& residency = schedule.residencies[i];
      const bool isAlive = first[i] <= at && at <= last[i];
      if (residency.space != ir::Space::kDevice || !isAlive) continue;
      if (storages.count(residency.storage.raw()) == 0) continue;
      now += step.graph.storage(residency.storage).bytes.value();
    }
    most = std::max(most, now);
  }
  return most;
}

int64_t countRecomputes(const passes::PlannedStep& step, const std::set<int32_t>& storages) {
  return std::count_if(step.schedule.commands.begin(), step.schedule.commands.end(),
                       [&](const ir::Command& run) {
                         if (run.recompute == 0) return false;
                         const ir::StorageId storage = step.schedule.residency(run.out[0]).storage;
                         return storages.count(storage.raw()) > 0;
                       });
}

/// Copies on `stream` of what no step writes.
int64_t countFrozenCopies(const passes::PlannedStep& step, ir::Stream stream) {
  return std::count_if(step.schedule.commands.begin(), step.schedule.commands.end(),
                       [&](const ir::Command& copy) {
                         if (copy.kind != ir::CommandKind::kCopy || copy.stream != stream)
                           return false;
                         const ir::StorageId id = step.schedule.residency(copy.from).storage;
                         return step.graph.storage(id).role == ir::Role::kFrozen;
                       });
}

TEST_F(QloraChain, StoredWeightsAreFrozenAndTakeLittleMoreThanFourBits) {
  const passes::PlannedStep step = orFail(chain().plan(chain().share(100)));
  const std::set<int32_t> made = madeWeights(step.graph);
  EXPECT_EQ(made.size(), 2U * 7);
  EXPECT_GT(mostAtOnce(step, made), bytesOf(step.graph, made) / 2) << "made again without need";
  int64_t stored = 0;
  for (const ir::Storage& storage : step.graph.storages()) {
    if (storage.name.find("_proj.weight") == std::string::npos || !storage.persistent) continue;
    EXPECT_EQ(storage.role, ir::Role::kFrozen) << storage.name;
    stored += storage.bytes.value();
  }
  const int64_t weights = bytesOf(step.graph, made) / 2;  // bfloat16
  EXPECT_EQ(static_cast<double>(stored) * 8 / static_cast<double>(weights), 4.25);
}

TEST_F(QloraChain, SmallBudgetsMakeWeightsAgainForBackward) {
  constexpr planner::Allowed kRecomputesAlone = {.offload = false};
  const ir::PlanError answer =
      ir::takePayload(chain().plan(Bytes(1), kRecomputesAlone).takeError());
  ASSERT_EQ(answer.code(), ir::ErrorCode::kInfeasible) << answer.text();
  const passes::PlannedStep step =
      orFail(chain().plan(answer.infeasible()->smallestBudget, kRecomputesAlone));
  const std::set<int32_t> made = madeWeights(step.graph);
  // Backward does not reach q, k and v of the first layer; what the last one made may stay.
  EXPECT_GE(countRecomputes(step, made), 4);
  EXPECT_LT(mostAtOnce(step, made), bytesOf(step.graph, made) / 4);
  EXPECT_EQ(chain().difference(step), "");
}

TEST_F(QloraChain, StoredWeightsAreFetchedAndNeverWrittenBack) {
  for (const int64_t percent : {50, 35}) {
    const passes::PlannedStep step = orFail(chain().plan(chain().share(percent)));
    EXPECT_EQ(countFrozenCopies(step, ir::Stream::kDeviceToHost), 0) << percent;
    EXPECT_GT(countFrozenCopies(step, ir::Stream::kHostToDevice), 0) << percent;
    EXPECT_EQ(chain().difference(step), "") << percent;
  }
}

}  // namespace
}  // namespace stowage::tests
