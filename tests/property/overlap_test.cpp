// SPDX-License-Identifier: Apache-2.0
//
// Copies run beside compute, not between: in virtual time, a step planned with offloading alone
// takes little more than the longer of its compute and its busiest link. The same step with every
// copy waited for at once takes their sum, which shows that the measure can tell them apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "ir/costs/cost_table.h"
#include "passes/arrange_graph.h"
#include "passes/plan_step.h"
#include "planner/evaluate/timeline.h"
#include "planner/targets/roofline.h"
#include "runtime/fake/fake_device.h"
#include "tests/support/fake_training.h"
#include "tests/support/random_graph.h"
#include "tests/support/step_builder.h"

namespace stowage::tests {
namespace {

constexpr int kLayers = 16;
constexpr int64_t kRows = 256;
constexpr int64_t kWidth = 64;
constexpr Nanoseconds kOp(100'000);

/// A stack of wide layers under plain SGD: activations are most of its memory.
ir::Graph makeStack() {
  StepBuilder step({.name = "stack"});
  const ir::ValueId data = step.input("data", ir::DType::kF32, {kRows, kWidth});
  const ir::ValueId target = step.input("target", ir::DType::kI64, {kRows});
  const ir::ScalarId rate = step.scalar("rate", -0.1);
  Var x = step.asVar(data);
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string name = "layers." + std::to_string(layer);
    const Var weight = step.parameter(name + ".weight", {kWidth, kWidth});
    step.enter(name);
    x = step.pointwise("tanh", step.linear(x, weight, std::nullopt));
  }
  step.backward(step.crossEntropy(x, target, "loss"));
  step.updateSgd(rate, 0, 0);
  return std::move(step).finish();
}

/// Times of one step in virtual nanoseconds.
struct Times {
  int64_t compute = 0;
  int64_t link = 0;  // the busier direction
  int64_t ranks = 0;
  int64_t step = 0;  // in the steady state
};

class Overlap : public testing::Test {
 protected:
  Overlap() : graph_(makeStack()), target_(makeTestTarget()) {
    costs_ = makeRandomCosts(graph_, 1);
    for (auto& [signature, cost] : costs_.bySignature) {
      cost.work = kOp;
      cost.launch = Nanoseconds(0);
    }
    // 64 KiB activations: the link carries one in the time of four ops.
    setLinks(BytesPerSecond(int64_t{150} << 20));
  }

  void setLinks(BytesPerSecond bandwidth) {
    const ir::LinkRate rate = {.bandwidth = bandwidth, .latency = {}};
    costs_.links = {.deviceToHost = rate,
                    .hostToDevice = rate,
                    .diskRead = rate,
                    .diskWrite = rate,
                    .bothPermille = 1000};
    target_.links = costs_.links;
  }

  /// What the planner says that the schedule takes with these costs.
  int64_t predict(const passes::PlannedStep& planned) const {
    const ir::NodeCosts costs = llvm::cantFail(ir::resolveCosts(planned.graph, costs_));
    return planner::computeTimeline(planned.graph, planned.schedule, costs, target_.alignBytes)
        .stepTime.value();
  }

  /// Each collective takes as long as `ops` ops of compute.
  void shareWith(int64_t ranks, double ops) {
    graph_ = llvm::cantFail(passes::graphForRanks(graph_, ranks));
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      costs_.bySignature[ir::nodeSignature(graph_, ir::NodeId(i))].work = kOp;
    }
    for (auto& [signature, cost] : costs_.bySignature) {
      if (llvm::StringRef(signature).contains("stowage.")) cost.work = Nanoseconds(0);
    }
    costs_.links.betweenRanks = {
        .bandwidth = BytesPerSecond(int64_t{1} << 50),
        .latency = Nanoseconds(static_cast<int64_t>(ops * static_cast<double>(kOp.value())))};
  }

  passes::PlannedStep planOffload(int64_t percent) { return plan(percent, /*recompute=*/false); }

  passes::PlannedStep plan(int64_t percent, bool recompute) {
    passes::PlanStepOptions options;
    options.budget = Bytes(int64_t{1} << 30);
    options.allowed = {
        .offload = true, .disk = false, .recompute = recompute, .inPlaceReuse = true};
    const Bytes all =
        llvm::cantFail(passes::planStep(graph_, target_, costs_, options)).result.keepAllPeak;
    options.budget = Bytes(all.value() * percent / 100 / 512 * 512);
    return llvm::cantFail(passes::planStep(graph_, target_, costs_, options));
  }

