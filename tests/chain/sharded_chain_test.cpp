// SPDX-License-Identifier: Apache-2.0
//
// Example models on several ranks with sharded states: losses, parameters, buffers and optimizer
// state are, byte for byte, those of plain processes that hold everything and average their
// gradients in rank order; and planned steps have the bytes of the replay at every budget.
#include <ATen/Parallel.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "ir/graph/check_graph.h"
#include "passes/normalise/shard_states.h"
#include "passes/normalise/sharded_states.h"
#include "passes/plan_step.h"
#include "planner/targets/roofline.h"
#include "runtime/capture/graph/graph_replay.h"
#include "runtime/torch/deterministic_mode.h"
#include "tests/support/captured_run.h"
#include "tests/support/cpu_training.h"
#include "tests/support/on_ranks.h"
#include "tests/support/or_fail.h"
#include "tests/support/repeatable_costs.h"
#include "tools/training/model_step.h"

namespace stowage::tests {
namespace {

using runtime::Communicator;
using runtime::GraphReplay;
using Scalars = std::vector<runtime::ScalarValue>;

constexpr int kSteps = 4;
constexpr uint64_t kSeed = 11;

/// A captured step, its first values and the numbers of its steps.
struct Captured {
  std::unique_ptr<tools::ModelStep> step;
  std::map<ir::StorageId, at::Tensor> first;  // uint8 [n]
  std::vector<Scalars> scalars;               // by step
  std::vector<ir::StorageId> inputStorages;

  explicit Captured(const std::string& recipe) {
    ir::Target target = orFail(planner::findTargetProfile("cpu"));
    target.intraOpThreads = 1;
    step = orFail(tools::captureModel(orFail(tools::parseRecipe(recipe)),
                                      {.target = target, .seed = kSeed, .withoutMemory = false}));
    const ir::Graph& graph = step->graph;
    runtime::CapturedStep& captured = *step->captured;
    CapturedRun run(captured);
    orFail(run.load());
    for (size_t i = 0; i < graph.storages().size(); ++i) {
      const ir::Storage& storage = graph.storages()[i];
      if (storage.persistent) first[ir::StorageId(i)] = run.bytes(storage.name).clone();
    }
    for (const ir::ValueId input : captured.inputs()) {
      const ir::StorageId storage = captured.graph().value(input).storage;
      inputStorages.push_back(findStorage(captured.graph().storage(storage).name));
    }
    for (int i = 0; i < kSteps; ++i) scalars.push_back(orFail(captured.nextScalars({})));
  }
  const ir::Graph& graph() const { return step->graph; }
  ir::StorageId findStorage(const std::string& name) const {
    for (size_t i = 0; i < graph().storages().size(); ++i) {
      if (graph().storages()[i].name == name) return ir::StorageId(i);
    }
    throw std::runtime_error("no storage '" + name + "'");
  }
  std::vector<at::Tensor> inputs(size_t rank, int number) const {
    return tools::makeInputs(step->training, kSeed + rank * 1000 + static_cast<uint64_t>(number));
  }
};

/// One rank's step, node by node.
class Rank {
 public:
  Rank(const Captured& captured, const ir::Graph& graph)
      : captured_(captured), graph_(graph), replay_(graph) {}

  GraphReplay& replay() { return replay_; }
  void bind(ir::StorageId id, const at::Tensor& bytes) {
    replay_.bind(id, bytes.clone().storage());
  }
  void begin(size_t rank, int step) {
    for (size_t i = 0; i < graph_.storages().size(); ++i) {
      if (!graph_.storages()[i].persistent) replay_.release(ir::StorageId(i));
    }
    const std::vector<at::Tensor> inputs = captured_.inputs(rank, step);
    for (size_t i = 0; i < inputs.size(); ++i) {
      replay_.bind(captured_.inputStorages.at(i), inputs[i].clone().storage());
    }
  }
  /// The nodes of the update, or all others.
  ir::Error run(bool update, const Scalars& scalars) {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (ir::updatesModel(graph_.nodes()[i].phase) != update) continue;
      if (ir::Error error = replay_.run(ir::NodeId(i), scalars)) return error;
    }
    return ir::success();
  }
  /// What the step reports, and what lives on, by storage of the captured step.
  std::map<ir::StorageId, at::Tensor> bytes() const {
    std::map<ir::StorageId, at::Tensor> found;
    for (size_t i = 0; i < captured_.graph().storages().size(); ++i) {
      const ir::Storage& storage = captured_.graph().storages()[i];
      const ir::StorageId id(i);
      if (storage.persistent || storage.output) found[id] = replay_.bytesOf(id).clone();
    }
    return found;
  }

