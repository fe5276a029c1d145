// SPDX-License-Identifier: Apache-2.0
//
// A training whose parameters are shards, on ranks that are threads: planned steps have the bytes
// of the replay on each rank, at every budget, and the replay those of plain processes that hold
// whole parameters and average their gradients in rank order.
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "ir/text/parser.h"
#include "passes/plan_step.h"
#include "planner/targets/roofline.h"
#include "runtime/ranks/local_ranks.h"
#include "runtime/runner/replay.h"
#include "runtime/torch/deterministic_mode.h"
#include "tests/support/cpu_training.h"
#include "tests/support/on_ranks.h"
#include "tests/support/or_fail.h"
#include "tests/support/repeatable_costs.h"

namespace stowage::tests {
namespace {

using runtime::Communicator;

constexpr int kLayers = 4;
constexpr int64_t kBatch = 4;
constexpr int64_t kWidth = 48;  // kWidth * kWidth is a multiple of every number of ranks here
constexpr double kRate = -0.125;
constexpr int kSteps = 3;

/// The text form of a step: x -> kLayers times tanh(x W) -> sum of y + y, and its update.
class StepText {
 public:
  explicit StepText(int64_t ranks) : ranks_(ranks) {
    const std::string shard = "f32[" + std::to_string(kWidth * kWidth / ranks) + "]";
    add("graph @sharded version=1 device=\"cpu\" target=\"cpu\" recipe=\"\" producer=\"\" steps=2 "
        "{");
    add("scalar #lr : f64 = -0.125");
    add("input %h0 \"tokens\" : " + rows_);
    for (int i = 1; i <= kLayers; ++i) add("parameter %p@ \"w@\" : " + shard, i);
    add("forward \"\":");
    for (int i = 1; i <= kLayers; ++i) {
      add("%f@ \"whole(w@)\" : " + flat_ + " = stowage.all_gather.default(%p@, " + number() + ")",
          i);
      add("view %w@ of %f@ : " + square_, i);
      add("view %wt@ of %f@ : " + square_ + turned_, i);
      add("%m@ : " + rows_ + " = aten.mm.default(%h" + std::to_string(i - 1) + ", %w@)", i);
      add("%h@ : " + rows_ + " = aten.tanh.default(%m@)", i);
      add("view %ht@ of %h" + std::to_string(i - 1) + " : f32[48,4] strides=[1,48]", i);
    }
    add("%l \"loss\" output output : f32[] = aten.sum.default(%h@, none)", kLayers);
    add("backward \"\":");
    add("%d@ : " + rows_ + " = aten.add.Tensor(%h@, %h@, 1)", kLayers);
    for (int i = kLayers; i >= 1; --i) {
      add("%e@ : " + rows_ + " = aten.tanh_backward.default(%d@, %h@)", i);
      add("%g@ \"grad(w@)\" gradient : " + square_ + " = aten.mm.default(%ht@, %e@)", i);
      add("view %gf@ of %g@ : " + flat_, i);
      add("%r@ \"received(w@)\" gradient : " + flat_ + " = stowage.all_to_all.default(%gf@, " +
              number() + ")",
          i);
      add("%s@ \"shard(w@)\" gradient : " + shard + " = stowage.add_parts.default(%r@, " +
              number() + ", true)",
          i);
      if (i > 1) {
        add("%d" + std::to_string(i - 1) + " : " + rows_ + " = aten.mm.default(%e@, %wt@)", i);
      }
    }
    add("optimizer \"\":");
    for (int i = 1; i <= kLayers; ++i) add("aten.add_.Tensor(inout %p@, %s@, #lr)", i);
    add("}");
  }

  ir::Graph parse() const { return orFail(ir::parseGraph(text_)); }

 private:
  std::string number() const { return std::to_string(ranks_); }
  /// A line; '@' is the layer.
  void add(std::string line, int layer = 0) {
    for (size_t at = line.find('@'); layer > 0 && at != std::string::npos; at = line.find('@')) {
      line.replace(at, 1, std::to_string(layer));
    }
    text_ += line + "\n";
  }

