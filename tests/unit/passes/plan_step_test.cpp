// SPDX-License-Identifier: Apache-2.0
#include "passes/plan_step.h"

#include <gtest/gtest.h>

#include "ir/schedule/fingerprint.h"
#include "ir/text/parser.h"
#include "ir/verify/verify.h"
#include "planner/targets/arranged_costs.h"
#include "planner/targets/roofline.h"

namespace stowage::passes {
namespace {

/// Two layers with momentum SGD. Each matrix is 64 KiB; activations and optimizer state can move.
constexpr const char* kTwoLayers = R"ir(
graph @two version=1 device="cpu" target="cpu" recipe="" producer="" steps=0 {
  scalar #lr : f64 = -0.1
  input %x "x" : f32[128,128]
  parameter %w1 "a.weight" : f32[128,128]
  parameter %w2 "b.weight" : f32[128,128]
  state %m1 "m(a.weight)" : f32[128,128]
  state %m2 "m(b.weight)" : f32[128,128]
  view %w2t of %w2 : f32[128,128] strides=[1,128]
forward "a":
  %h1 : f32[128,128] = aten.mm.default(%x, %w1)
  %g1 : f32[128,128] = aten.relu.default(%h1)
forward "b":
  %h2 : f32[128,128] = aten.mm.default(%g1, %w2)
  %l "loss" output : f32[] = aten.sum.default(%h2, none)
backward "b":
  %d2 : f32[128,128] = aten.threshold_backward.default(%h2, %h2, 0)
  %dw2 "grad(b.weight)" gradient : f32[128,128] = aten.mm.default(%g1, %d2)
  %d1 : f32[128,128] = aten.mm.default(%d2, %w2t)
backward "a":
  %e1 : f32[128,128] = aten.threshold_backward.default(%d1, %g1, 0)
  %dw1 "grad(a.weight)" gradient : f32[128,128] = aten.mm.default(%x, %e1)
optimizer "":
  aten.add_.Tensor(inout %m1, %dw1, 1)
  aten.add_.Tensor(inout %w1, %m1, #lr)
  aten.add_.Tensor(inout %m2, %dw2, 1)
  aten.add_.Tensor(inout %w2, %m2, #lr)
}
)ir";

class PlanStep : public testing::Test {
 protected:
  void SetUp() override {
    ir::Expected<ir::Graph> graph = ir::parseGraph(kTwoLayers);
    ASSERT_TRUE(static_cast<bool>(graph)) << ir::describe(graph.takeError());
    graph_ = std::move(*graph);
    target_ = *planner::findTargetProfile("cpu");
    costs_ = planner::rooflineCosts(graph_, target_);
  }
  ir::Expected<PlannedStep> planAt(int64_t bytes) {
    return planStep(graph_, target_, costs_, {.budget = Bytes(bytes)});
  }

  ir::Graph graph_;
  ir::Target target_;
  ir::CostTable costs_;
};

TEST_F(PlanStep, PlansAreProvenAndTimeFallsWithTheBudget) {
  Nanoseconds before(INT64_MAX);
  int planned = 0;
  for (int64_t bytes = 4 << 16; bytes <= 16 << 16; bytes += 1 << 15) {
    ir::Expected<PlannedStep> step = planAt(bytes);
    if (!step) {
      const ir::PlanError error = ir::takePayload(step.takeError());
      EXPECT_EQ(error.code(), ir::ErrorCode::kInfeasible) << error.text();
      EXPECT_EQ(planned, 0) << "a bigger budget is infeasible";
      continue;
    }
    ++planned;
    EXPECT_EQ(ir::describe(ir::verifyOrError({.graph = step->graph,
                                              .schedule = step->schedule,
                                              .target = target_,
                                              .budget = Bytes(bytes)})),
              "");
    EXPECT_LE(step->schedule.predicted.stepTime, before);
    EXPECT_LE(step->schedule.predicted.bound, step->schedule.predicted.stepTime);
    EXPECT_LE(step->schedule.predicted.peakBytes, Bytes(bytes));
    before = step->schedule.predicted.stepTime;
  }
  EXPECT_GT(planned, 3);
}

TEST_F(PlanStep, TheSmallestBudgetThatANoNamesWorksAndOneUnitLessDoesNot) {
  ir::Expected<PlannedStep> infeasible = planAt(2 << 16);
  ASSERT_FALSE(static_cast<bool>(infeasible));
  const ir::PlanError error = ir::takePayload(infeasible.takeError());
  ASSERT_TRUE(error.infeasible().has_value()) << error.text();
  const int64_t smallest = error.infeasible()->smallestBudget.value();
  ir::Expected<PlannedStep> yes = planAt(smallest);
  EXPECT_TRUE(static_cast<bool>(yes)) << ir::describe(yes.takeError());
  ir::Expected<PlannedStep> less = planAt(smallest - target_.alignBytes);
  ASSERT_FALSE(static_cast<bool>(less));
  llvm::consumeError(less.takeError());
}

// Wherever a search is ended, there is an answer that fits where a whole search has one, and what
// it told of was getting faster.
TEST_F(PlanStep, ASearchThatIsEndedHasAPlanThatFits) {
  int ended = 0;
  for (int64_t bytes = 4 << 16; bytes <= 16 << 16; bytes += 1 << 15) {
    ir::Expected<PlannedStep> whole = planAt(bytes);
    if (!whole) {
      llvm::consumeError(whole.takeError());
      continue;
    }
    EXPECT_FALSE(whole->wasEnded);
    for (const int most : {0, 1, 3}) {
      int asked = 0;
      std::vector<Nanoseconds> told;
      PlanStepOptions options{.budget = Bytes(bytes)};
      options.isOver = [&] { return asked++ >= most; };
      options.found = [&](Nanoseconds time, Nanoseconds bound) {
        EXPECT_LE(bound, time);
        EXPECT_TRUE(told.empty() || time < told.back());
        told.push_back(time);
      };
      ir::Expected<PlannedStep> step = planStep(graph_, target_, costs_, options);
      ASSERT_TRUE(static_cast<bool>(step)) << ir::describe(step.takeError());
      EXPECT_LE(step->schedule.predicted.peakBytes, Bytes(bytes));
      EXPECT_GE(step->schedule.predicted.stepTime, whole->schedule.predicted.stepTime);
      EXPECT_FALSE(told.empty());
      ended += step->wasEnded ? 1 : 0;
    }
  }
  EXPECT_GT(ended, 0);
}

TEST_F(PlanStep, AnEndedSearchThatHasTooLittleOfTheHostSaysThatLessMayDo) {
  PlanStepOptions options{.budget = Bytes(8 << 16)};
  options.limits.host = Bytes(0);
  ir::Expected<PlannedStep> whole = planStep(graph_, target_, costs_, options);
  options.isOver = [] { return true; };
  ir::Expected<PlannedStep> early = planStep(graph_, target_, costs_, options);
  ASSERT_FALSE(static_cast<bool>(whole));
  ASSERT_FALSE(static_cast<bool>(early));
  const std::string wholeText = ir::describe(whole.takeError());
  const std::string earlyText = ir::describe(early.takeError());
  const std::string note = "the time limit ended the search: less of the host may do";
  EXPECT_EQ(wholeText.find(note), std::string::npos) << wholeText;
  EXPECT_NE(earlyText.find(note), std::string::npos) << earlyText;
}

TEST_F(PlanStep, HoistingIsTheSameGraphInAnotherOrder) {
  ir::Expected<ir::Graph> hoisted = arrangeGraph(graph_, Order::kHoisted);
  ASSERT_TRUE(static_cast<bool>(hoisted));
  EXPECT_NE(ir::fingerprint(*hoisted), ir::fingerprint(graph_));
  EXPECT_EQ(hoisted->nodes().size(), graph_.nodes().size());
}

// Deferred updates cannot be part of a recorded step.
TEST_F(PlanStep, AnOrderMustBeLeft) {
  PlanStepOptions options{.budget = Bytes(INT64_MAX / 4)};
  options.orders = {Order::kDeferred};
  options.graphMode = ir::GraphMode::kWhole;
  ir::Expected<PlannedStep> none = planStep(graph_, target_, costs_, options);
  ASSERT_FALSE(static_cast<bool>(none));
  const ir::PlanError error = ir::takePayload(none.takeError());
  EXPECT_EQ(error.code(), ir::ErrorCode::kInvalidArgument);
  EXPECT_NE(error.text().find("no order of nodes is left"), std::string::npos);
}

// A head of 8 columns and 4096 classes: logits of 4 MiB, and of 4 MiB each what the loss makes of
// them. The unblocked step holds three of these at once.
constexpr const char* kLoss = R"ir(
graph @head version=1 device="cpu" target="cpu" recipe="" producer="" steps=0 {
  scalar #lr : f64 = -0.1
  input %x "x" : f32[256,8]
  input %t "t" : i64[256]
  parameter %w "head.weight" : f32[4096,8]
  view %wt of %w : f32[8,4096] strides=[1,8]
forward "head":
  %z "head/logits" : f32[256,4096] = aten.mm.default(%x, %wt)
  %p : f32[256,4096] = aten._log_softmax.default(%z, 1, false)
  %l "loss" output : f32[], %n : f32[] = aten.nll_loss_forward.default(%p, %t, none, 1, -100)
  %o : f32[] = aten.ones_like.default(%l, none, none, none, none, memory_format(contiguous))
backward "head":
  %g : f32[256,4096] = aten.nll_loss_backward.default(%o, %p, %t, none, 1, -100, %n)
  %d : f32[256,4096] = aten._log_softmax_backward_data.default(%g, %p, 1, dtype(f32))
  view %dt of %d : f32[4096,256] strides=[1,4096]
  %dw "grad(head.weight)" gradient : f32[4096,8] = aten.mm.default(%dt, %x)
optimizer "":
  aten.add_.Tensor(inout %w, %dw, #lr)
}
)ir";

class PlanRowBlocks : public PlanStep {
 protected:
  void SetUp() override {
    graph_ = std::move(*ir::parseGraph(kLoss));
    target_ = *planner::findTargetProfile("cpu");
    costs_ = planner::rooflineCosts(graph_, target_);
  }
  int64_t smallestBudget(const PlanStepOptions& options) {
    PlanStepOptions asked = options;
    asked.budget = Bytes(1024);
    ir::Expected<PlannedStep> infeasible = planStep(graph_, target_, costs_, asked);
    if (infeasible) return 0;
    const ir::PlanError error = ir::takePayload(infeasible.takeError());
    return error.infeasible() ? error.infeasible()->smallestBudget.value() : 0;
  }
};

TEST_F(PlanRowBlocks, FitBelowWhatTheWholeLossHolds) {
  const int64_t whole = smallestBudget({.rowBlocks = {}});
  EXPECT_GE(whole, int64_t{12} << 20);
  const int64_t blocked = smallestBudget({});
  EXPECT_LE(blocked, int64_t{6} << 20);
  const Bytes budget(blocked);
  ir::Expected<PlannedStep> step = planAt(blocked);
  ASSERT_TRUE(static_cast<bool>(step)) << ir::describe(step.takeError());
  EXPECT_GT(step->rowBlocks, 1);
  EXPECT_EQ(step->boundScope,
            "program,hoisted,deferred,row-blocks=" + std::to_string(step->rowBlocks));
  EXPECT_GE(step->schedule.predicted.bound, step->schedule.predicted.computeTime);
  ASSERT_NE(step->costs, nullptr);
  EXPECT_EQ(
      ir::describe(ir::verifyOrError(
          {.graph = step->graph, .schedule = step->schedule, .target = target_, .budget = budget})),
      "");
  ir::Expected<ir::Graph> again = arrangeGraph(graph_, step->order, step->rowBlocks);
  ASSERT_TRUE(static_cast<bool>(again));
  EXPECT_EQ(ir::fingerprint(*again), ir::fingerprint(step->graph));
}

TEST_F(PlanRowBlocks, AreNotUsedWhereTheWholeStepFits) {
  ir::Expected<PlannedStep> step = planAt(int64_t{64} << 20);
  ASSERT_TRUE(static_cast<bool>(step)) << ir::describe(step.takeError());
  EXPECT_EQ(step->rowBlocks, 1);
  EXPECT_EQ(step->costs, nullptr);
}

TEST_F(PlanRowBlocks, MoreBudgetIsNeverSlower) {
  ir::Expected<StepPlanner> planner = StepPlanner::make(graph_, target_, costs_, {});
  ASSERT_TRUE(static_cast<bool>(planner)) << ir::describe(planner.takeError());
  Nanoseconds before(INT64_MAX);
  int planned = 0;
  for (int64_t bytes = int64_t{4} << 20; bytes <= int64_t{16} << 20; bytes += 77 * 1024) {
    ir::Expected<PlannedStep> step = planner->plan(Bytes(bytes / 512 * 512));
    if (!step) {
      llvm::consumeError(step.takeError());
      EXPECT_EQ(planned, 0) << bytes;
      continue;
    }
    ++planned;
    EXPECT_LE(step->schedule.predicted.stepTime, before) << bytes;
    EXPECT_LE(step->schedule.predicted.bound, step->schedule.predicted.stepTime) << bytes;
    before = step->schedule.predicted.stepTime;
  }
  EXPECT_GT(planned, 100);
}

// What a table lacks comes from the whole op: a quarter of the rows takes a quarter of the time.
// Kernels of other row blocks take other times, so their bounds say nothing.
TEST_F(PlanRowBlocks, TheBoundIsAboutTheChosenGraph) {
  int blocked = 0;
  for (int64_t kibibytes = 6 * 1024; kibibytes <= 14 * 1024; kibibytes += 512) {
    ir::Expected<PlannedStep> step =
        planStep(graph_, target_, costs_, {.budget = Bytes(kibibytes * 1024)});
    if (!step) {
      llvm::consumeError(step.takeError());
      continue;
    }
    const ir::NodeCosts costs =
        llvm::cantFail(ir::resolveCosts(step->graph, costsOf(*step, costs_)));
    EXPECT_GE(step->result.bound, costs.totalTime()) << kibibytes << " KiB";
    EXPECT_GE(step->result.timetable.stepTime, step->result.bound);
    blocked += step->rowBlocks > 1 ? 1 : 0;
  }
  EXPECT_GT(blocked, 3);
}

TEST_F(PlanRowBlocks, CostsOfBlocksAreSharesOfMeasuredOnes) {
  ir::CostTable measured = costs_;
  measured.source = ir::CostSource::kMeasured;
  for (auto& [signature, cost] : measured.bySignature) {
    cost.work = Nanoseconds(1000);
    cost.launch = Nanoseconds(7);
    cost.temporary = Bytes(4096);
  }
  ir::Expected<ir::Graph> blocked = arrangeGraph(graph_, Order::kProgram, 4);
  ASSERT_TRUE(static_cast<bool>(blocked));
  const planner::ArrangedCosts found = planner::findArrangedCosts(*blocked, target_, measured);
  EXPECT_GT(found.estimated, 3);
  int shares = 0;
  for (size_t i = 0; i < blocked->nodes().size(); ++i) {
    const ir::OpCost& cost = found.table.bySignature.at(ir::nodeSignature(*blocked, ir::NodeId(i)));
    EXPECT_EQ(cost.launch, Nanoseconds(7));
    if (blocked->nodes()[i].op != "aten._log_softmax.default") continue;
    EXPECT_EQ(cost.work, Nanoseconds(250) + target_.kernelOverhead);
    EXPECT_EQ(cost.temporary, Bytes(1024));
    ++shares;
  }
  EXPECT_EQ(shares, 4);
}

// A convolution's output is normalised; the result is read again at the end, when nothing else is
// left to give way. Running statistics are updated once, by the original.
constexpr const char* kBatchNorm = R"ir(
graph @bn version=1 device="cpu" target="cpu" recipe="" producer="" steps=0 {
  input %x "x" : f32[4,64,8,8]
  buffer %rm "mean" : f32[64]
  buffer %rv "var" : f32[64]
forward "bn":
  %y : f32[4,64,8,8] = aten.mul.Scalar(%x, 2.0)
  %p : f32[4,64,8,8], %m : f32[64], %v : f32[64] = aten.native_batch_norm.default(%y, none, none, inout %rm, inout %rv, true, 0.1, 1.0e-5)
  %q : f32[4,64,8,8] = aten.mul.Scalar(%p, 3.0)
  %a "a" output : f32[] = aten.sum.default(%q, none)
  %r : f32[4,64,8,8] = aten.mul.Scalar(%x, 4.0)
  %s : f32[4,64,8,8] = aten.mul.Tensor(%r, %r)
  %b "b" output : f32[] = aten.sum.default(%s, none)
  %t : f32[4,64,8,8] = aten.mul.Tensor(%p, %y)
  %c "c" output : f32[] = aten.sum.default(%t, none)
}
)ir";

TEST(PlanStepReplay, ABatchNormIsRecomputedWithoutItsStatistics) {
  ir::Expected<ir::Graph> graph = ir::parseGraph(kBatchNorm);
  ASSERT_TRUE(static_cast<bool>(graph)) << ir::describe(graph.takeError());
  const ir::Target target = *planner::findTargetProfile("cpu");
  const ir::CostTable costs = planner::rooflineCosts(*graph, target);
  const Bytes budget(4 * 65536 + 8192);
  PlanStepOptions options{.budget = budget, .orders = {Order::kProgram}};
  options.pins = {{.pattern = "p", .action = ir::GapAction::kRecompute}};
  ir::Expected<PlannedStep> step = planStep(*graph, target, costs, options);
  ASSERT_TRUE(static_cast<bool>(step)) << ir::describe(step.takeError());
  int recomputes = 0;
  for (const ir::Command& command : step->schedule.commands) {
    if (command.kind != ir::CommandKind::kRun || command.node != ir::NodeId(1)) continue;
    if (command.recompute == 0) continue;
    ++recomputes;
    EXPECT_EQ(command.in.size(), 1U) << "the input alone";
    EXPECT_EQ(command.out.size(), 3U);
  }
  EXPECT_EQ(recomputes, 1);
  EXPECT_EQ(
      ir::describe(ir::verifyOrError(
          {.graph = step->graph, .schedule = step->schedule, .target = target, .budget = budget})),
      "");
}

}  // namespace
}  // namespace stowage::passes
