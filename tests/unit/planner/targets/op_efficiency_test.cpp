// SPDX-License-Identifier: Apache-2.0
//
// Estimates of each kind of kernel by hand, on a made-up GPU of round rates; and that more work
// never takes less time.
#include "planner/targets/op_efficiency.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/text/parser.h"
#include "planner/targets/op_counts.h"
#include "planner/targets/roofline.h"
#include "tests/support/or_fail.h"

namespace stowage::planner {
namespace {

using tests::orFail;

/// Per ns: 1 B, 2 operations of f32, so 1 instruction, 8 of bf16, so 4 of TF32. 7 ns per op.
ir::Target makeGpu() {
  ir::Target target;
  target.device = ir::DeviceKind::kCuda;
  target.computeCapability = 90;
  target.memoryBandwidth = BytesPerSecond(1'000'000'000);
  target.flopsPerSecond = {{ir::DType::kF32, 2'000'000'000}, {ir::DType::kBF16, 8'000'000'000}};
  target.kernelOverhead = Nanoseconds(7);
  return target;
}

/// A graph of one node: "%r : f32[4] = aten.add.Tensor(%0, %1, 1)" of inputs %0, %1.
struct OneOp {
  std::vector<std::string> inputs;
  std::string node;
};

ir::Graph graphOf(const OneOp& op) {
  std::string text = "graph @g version=1 {\n";
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    text += "  input %" + std::string(1, static_cast<char>('a' + i)) + " : " + op.inputs[i] + "\n";
  }
  return orFail(ir::parseGraph(text + "  " + op.node + "\n}\n"));
}

OpWork workOf(const OneOp& op) { return countWork(graphOf(op), ir::NodeId(0)); }

int64_t timeOf(const OneOp& op, const ir::Target& target = makeGpu()) {
  return rooflineCosts(graphOf(op), target).bySignature.begin()->second.work.value();
}

OneOp matmul(const std::string& dtype, int64_t m, int64_t n, int64_t k) {
  const auto type = [&](int64_t rows, int64_t columns) {
    return dtype + "[" + std::to_string(rows) + "," + std::to_string(columns) + "]";
  };
  return {{type(m, k), type(k, n)}, "%r : " + type(m, n) + " = aten.mm.default(%a, %b)"};
}

OneOp convolution(const std::string& dtype, int64_t channels, int64_t width, int64_t kernel) {
  const auto square = [&](int64_t first, int64_t second, int64_t size) {
    return dtype + "[" + std::to_string(first) + "," + std::to_string(second) + "," +
           std::to_string(size) + "," + std::to_string(size) + "]";
  };
  const std::string pad = std::to_string(kernel / 2);
  return {{square(1, channels, width), square(8, channels, kernel)},
          "%r : " + square(1, 8, width) + " = aten.convolution.default(%a, %b, none, [1,1], [" +
              pad + "," + pad + "], [1,1], false, [0,0], 1)"};
}

OneOp attention(int64_t sequence, bool causal, const std::string& dropout) {
  const std::string type = "bf16[1,2," + std::to_string(sequence) + ",64]";
  return {{type, type, type},
          "%r : " + type + ", %l : f32[1,2," + std::to_string(sequence) +
              "], %s : i64[], %o : i64[] = aten._scaled_dot_product_efficient_attention.default("
              "%a, %b, %c, none, true, " +
              dropout + ", " + (causal ? "true" : "false") + ", none)"};
}

// 12000 B at 91 % of the bandwidth.
TEST(OpEfficiency, OperandsLaidOutAlikeAreAsFastAsMemory) {
  const OneOp add = {{"f32[10,100]", "f32[10,100]"},
                     "%r : f32[10,100] = aten.add.Tensor(%a, %b, 1)"};
  EXPECT_EQ(timeOf(add), 13'200 + 7);
}

// 113 instructions for each of 1000 elements take longer than their bytes.
TEST(OpEfficiency, OperandsLaidOutUnlikeCostInstructions) {
  for (const OneOp& op :
       {OneOp{{"f32[10,100]", "f32[100]"}, "%r : f32[10,100] = aten.mul.Tensor(%a, %b)"},
        OneOp{{"f32[10,100] strides=[1,10]"},
              "%r : f32[10,100] = aten.clone.default(%a, memory_format(contiguous))"},
        OneOp{{"bf16[10,100]"},
              "%r : f32[10,100] = aten._to_copy.default(%a, dtype(f32), none, "
              "none, none, false, none)"}}) {
    EXPECT_EQ(workOf(op).kind, WorkKind::kWalk) << op.node;
    EXPECT_EQ(timeOf(op), 113'000 + 7) << op.node;
  }
  const OneOp narrower = {
      {"f32[10,100]"},
      "%r : bf16[10,100] = aten._to_copy.default(%a, dtype(bf16), none, none, none, false, none)"};
  EXPECT_EQ(timeOf(narrower), 6'600 + 7);
  const OneOp joined = {{"f32[10,10]", "f32[10,10]"},
                        "%r : f32[20,10] = aten.cat.default([%a, %b], 0)"};
  EXPECT_EQ(workOf(joined).kind, WorkKind::kElementwise);
}

// On an A100 a multiprocessor has half of the f32 units, but issues as many instructions.
TEST(OpEfficiency, InstructionsAreIssuedAtTheRateOfTheArchitecture) {
  ir::Target a100 = makeGpu();
  a100.computeCapability = 80;
  const OneOp gelu = {{"f32[1000]"}, "%r : f32[1000] = aten.gelu.default(%a, \"none\")"};
  EXPECT_EQ(timeOf(gelu), 48'000 + 7);
  EXPECT_EQ(timeOf(gelu, a100), 24'000 + 7);
}

// 2 * 64^3 operations at 8 per ns and 78 % take 83,886 ns; filling and emptying the device adds
// 83,886 * 6000 / 89,886. Rows of 126 B do not begin at multiples of 16 B: 12 % of the rate.
TEST(OpEfficiency, MatricesRunOnTensorCoresWhenTheirRowsAreAligned) {
  EXPECT_EQ(timeOf(matmul("bf16", 64, 64, 64)), 83'886 + 5'599 + 7);
  EXPECT_EQ(timeOf(matmul("bf16", 64, 63, 64)), 537'396 + 5'933 + 7);
  // A block computes 64 rows and columns whether they are there or not.
  EXPECT_EQ(workOf(matmul("bf16", 1, 8, 64)).flops, 2 * 64 * 64 * 64);
}

// 2 * 64^3 operations of f32 at 2 per ns and 73 %: 359,137 ns.
TEST(OpEfficiency, MatricesOfF32DoNot) {
  EXPECT_EQ(timeOf(matmul("f32", 64, 63, 64)), 359'137 + 35'991 + 7);
}

// Two heads of 128 x 128 scores; 4 * 64 operations each at 8 per ns and half the rate, one
// instruction each, and 4 * 32768 B of queries, keys, values and results with 1040 B beside them.
TEST(OpEfficiency, TermsOfAttentionAddUp) {
  const int64_t scores = int64_t{2} * 128 * 128;
  const int64_t flops = scores * 4 * 64 / 8 * 2;
  const int64_t bytes = (4 * 32'768 + 1'024 + 16) * 11 / 10;
  const auto settled = [](int64_t busy) { return busy + busy * 6'000 / (busy + 6'000) + 7; };
  EXPECT_EQ(timeOf(attention(128, false, "0.0")), settled(flops + bytes + scores));
  EXPECT_EQ(timeOf(attention(128, false, "0.1")), settled(flops + bytes + 32 * scores));
  // A tile of keys is computed whole, and a causal mask leaves the diagonal's tiles.
  EXPECT_EQ(workOf(attention(100, false, "0.0")).elements, scores);
  EXPECT_EQ(workOf(attention(256, true, "0.0")).elements, 2 * 256 * (128 + 64));
}

// 2 * 8 * 4 * 64 operations of a 1 x 1 kernel. TF32 has half of the rate of bf16.
TEST(OpEfficiency, ConvolutionsOfF32RunInTf32) {
  EXPECT_EQ(workOf(convolution("f32", 4, 8, 1)).unit, FlopUnit::kTf32);
  EXPECT_EQ(workOf(convolution("f32", 4, 8, 1)).flops, 4'096);
  // 1024 + 128 + 2048 B
  EXPECT_EQ(timeOf(convolution("f32", 4, 8, 1)), 1'843 + 3'520 + 2'831 + 7);
}

TEST(OpEfficiency, CudnnLaysImagesOutAnewForSomeKernels) {
  EXPECT_EQ(workOf(convolution("bf16", 8, 8, 1)).elements, 0);
  EXPECT_EQ(workOf(convolution("bf16", 8, 7, 1)).elements, 2 * 8 * 49);  // 98 B per channel
  EXPECT_EQ(workOf(convolution("bf16", 8, 8, 3)).elements, 2 * 8 * 64);
  EXPECT_EQ(workOf(convolution("bf16", 3, 8, 3)).kind, WorkKind::kNarrowConvolution);
  EXPECT_EQ(workOf(convolution("bf16", 3, 8, 3)).unit, FlopUnit::kVector);
}

// 4096 B take 4505 ns, settling 2741 ns, partial sums of 1024 elements 9460 ns.
TEST(OpEfficiency, LongReductionsWaitForPartialSums) {
  const OneOp sum = {{"f32[1024]"}, "%r : f32[1] = aten.sum.dim_IntList(%a, [0], true, none)"};
  EXPECT_EQ(workOf(sum).reduced, 1'024);
  // 1024 elements of 15 instructions take longer than 4100 B.
  EXPECT_EQ(timeOf(sum), 15'360 + 4'808 + 9'460 + 7);
}

// Of 64 channels, 93 keep half of the device busy: 117 * 512 * (64 + 93) / 64.
TEST(OpEfficiency, FewChannelsLeaveMultiprocessorsIdle) {
  const OneOp norm = {{"f32[1,64,8,1]", "f32[64]", "f32[64]", "f32[64]", "f32[64]"},
                      "%r : f32[1,64,8,1], %m : f32[64], %v : f32[64], %s : u8[0] = "
                      "aten.cudnn_batch_norm.default(%a, %b, %c, %d, %e, true, 0.1, 1e-05)"};
  EXPECT_EQ(workOf(norm).kind, WorkKind::kCudnnBatchNorm);
  EXPECT_EQ(timeOf(norm), 146'952 + 7);
}

TEST(OpEfficiency, OpsThatReadRowsCountTheseAlone) {
  const OneOp rows = {{"f32[1000,8]", "i64[5]"},
                      "%r : f32[5,8] = aten.embedding.default(%a, %b, -1, false, false)"};
  EXPECT_EQ(workOf(rows).bytes, Bytes(320));
}

// The smallest work of each kind, then more of one sort at a time, on every GPU.
TEST(OpEfficiency, MoreWorkOfAKindNeverTakesLess) {
  for (const ir::Target& target : targetProfiles()) {
    if (target.device != ir::DeviceKind::kCuda) continue;
    for (int kind = 0; kind <= static_cast<int>(WorkKind::kOptimizer); ++kind) {
      OpWork work = {.kind = static_cast<WorkKind>(kind), .dtype = ir::DType::kBF16};
      Nanoseconds before = kernelTime(target, work);
      EXPECT_EQ(before, target.kernelOverhead);
      for (int step = 1; step < 140; ++step) {
        int64_t* const sorts[] = {&work.flops, &work.elements, &work.reduced};
        if (step % 4 == 3) {
          work.bytes = Bytes(work.bytes.value() * 3 + 1);
        } else {
          *sorts[step % 4] = *sorts[step % 4] * 3 + 1;
        }
        const Nanoseconds now = kernelTime(target, work);
        EXPECT_GE(now, before) << target.profile << ", kind " << kind << ", step " << step;
        before = now;
        if (step == 70) work.draws = true;
      }
    }
  }
}

TEST(OpEfficiency, ALargerOpIsNeverEstimatedFaster) {
  const ir::Target target = orFail(findTargetProfile("h100"));
  int64_t before[5] = {};
  for (int64_t size = 64; size <= 8192; size += 64) {
    const std::string text = std::to_string(size);
    const int64_t now[5] = {timeOf(matmul("bf16", size, 64, size), target),
                            timeOf(matmul("f32", 64, size, 256), target),
                            timeOf(attention(size, size % 128 == 0, "0.0"), target),
                            timeOf(convolution("f32", size, 8, 3), target),
                            timeOf({{"bf16[" + text + ",64]"},
                                    "%r : bf16[1,64] = aten.sum.dim_IntList(%a, [0], true, none)"},
                                   target)};
    for (int i = 0; i < 5; ++i) {
      if (i == 2 && size % 128 != 0) continue;  // another mask
      EXPECT_GE(now[i], before[i]) << i << " of size " << size;
      before[i] = now[i];
    }
  }
}

}  // namespace
}  // namespace stowage::planner