  const std::string rows_ = "f32[4,48]";
  const std::string square_ = "f32[48,48]";
  const std::string turned_ = " strides=[1,48]";
  const std::string flat_ = "f32[2304]";
  int64_t ranks_;
  std::string text_;
};

CpuTrainingOptions optionsOf(size_t rank) { return {.steps = kSteps, .seed = rank + 1}; }

ir::Target makeTarget() {
  ir::Target target = orFail(planner::findTargetProfile("cpu"));
  target.intraOpThreads = 1;
  return target;
}

/// What each rank does by the plan, beside its replay.
std::string compareOnRanks(int64_t count, const passes::PlannedStep& planned,
                           const ir::Target& target, const ir::CostTable& costs) {
  const ir::NodeCosts nodes = orFail(ir::resolveCosts(planned.graph, costs));
  return onRanks(static_cast<size_t>(count), [&](size_t rank, Communicator& ranks) {
    runtime::CpuDeviceOptions options;
    options.deviceBytes = planned.schedule.arenaBytes(ir::Space::kDevice);
    options.hostBytes = planned.schedule.arenaBytes(ir::Space::kHost);
    options.intraOpThreads = target.intraOpThreads;
    options.ranks = &ranks;
    auto device = runtime::CpuDevice::open(options);
    if (!device) return ir::describe(device.takeError());
    return compareWithReplay(**device, {planned.graph, planned.schedule, target, &nodes, nullptr},
                             optionsOf(rank));
  });
}

int64_t gathersIn(const passes::PlannedStep& planned) {
  int64_t found = 0;
  for (const ir::Command& command : planned.schedule.commands) {
    if (command.kind != ir::CommandKind::kRun) continue;
    found += planned.graph.node(command.node).op == "stowage.all_gather.default" ? 1 : 0;
  }
  return found;
}

TEST(ShardedTraining, PlannedStepsHaveTheBitsOfTheReplayAtEveryBudget) {
  runtime::setDeterministicMode(true);
  const ir::Target target = makeTarget();
  for (const int64_t count : {1, 2, 3, 4}) {
    const ir::Graph graph = StepText(count).parse();
    const ir::CostTable costs = repeatableCosts(graph, target);
    auto planner = orFail(passes::StepPlanner::make(graph, target, costs, {}));
    const Bytes peak = orFail(planner.plan(Bytes(int64_t{1} << 40))).result.keepAllPeak;
    for (const int64_t percent : {100, 60, 40}) {
      const auto planned = orFail(planner.plan(Bytes(peak.value() * percent / 100)));
      EXPECT_EQ(compareOnRanks(count, planned, target, costs), "")
          << count << " ranks, " << percent << " %";
    }
  }
}

// The levels of sharding are choices of one plan: whole parameters over the step, or twice a step.
TEST(ShardedTraining, AGatherIsRepeatedWhereTheBudgetAsksForIt) {
  runtime::setDeterministicMode(true);
  const ir::Target target = makeTarget();
  const ir::Graph graph = StepText(4).parse();
  const ir::CostTable costs = repeatableCosts(graph, target);
  const planner::Allowed recompute = {.offload = false};
  auto planner = orFail(passes::StepPlanner::make(graph, target, costs, {.allowed = recompute}));
  const auto roomy = orFail(planner.plan(Bytes(int64_t{1} << 40)));
  EXPECT_EQ(gathersIn(roomy), kLayers);
  // The smallest of these shares that fits.
  std::optional<passes::PlannedStep> planned;
  for (int parts = 6; !planned && parts < 12; ++parts) {
    auto found = planner.plan(Bytes(roomy.result.keepAllPeak.value() * parts / 12));
    if (found) {
      planned.emplace(std::move(*found));
    } else {
      llvm::consumeError(found.takeError());
    }
  }
  ASSERT_TRUE(planned);
  EXPECT_GT(gathersIn(*planned), kLayers);
  EXPECT_EQ(compareOnRanks(4, *planned, target, costs), "");
}

/// The same training on whole parameters, as plain processes do it.
struct WholeTraining {
  std::vector<at::Tensor> parameters;

  /// This rank's gradients, by layer.
  std::vector<at::Tensor> gradients(const at::Tensor& input) const {
    std::vector<at::Tensor> h = {input};
    for (const at::Tensor& w : parameters) h.push_back(at::tanh(at::mm(h.back(), w)));
    std::vector<at::Tensor> found(parameters.size());
    at::Tensor d = at::add(h.back(), h.back());
    for (size_t i = parameters.size(); i-- > 0;) {
      const at::Tensor e = at::tanh_backward(d, h[i + 1]);
      found[i] = at::mm(h[i].t(), e);
      if (i > 0) d = at::mm(e, parameters[i].t());
    }
    return found;
  }

  /// `inputs` by rank.
  void step(const std::vector<at::Tensor>& inputs) {
    std::vector<at::Tensor> mean = gradients(inputs[0]);
    for (size_t rank = 1; rank < inputs.size(); ++rank) {
      const std::vector<at::Tensor> own = gradients(inputs[rank]);
      for (size_t i = 0; i < mean.size(); ++i) mean[i].add_(own[i]);
    }
    for (size_t i = 0; i < mean.size(); ++i) {
      parameters[i].add_(mean[i].div_(static_cast<int64_t>(inputs.size())), kRate);
    }
  }
};

at::Tensor makeTensor(const std::vector<uint8_t>& bytes, at::IntArrayRef sizes) {
  at::Tensor tensor = at::empty(sizes);
  EXPECT_EQ(tensor.nbytes(), bytes.size());
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), tensor.nbytes());
  return tensor;
}