  Times play(const ir::Graph& graph, const ir::Schedule& schedule) {
    const ir::NodeCosts costs = llvm::cantFail(ir::resolveCosts(graph, costs_));
    runtime::FakeDevice device(schedule.arenas);
    constexpr int kSteps = 6;
    EXPECT_EQ(compareWithReference(device, {graph, schedule, target_, &costs, nullptr}, kSteps),
              "");
    Times times;
    const auto& spans = device.stepSpans();
    times.step = (spans[kSteps - 1].end - spans[kSteps - 2].end).value();
    std::array<int64_t, ir::kStreamCount> busy{};
    for (const ir::Command& command : schedule.commands) {
      busy[static_cast<size_t>(command.stream)] +=
          command.stream == ir::Stream::kCollective
              ? costs.collectiveWork[command.node.index()].value()
          : command.kind == ir::CommandKind::kRun
              ? costs.time(command.node).value()
              : copyTime(graph.storage(schedule.residency(command.from).storage).bytes);
    }
    times.compute = busy[static_cast<size_t>(ir::Stream::kCompute)];
    times.link = std::max(busy[static_cast<size_t>(ir::Stream::kDeviceToHost)],
                          busy[static_cast<size_t>(ir::Stream::kHostToDevice)]);
    times.ranks = busy[static_cast<size_t>(ir::Stream::kCollective)];
    return times;
  }

  int64_t copyTime(Bytes bytes) const {
    return bytes.value() * 1'000'000'000 / costs_.links.deviceToHost.bandwidth.value();
  }

  ir::Graph graph_;
  ir::Target target_;
  ir::CostTable costs_;
};

TEST_F(Overlap, StepsTakeTheLongerOfComputeAndLink) {
  const passes::PlannedStep planned = planOffload(50);
  const Times times = play(planned.graph, planned.schedule);
  // Enough is copied that the sum would show.
  ASSERT_GT(static_cast<double>(times.link), 0.4 * static_cast<double>(times.compute));
  EXPECT_LE(static_cast<double>(times.step),
            1.05 * static_cast<double>(std::max(times.compute, times.link)));
}

// What a plan would take on another machine is known without running it there.
TEST_F(Overlap, PredictionsHoldOnALinkOfHalfTheSpeed) {
  const passes::PlannedStep planned = planOffload(50);
  const int64_t before = predict(planned);
  EXPECT_EQ(before, planned.schedule.predicted.stepTime.value());
  EXPECT_NEAR(static_cast<double>(play(planned.graph, planned.schedule).step),
              static_cast<double>(before), 0.01 * static_cast<double>(before));
  setLinks(BytesPerSecond(int64_t{75} << 20));
  const int64_t slower = predict(planned);
  EXPECT_GT(static_cast<double>(slower), 1.2 * static_cast<double>(before));
  EXPECT_NEAR(static_cast<double>(play(planned.graph, planned.schedule).step),
              static_cast<double>(slower), 0.01 * static_cast<double>(slower));
}

TEST_F(Overlap, CopiesThatAreWaitedForAtOnceTakeTheSum) {
  const passes::PlannedStep planned = planOffload(50);
  ir::Schedule schedule = planned.schedule;
  for (size_t i = 1; i < schedule.commands.size(); ++i) {
    schedule.commands[i].wait = {ir::CommandId(i - 1)};
  }
  const Times times = play(planned.graph, schedule);
  EXPECT_GT(static_cast<double>(times.step),
            1.1 * static_cast<double>(std::max(times.compute, times.link)));
}

// What other ranks send arrives before it is read, and what waits for them runs later.
TEST_F(Overlap, CollectivesRunBesideCompute) {
  shareWith(4, 1.5);
  for (const int64_t percent : {100, 60}) {
    const passes::PlannedStep planned = plan(percent, /*recompute=*/true);
    const Times times = play(planned.graph, planned.schedule);
    ASSERT_GT(static_cast<double>(times.ranks), 0.4 * static_cast<double>(times.compute));
    // The first gather has nothing beside it, nor have the last gradient's mean and update.
    EXPECT_LE(times.step, std::max(times.compute, times.ranks) + 5 * kOp.value()) << percent;
    EXPECT_EQ(times.step, predict(planned)) << percent;
  }
}

// The bound counts them as what they are: one after the other, beside compute.
TEST_F(Overlap, ALinkBetweenRanksThatIsSlowerThanComputeBinds) {
  shareWith(4, 8);
  const passes::PlannedStep planned = plan(100, /*recompute=*/true);
  const Times times = play(planned.graph, planned.schedule);
  ASSERT_GT(times.ranks, times.compute);
  EXPECT_GE(planned.schedule.predicted.bound.value(), times.ranks);
  EXPECT_LE(static_cast<double>(times.step), 1.2 * static_cast<double>(times.ranks));
  EXPECT_GT(planned.result.timetable.stalls.ranks.value(), 0);
}

TEST_F(Overlap, CollectivesThatAreWaitedForAtOnceTakeTheSum) {
  shareWith(4, 1.5);
  const passes::PlannedStep planned = plan(100, /*recompute=*/true);
  ir::Schedule schedule = planned.schedule;
  for (size_t i = 1; i < schedule.commands.size(); ++i) {
    schedule.commands[i].wait = {ir::CommandId(i - 1)};
  }
  const Times times = play(planned.graph, schedule);
  // But for the first of a step, which runs beside the end of the step before.
  EXPECT_GE(times.step, times.compute + times.ranks - 6 * kOp.value());
}

}  // namespace
}  // namespace stowage::tests
