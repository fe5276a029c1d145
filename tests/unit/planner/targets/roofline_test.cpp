// SPDX-License-Identifier: Apache-2.0
//
// Estimates for the CPU by hand: operations and bytes of a node, the longer of their times, and
// temporaries.
#include "planner/targets/roofline.h"

#include <gtest/gtest.h>

#include "ir/text/parser.h"
#include "planner/targets/arranged_costs.h"
#include "planner/targets/op_counts.h"
#include "tests/support/or_fail.h"
#include "tests/support/worked_step.h"

namespace stowage::planner {
namespace {

using tests::orFail;

/// One B and one operation of f32 per ns, 7 ns per kernel.
ir::Target makeTarget() {
  ir::Target target;
  target.memoryBandwidth = BytesPerSecond(1'000'000'000);
  target.flopsPerSecond = {{ir::DType::kF32, 1'000'000'000}};
  target.kernelOverhead = Nanoseconds(7);
  return target;
}

ir::OpCost costOf(const ir::Graph& graph, const ir::Target& target, size_t node) {
  return rooflineCosts(graph, target).bySignature.at(ir::nodeSignature(graph, ir::NodeId(node)));
}

// Five ops have five rows. `make` writes the 512 B of a, and `read` reads them: 512 + 7 ns each.
// `wide` has no operand: its 8 units of temporaries are measured costs, which an estimate does not
// know.
TEST(Roofline, TheWorkedStepByItsBytes) {
  const tests::WorkedStep step;
  EXPECT_EQ(rooflineCosts(step.graph(), makeTarget()).bySignature.size(), 5U);
  EXPECT_EQ(countBytes(step.graph(), ir::NodeId(0)), Bytes(512));
  EXPECT_EQ(costOf(step.graph(), makeTarget(), 0).work, Nanoseconds(512 + 7));
  EXPECT_EQ(costOf(step.graph(), makeTarget(), 1).work, Nanoseconds(512 + 7));
  EXPECT_EQ(costOf(step.graph(), makeTarget(), 2).work, Nanoseconds(7));
  EXPECT_EQ(costOf(step.graph(), makeTarget(), 2).temporary, Bytes(0));
  EXPECT_EQ(costOf(step.graph(), makeTarget(), 2).source, ir::CostSource::kRoofline);
}

// It reads 2 x 400 B and writes 400 B, through the host's memory and with no kernel; without a rate
// of the host, as the link carries them. A CPU's host is the CPU.
TEST(Roofline, AnUpdateOnTheHostTakesItsBytesThroughHostMemory) {
  const ir::Graph graph =
      orFail(ir::parseGraph("graph @host version=1 {\n  input %g : f32[100]\n"
                            "  parameter %w : f32[100]\noptimizer \"\":\n"
                            "  %w = aten.add_.Tensor(inout %w, %g, -1) on host\n}\n"));
  ir::Target target = makeTarget();
  EXPECT_EQ(costOf(graph, target, 0).work, Nanoseconds(1200 + 7));
  target.device = ir::DeviceKind::kCuda;
  target.links.hostUpdates = BytesPerSecond(500'000'000);
  EXPECT_EQ(costOf(graph, target, 0).work, Nanoseconds(2400));
  // What was measured counts more than the profile.
  ir::CostTable measured;
  measured.source = ir::CostSource::kMeasured;
  measured.links.hostUpdates = BytesPerSecond(250'000'000);
  const ir::CostTable arranged = findArrangedCosts(graph, target, measured).table;
  EXPECT_EQ(arranged.bySignature.at(ir::nodeSignature(graph, ir::NodeId(0))).work,
            Nanoseconds(4800));
  target.links.hostUpdates = BytesPerSecond(0);
  target.links.hostToDevice.bandwidth = BytesPerSecond(100'000'000);
  EXPECT_EQ(costOf(graph, target, 0).work, Nanoseconds(12'000));
}

// 2 * 4 * 5 * 3 operations on 4 * (12 + 15 + 20) bytes. At half the rate the arithmetic is longer.
TEST(Roofline, ANodeTakesTheLongerOfItsArithmeticAndItsBytes) {
  const ir::Graph graph =
      orFail(ir::parseGraph("graph @mm version=1 {\n  input %a : f32[4,3]\n  input %b : f32[3,5]\n"
                            "  %c : f32[4,5] = aten.mm.default(%a, %b)\n}\n"));
  EXPECT_EQ(countFlops(graph, ir::NodeId(0)), 120);
  EXPECT_EQ(countBytes(graph, ir::NodeId(0)), Bytes(188));
  ir::Target target = makeTarget();
  EXPECT_EQ(costOf(graph, target, 0).work, Nanoseconds(188 + 7));
  target.flopsPerSecond[0].second /= 2;
  EXPECT_EQ(costOf(graph, target, 0).work, Nanoseconds(240 + 7));
}

// x + x reads x once and writes 16 B. The sum of 4 floats has 4 times their bytes as temporaries,
// and 10 % more for other devices: 70.4 B, rounded up to 512.
TEST(Roofline, AStorageCountsOnceAndTemporariesAreRoundedUp) {
  const ir::Graph graph =
      orFail(ir::parseGraph("graph @g version=1 {\n  input %x : f32[4]\n"
                            "  %y : f32[4] = aten.add.Tensor(%x, %x, 1)\n"
                            "  %z : f32[1] = aten.sum.dim_IntList(%y, [0], true, none)\n}\n"));
  EXPECT_EQ(countBytes(graph, ir::NodeId(0)), Bytes(16 + 16));
  EXPECT_EQ(costOf(graph, makeTarget(), 0).temporary, Bytes(0));
  EXPECT_EQ(costOf(graph, makeTarget(), 1).temporary, Bytes(512));
}

// 4 * b h s d * s of the keys: 4 * (1 * 2 * 3 * 4) * 5. A causal mask leaves half of it.
TEST(Roofline, CausalAttentionIsHalfTheWork) {
  for (const bool isCausal : {false, true}) {
    const std::string text =
        "graph @g version=1 {\n  input %q : f32[1,2,3,4]\n  input %k : f32[1,2,5,4]\n"
        "  input %v : f32[1,2,5,4]\n  %o : f32[1,2,3,4], %l : f32[1,2,3] = "
        "aten._scaled_dot_product_flash_attention_for_cpu.default(%q, %k, %v, 0.0, " +
        std::string(isCausal ? "true" : "false") + ", none, none)\n}\n";
    EXPECT_EQ(countFlops(orFail(ir::parseGraph(text)), ir::NodeId(0)), isCausal ? 240 : 480);
  }
}

// Rates of one per second come from files only. Times stay far from overflow.
TEST(Roofline, NoNodeTakesLongerThanTheLongestCommand) {
  const ir::Graph graph =
      orFail(ir::parseGraph("graph @g version=1 {\n  input %x : f32[1000000,1000000]\n"
                            "  %y : f32[1000000,1000000] = aten.mm.default(%x, %x)\n}\n"));
  ir::Target target = makeTarget();
  target.memoryBandwidth = BytesPerSecond(1);
  target.flopsPerSecond[0].second = 1;
  EXPECT_EQ(costOf(graph, target, 0).work, kLongestCommand + target.kernelOverhead);
}

}  // namespace
}  // namespace stowage::planner