/// Trains this rank's shards; the parameters, in order.
ir::Expected<std::vector<std::vector<uint8_t>>> trainShards(const ir::Graph& graph, size_t rank) {
  auto replay = runtime::Replay::make(graph);
  if (!replay) return replay.takeError();
  std::vector<ir::StorageId> parameters;
  ir::StorageId input;
  for (size_t i = 0; i < graph.storages().size(); ++i) {
    if (graph.storages()[i].role == ir::Role::kInput) input = ir::StorageId(i);
    if (graph.storages()[i].role == ir::Role::kParameter) parameters.emplace_back(i);
  }
  for (const ir::StorageId id : parameters) {
    const auto numbers = makeNumbers(graph, id, -1, optionsOf(rank));
    if (ir::Error error = (*replay)->write(id, numbers)) return error;
  }
  const runtime::ScalarValue rate = {.value = kRate};
  for (int step = 0; step < kSteps; ++step) {
    const auto numbers = makeNumbers(graph, input, step, optionsOf(rank));
    if (ir::Error error = (*replay)->runStep({{input, numbers}}, rate)) return error;
  }
  std::vector<std::vector<uint8_t>> shards;
  for (const ir::StorageId id : parameters) {
    auto bytes = (*replay)->read(id);
    if (!bytes) return bytes.takeError();
    shards.push_back(std::move(*bytes));
  }
  return shards;
}

TEST(ShardedTraining, HasTheBitsOfPlainProcessesThatAverageInRankOrder) {
  runtime::setDeterministicMode(true);
  for (const int64_t count : {1, 2, 3, 4}) {
    const auto ranks = static_cast<size_t>(count);
    const ir::Graph graph = StepText(count).parse();
    std::vector<std::vector<std::vector<uint8_t>>> shards(ranks);
    ASSERT_EQ(onRanks(static_cast<size_t>(count),
                      [&](size_t rank, Communicator&) {
                        auto trained = trainShards(graph, rank);
                        if (!trained) return ir::describe(trained.takeError());
                        shards[rank] = std::move(*trained);
                        return std::string();
                      }),
              "");

    WholeTraining whole;
    std::vector<std::vector<at::Tensor>> inputs(kSteps);
    for (size_t i = 0; i < graph.storages().size(); ++i) {
      const ir::StorageId id(i);
      const ir::Role role = graph.storage(id).role;
      std::vector<at::Tensor> parts;
      for (size_t rank = 0; rank < ranks; ++rank) {
        if (role == ir::Role::kParameter) {
          parts.push_back(
              makeTensor(makeNumbers(graph, id, -1, optionsOf(rank)), {kWidth * kWidth / count}));
        }
        for (int step = 0; role == ir::Role::kInput && step < kSteps; ++step) {
          inputs[static_cast<size_t>(step)].push_back(
              makeTensor(makeNumbers(graph, id, step, optionsOf(rank)), {kBatch, kWidth}));
        }
      }
      if (!parts.empty()) whole.parameters.push_back(at::cat(parts).view({kWidth, kWidth}));
    }
    for (const std::vector<at::Tensor>& input : inputs) whole.step(input);

    for (int layer = 0; layer < kLayers; ++layer) {
      const auto at = static_cast<size_t>(layer);
      std::vector<uint8_t> found;
      for (const auto& own : shards) found.insert(found.end(), own[at].begin(), own[at].end());
      const at::Tensor expected = whole.parameters[at].contiguous();
      ASSERT_EQ(found.size(), expected.nbytes());
      EXPECT_EQ(std::memcmp(found.data(), expected.const_data_ptr(), found.size()), 0)
          << count << " ranks, layer " << layer;
    }
  }
}

// A rank that ends: the others' steps fail as an error of the environment that names it.
TEST(ShardedTraining, ARankThatIsGoneIsNamed) {
  runtime::setDeterministicMode(true);
  const ir::Graph graph = StepText(2).parse();
  const ir::Target target = makeTarget();
  const ir::CostTable costs = repeatableCosts(graph, target);
  const auto planned = orFail(passes::planStep(graph, target, costs, {.budget = Bytes(1 << 30)}));
  auto ranks = runtime::makeLocalRanks(2, std::chrono::seconds(60));
  ranks[1].reset();
  runtime::CpuDeviceOptions options;
  options.deviceBytes = planned.schedule.arenaBytes(ir::Space::kDevice);
  options.hostBytes = planned.schedule.arenaBytes(ir::Space::kHost);
  options.ranks = ranks[0].get();
  const auto device = orFail(runtime::CpuDevice::open(options));
  const ir::NodeCosts nodes = orFail(ir::resolveCosts(planned.graph, costs));
  runtime::CapturedScalars feed(planned.graph);
  const auto executor = orFail(
      runtime::Executor::create(*device, {planned.graph, planned.schedule, target, &nodes, &feed}));
  const std::vector<uint8_t> input(kBatch * kWidth * sizeof(float));
  (void)orFail(executor->enqueueStep({{ir::StorageId(0), input}}));
  const ir::PlanError error = ir::takePayload(executor->wait());
  EXPECT_EQ(error.code(), ir::ErrorCode::kEnvironment);
  EXPECT_NE(error.text().find("stowage.all_gather"), std::string::npos) << error.text();
  EXPECT_NE(error.text().find("rank 1 is gone"), std::string::npos) << error.text();
}

}  // namespace
}  // namespace stowage::tests