 private:
  const Captured& captured_;
  const ir::Graph& graph_;
  GraphReplay replay_;
};

using Found = std::map<ir::StorageId, at::Tensor>;

/// Gradients that an update reads.
std::vector<ir::ValueId> gradientsOf(const ir::Graph& graph) {
  std::map<ir::StorageId, ir::ValueId> found;
  for (const ir::Node& node : graph.nodes()) {
    if (!ir::updatesModel(node.phase)) continue;
    ir::forEachTensorArgument(node, [&](ir::ValueId id) {
      const ir::StorageId storage = graph.value(id).storage;
      if (graph.storage(storage).role == ir::Role::kGradient) found.emplace(storage, id);
    });
  }
  std::vector<ir::ValueId> values;
  values.reserve(found.size());
  for (const auto& [storage, value] : found) values.push_back(value);
  return values;
}

at::ScalarType scalarTypeOf(ir::DType dtype) {
  return dtype == ir::DType::kBF16 ? at::kBFloat16 : at::kFloat;
}

/// Plain processes: after backward each gradient becomes the mean of all, added in rank order, in
/// float32 where it is narrower.
std::vector<Found> trainPlainly(const Captured& captured, size_t count) {
  const ir::Graph& graph = captured.graph();
  std::vector<std::unique_ptr<Rank>> ranks;
  for (size_t i = 0; i < count; ++i) {
    ranks.push_back(std::make_unique<Rank>(captured, graph));
    for (const auto& [id, bytes] : captured.first) ranks.back()->bind(id, bytes);
  }
  const std::vector<ir::ValueId> gradients = gradientsOf(graph);
  for (int step = 0; step < kSteps; ++step) {
    const Scalars& scalars = captured.scalars[static_cast<size_t>(step)];
    for (size_t i = 0; i < count; ++i) {
      ranks[i]->begin(i, step);
      orFail(ranks[i]->run(/*update=*/false, scalars));
    }
    for (const ir::ValueId gradient : gradients) {
      const ir::Value& value = graph.value(gradient);
      const at::ScalarType type = scalarTypeOf(value.type.dtype);
      at::Tensor sum;
      for (const auto& rank : ranks) {
        const at::Tensor own = rank->replay().bytesOf(value.storage).view(type);
        sum = sum.defined() ? sum.add_(own)
                            : own.to(at::kFloat, /*non_blocking=*/false,
                                     /*copy=*/true);
      }
      const at::Tensor mean = sum.div_(static_cast<int64_t>(count)).to(type);
      for (const auto& rank : ranks) rank->replay().bytesOf(value.storage).view(type).copy_(mean);
    }
    for (const auto& rank : ranks) orFail(rank->run(/*update=*/true, scalars));
  }
  std::vector<Found> found;
  found.reserve(count);
  for (const auto& rank : ranks) found.push_back(rank->bytes());
  return found;
}

ir::Graph shard(const Captured& captured, size_t count) {
  passes::PassState state{
      .graph = captured.graph(), .schedule = {}, .target = {}, .timetable = {}, .decisions = {}};
  const passes::ShardStates pass({.ranks = static_cast<int64_t>(count)});
  const passes::PassReport report = orFail(pass.run(state));
  EXPECT_TRUE(report.remarks.empty()) << report.remarks.front();
  orFail(ir::checkGraph(state.graph));
  return state.graph;
}

/// By storage: does each rank hold a part? A shard of 64 elements may have the bytes of the whole.
std::vector<bool> shardsIn(const Captured& captured, size_t count) {
  const passes::ShardRoles roles =
      orFail(passes::findShardRoles(captured.graph(), static_cast<int64_t>(count)));
  std::vector<bool> are;
  for (const passes::ShardRole role : roles.of) {
    are.push_back(role == passes::ShardRole::kParameter || role == passes::ShardRole::kOfUpdate);
  }
  return are;
}

/// A rank's part of `whole`, zeros beyond its end.
at::Tensor partOf(const at::Tensor& whole, int64_t length, size_t rank) {
  at::Tensor part = at::zeros({length}, at::TensorOptions().dtype(at::kByte));
  const int64_t begin = std::min(whole.numel(), length * static_cast<int64_t>(rank));
  const int64_t end = std::min(whole.numel(), begin + length);
  part.narrow(0, 0, end - begin).copy_(whole.narrow(0, begin, end - begin));
  return part;
}

std::vector<Found> trainShards(const Captured& captured, const ir::Graph& graph, size_t count) {
  std::vector<Found> found(count);
  const std::vector<bool> areShards = shardsIn(captured, count);
  EXPECT_EQ(onRanks(count,
                    [&](size_t i, Communicator&) {
                      Rank rank(captured, graph);
                      for (const auto& [id, bytes] : captured.first) {
                        rank.bind(id, partOf(bytes, graph.storage(id).bytes.value(),
                                             areShards[id.index()] ? i : 0));
                      }
                      for (int step = 0; step < kSteps; ++step) {
                        const Scalars& scalars = captured.scalars[static_cast<size_t>(step)];
                        rank.begin(i, step);
                        for (size_t k = 0; k < graph.nodes().size(); ++k) {
                          if (ir::Error error = rank.replay().run(ir::NodeId(k), scalars)) {
                            return ir::describe(std::move(error));
                          }
                        }
                      }
                      found[i] = rank.bytes();
                      return std::string();
                    }),
            "");
  return found;
}

struct Training {
  const char* name;
  const char* recipe;
  bool isClipped = false;  // the norm of parts is not the norm of the whole, bit for bit
};

class ShardedChain : public testing::TestWithParam<Training> {};

TEST_P(ShardedChain, TrainsAsPlainProcessesDo) {
  at::set_num_threads(1);
  runtime::setDeterministicMode(true);
  const Captured captured(GetParam().recipe);
  for (const size_t count : {2U, 3U}) {
    const std::vector<Found> plain = trainPlainly(captured, count);
    const ir::Graph graph = shard(captured, count);
    const std::vector<Found> sharded = trainShards(captured, graph, count);
    const std::vector<bool> areShards = shardsIn(captured, count);
    for (const auto& [id, expected] : plain[0]) {
      const ir::Storage& storage = captured.graph().storage(id);
      for (size_t i = 0; i < count; ++i) {
        const at::Tensor own = sharded[i].at(id);
        const at::Tensor whole = plain[i].at(id);
        const at::Tensor same = areShards[id.index()] ? partOf(whole, own.numel(), i) : whole;
        const bool isEqual = at::equal(own, same);
        const bool isNear = GetParam().isClipped && own.numel() % 4 == 0 &&
                            at::allclose(own.view(at::kFloat), same.view(at::kFloat), 1e-4, 1e-5);
        EXPECT_TRUE(isEqual || isNear) << storage.name << ", rank " << i << " of " << count;
      }
    }
  }
}

/// For the smallest budget that fits, where `budget` is below it.
passes::PlannedStep planOrSmallest(passes::StepPlanner& planner, Bytes budget) {
  ir::Expected<passes::PlannedStep> planned = planner.plan(budget);
  if (planned) return std::move(*planned);
  const ir::PlanError error = ir::takePayload(planned.takeError());
  EXPECT_EQ(error.code(), ir::ErrorCode::kInfeasible) << error.text();
  return orFail(planner.plan(error.infeasible()->smallestBudget));
}

TEST_P(ShardedChain, PlannedStepsHaveTheBitsOfTheReplay) {
  at::set_num_threads(1);
  runtime::setDeterministicMode(true);
  const Captured captured(GetParam().recipe);
  ir::Target target = orFail(planner::findTargetProfile("cpu"));
  target.intraOpThreads = 1;
  const size_t count = 2;
  const ir::Graph graph = shard(captured, count);
  const ir::CostTable costs = repeatableCosts(graph, target);
  int asked = 0;  // between searches, so that the same plans are the answer on a slow machine
  auto planner = orFail(passes::StepPlanner::make(
      graph, target, costs, {.rowBlocks = {}, .isOver = [&asked] { return ++asked > 20; }}));
  const Bytes peak = orFail(planner.plan(Bytes(int64_t{1} << 40))).result.keepAllPeak;
  for (const int64_t percent : {100, 50}) {
    asked = 0;
    const auto planned = planOrSmallest(planner, Bytes(peak.value() * percent / 100));
    const ir::NodeCosts nodes = orFail(ir::resolveCosts(planned.graph, costs));
    EXPECT_EQ(onRanks(count,
                      [&](size_t rank, Communicator& ranks) {
                        runtime::CpuDeviceOptions options;
                        options.deviceBytes = planned.schedule.arenaBytes(ir::Space::kDevice);
                        options.hostBytes = planned.schedule.arenaBytes(ir::Space::kHost);
                        options.ranks = &ranks;
                        auto device = runtime::CpuDevice::open(options);
                        if (!device) return ir::describe(device.takeError());
                        return compareWithReplay(
                            **device, {planned.graph, planned.schedule, target, &nodes, nullptr},
                            {.steps = 2, .seed = rank + 1});
                      }),
              "")
        << percent << " % in order " << static_cast<int>(planned.order);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ShardedChain,
    testing::Values(Training{"gpt2", "gpt2 layers=2 dropout=0"},
                    Training{"gpt2_fused", "gpt2 layers=2 dropout=0 optimizer=stowage_adamw"},
                    Training{"gpt2_clipped", "gpt2 layers=2 dropout=0 clip=1", true},
                    Training{"llama_bfloat16",
                             "llama layers=2 precision=bfloat16 optimizer=stowage_adamw"},
                    Training{"llama_master",
                             "llama layers=2 precision=bfloat16 optimizer=stowage_adamw "
                             "master_weights=on micro_batches=2"},
                    Training{"llama_lora_autocast", "llama_lora layers=2 precision=autocast"},
                    Training{"vit_momentum", "vit dropout=0 optimizer=sgd"},
                    Training{"resnet", "resnet micro_batches=2"},
                    Training{"lstm", "lstm dropout=0"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stowage::tests
