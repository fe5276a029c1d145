// SPDX-License-Identifier: Apache-2.0
//
// Graphs as files give them: each case is a step that passes, changed in one place, and what is
// said of it. That whole steps of models pass is shown where verbs load them (tests/chain).
#include <gtest/gtest.h>

#include <string>

#include "ir/graph/op_table.h"
#include "ir/text/parser.h"
#include "planner/targets/roofline.h"
#include "runtime/capture/loaded/call_checks.h"
#include "tests/support/or_fail.h"
#include "tests/support/sample_graph.h"

namespace stowage::runtime {
namespace {

constexpr const char* kFused = R"ir(
graph @fused version=1 device="cpu" target="cpu" {
  input %x : f32[4,3]
  parameter %w : f32[3,5]
  parameter %bias : f32[5]
  gradient %gw persistent : f32[3,5]
  state %m : f32[3,5]
  state %v : f32[3,5]
  step_counter %t : f32[]
forward "":
  %y : f32[4,5] = aten.addmm.default(%bias, %x, %w)
  %r : f32[4,5] = aten.relu.default(%y)
  %p : f32[4,5], %mean : f32[4,1], %inv : f32[4,1] = aten.native_layer_norm.default(%r, [5], none, none, 1.0e-5)
  %l "loss" output : f32[] = aten.sum.default(%p)
optimizer "":
  aten.add_.Tensor(inout %m, %gw, 1)  // UPDATE
}
)ir";

/// What is said of `text` with its first `what` replaced; "" when nothing is wrong.
std::string findWrong(std::string text, const std::string& what = "",
                      const std::string& with = "") {
  const size_t place = text.find(what);
  EXPECT_NE(place, std::string::npos) << what;
  text.replace(place, what.size(), with);
  ir::Expected<ir::Graph> graph = ir::parseGraph(text);
  if (!graph) return ir::describe(graph.takeError());
  ir::Target target = tests::orFail(planner::findTargetProfile("cpu"));
  std::optional<WrongCall> wrong = tests::orFail(findWrongCall(*graph, target));
  return wrong ? wrong->text : "";
}

std::string adamw(const std::string& arguments) {
  std::string text = kFused;
  const size_t place = text.find("aten.add_.Tensor");
  return text.replace(place, text.find('\n', place) - place,
                      "aten._fused_adamw_.default(" + arguments + ")");
}

constexpr const char* kRest = "0.1, 0.9, 0.999, 0.01, 1.0e-8, false, false, none, none";

void expectSays(const std::string& found, const std::string& words) {
  EXPECT_NE(found.find(words), std::string::npos) << "found: " << found;
}

TEST(CallChecks, AStepThatIsWhatItSaysPasses) {
  EXPECT_EQ(findWrong(tests::kSampleGraph), "");
  EXPECT_EQ(findWrong(adamw(
                std::string("[inout %w], [inout %gw], [inout %m], [inout %v], values[], [%t], ") +
                kRest)),
            "");
}

TEST(CallChecks, WritesAreThoseOfTheSchema) {
  const std::string sample = tests::kSampleGraph;
  expectSays(findWrong(sample, "relu_.default(inout %h)", "relu_.default(%h)"),
             "the op writes %h, found it read only");
  expectSays(findWrong(sample, "aten.mm.default(%e, %w)", "aten.mm.default(%e, inout %w)"),
             "the op does not write %w");
  expectSays(findWrong(sample, "add_.Tensor(inout %g, %g2, 1)", "add_.Tensor(out %g, %g2, 1)"),
             "the op reads %g before it writes it");
}

TEST(CallChecks, ResultsAreThoseOfTheOp) {
  const std::string sample = tests::kSampleGraph;
  expectSays(findWrong(sample, "%h : f32[16,16] = aten.mm", "%h : f32[16,17] = aten.mm"),
             "expected f32[16,16]");
  expectSays(findWrong(sample, "%k2 : bool[16,16] = aten.native", "%k2 : u8[16,16] = aten.native"),
             "expected bool[16,16]");
  expectSays(
      findWrong(sample, "%z : f32[16,16] = aten.gelu", "%z : f32[16,16] bytes=2048 = aten.gelu"),
      "in a storage of 2048 bytes, expected 1024");
  expectSays(findWrong(sample, "%h = aten.relu_.default(inout %h)",
                       "%hr : f32[16,16] = aten.relu_.default(inout %h)"),
             "with a storage of its own");
  expectSays(findWrong(kFused, ", %inv : f32[4,1] = aten", " = aten"),
             "found 2 results, expected 3");
}

TEST(CallChecks, OperandsAreWhatTheOpAsksFor) {
  const std::string sample = tests::kSampleGraph;
  expectSays(findWrong(sample, "parameter %w \"fc.weight\" : f32[16,16]",
                       "parameter %w \"fc.weight\" : f32[15,16]"),
             "aten.mm.default");
  expectSays(findWrong(sample, "native_dropout.default(%h, 0.5, true)",
                       "native_dropout.default(%h, \"half\", true)"),
             "argument 'p': found a string");
  expectSays(findWrong(sample, "native_dropout.default(%h, 0.5, true)",
                       "native_dropout.default(%h, none, true)"),
             "argument 'p': found none");
  expectSays(findWrong(sample, "aten.mm.default(%e, %w)", "aten.mm.default(%e, [1, 2])"),
             "argument 'mat2'");
}

TEST(CallChecks, FusedOptimizersAreHeldToTheirParameters) {
  const auto check = [](const std::string& declared, const std::string& instead) {
    const std::string text = adamw(
        std::string("[inout %w], [inout %gw], [inout %m], [inout %v], values[], [%t], ") + kRest);
    return findWrong(text, declared, instead);
  };
  expectSays(check("state %v : f32[3,5]", "state %v : f32[7]"),
             "found exp_avg_sqs[0] of sizes [7]");
  expectSays(check("state %m : f32[3,5]", "state %m : bf16[3,5]"), "found exp_avgs[0] of type");
  expectSays(check("step_counter %t : f32[]", "step_counter %t : f32[0]"), "found state_steps");
  expectSays(
      findWrong(adamw(
          std::string("[inout %w], [inout %gw], values[], [inout %v], values[], [%t], ") + kRest)),
      "found 0 tensors in exp_avgs, expected 1");
}

constexpr const char* kLoss = R"ir(
graph @loss version=1 device="cpu" target="cpu" {
  input %x : f32[4,3]
  input %t : i64[4]
  input %other : i64[4]
  input %image : f32[1,2,4,4]
forward "":
  %s : f32[4,3] = aten._log_softmax.default(%x, 1, false)
  %l "loss" output : f32[], %n : f32[] = aten.nll_loss_forward.default(%s, %t, none, 1, -100)
  %p : f32[1,2,2,2], %i : i64[1,2,2,2] = aten.max_pool2d_with_indices.default(%image, [2, 2], [2, 2], [0, 0], [1, 1], false)
backward "":
  %one : f32[] = aten.ones_like.default(%l, none, none, none, none, none)
  %gs : f32[4,3] = aten.nll_loss_backward.default(%one, %s, %t, none, 1, -100, %n)
  %gi : f32[1,2,4,4] = aten.max_pool2d_with_indices_backward.default(%p, %image, [2, 2], [2, 2], [0, 0], [1, 1], false, %i)
}
)ir";

// In row blocks each block's rows have been checked, and the sum of weights is of all rows.
TEST(CallChecks, ABlockOfTargetsCountsAsSeenWhenItsOwnLossSawIt) {
  const std::string blocks = R"ir(
graph @loss version=1 device="cpu" target="cpu" {
  input %x : f32[4,3]
  input %t : i64[8]
  view %t1 of %t : i64[4]
  view %t2 of %t : i64[4] offset=4
forward "":
  %m : i64[8] = aten.mul.Scalar(%t, 0)
  %c : f32[8] = aten._to_copy.default(%m, dtype(f32), none, none, none, false, none)
  view %c1 of %c : f32[8,1]
  %l "loss" output : f32[], %n : f32[] = aten.nll_loss_forward.default(%c1, %m, none, 1, -100)
  %s : f32[4,3] = aten._log_softmax.default(%x, 1, false)
  %b : f32[4], %u : f32[] = aten.nll_loss_forward.default(%s, %t1, none, 0, -100)
backward "":
  %one : f32[] = aten.ones_like.default(%l, none, none, none, none, none)
  %gs : f32[4,3] = aten.nll_loss_backward.default(%one, %s, %t1, none, 1, -100, %n)
}
)ir";
  EXPECT_EQ(findWrong(blocks), "");
  expectSays(findWrong(blocks, "default(%one, %s, %t1,", "default(%one, %s, %t2,"),
             "is another one than that call of aten.nll_loss_forward.default saw");
  expectSays(findWrong(blocks, "%t1, none, 0, -100)", "%t1, none, 0, 2)"), "is another one than");
}

TEST(CallChecks, IndicesComeFromTheOpThatMakesOrChecksThem) {
  EXPECT_EQ(findWrong(kLoss), "");
  expectSays(findWrong(kLoss, "default(%one, %s, %t,", "default(%one, %s, %other,"),
             "is another one than that call of aten.nll_loss_forward.default saw");
  expectSays(findWrong(kLoss, "1, -100, %n)", "1, -1, %n)"), "with another 'ignore_index'");
  expectSays(findWrong(kLoss, "1, -100, %n)", "1, -100, %one)"), "that is no result of");
  expectSays(findWrong(kLoss, "  %gs :", "  aten.add_.Tensor(inout %t, %other, 1)\n  %gs :"),
             "is another one than");
  expectSays(findWrong(kLoss, "  %gi :", "  aten.add_.Scalar(inout %i, 9, 1)\n  %gi :"),
             "that is no result of aten.max_pool2d_with_indices.default");
  expectSays(findWrong(kLoss, "aten.max_pool2d_with_indices.default(%image, [2, 2]",
                       "aten.adaptive_max_pool2d.default(%image, [2, 2])  // "),
             "that is no result of aten.max_pool2d_with_indices.default");
}

TEST(CallChecks, OnlyOpsOfTrainingMayBeCalled) {
  PermittedOps permitted;
  for (const char* op : {"aten.from_file.default", "aten.from_file.out", "aten.set_.source_Storage",
                         "aten.resize_.default", "aten.rename_.default", "prims.convert.default",
                         "_c10d_functional.all_reduce.default", "aten.made_up.default",
                         "profiler._record_function_enter.default", "aten.record_stream.default",
                         "aten._masked_softmax_backward.default", "aten._pdist_backward.default",
                         "aten.slow_conv_transpose2d.default", "aten.bincount.default",
                         "aten._upsample_bilinear2d_aa.default", "aten.searchsorted.Scalar"}) {
    EXPECT_FALSE(permitted.allows(op)) << op;
  }
  for (const char* op :
       {"aten.mm.default", "aten._fused_adamw_.default", "aten.native_dropout.default"}) {
    EXPECT_TRUE(permitted.allows(op)) << op;
  }
  std::string text = tests::kSampleGraph;
  const std::string call = "aten.sum.default(%q, none)";
  text.replace(text.find(call), call.size(),
               "aten.from_file.default(\"/tmp/x\", true, 4, none, none, none, none)");
  ir::Graph graph = tests::orFail(ir::parseGraph(text));
  const std::optional<WrongCall> forbidden = findForbiddenCall(graph);
  ASSERT_TRUE(forbidden);
  expectSays(forbidden->text, "aten.from_file.default");
}

/// The text of the first call of `call` in a step of integers and images that may not be made.
std::string findForbidden(const std::string& call) {
  const std::string text =
      "graph @calls version=1 device=\"cpu\" target=\"cpu\" {\n"
      "  input %i : i32[4]\n  input %k : i32[4]\n  input %f : f32[4]\n"
      "  input %g : f32[4,6]\n  input %n : i64[4]\nforward \"\":\n  " +
      call + "\n}\n";
  const std::optional<WrongCall> forbidden = findForbiddenCall(tests::orFail(ir::parseGraph(text)));
  return forbidden ? forbidden->text : "";
}

// The processor ends the program at -2^31 / -1.
TEST(CallChecks, IntegersAreDividedByNumbersOfTheFileAlone) {
  for (const char* divisor : {"%k", "-1", "0"}) {
    const std::string op = divisor[0] == '%' ? "Tensor_mode" : "Scalar_mode";
    expectSays(findForbidden("%r : i32[4] = aten.div." + op + "(%i, " + divisor + ", \"trunc\")"),
               "divides integers");
  }
  EXPECT_EQ(findForbidden("%r : i32[4] = aten.div.Scalar_mode(%i, 3, \"trunc\")"), "");
  EXPECT_EQ(findForbidden("%r : f32[4] = aten.div.Tensor(%i, %k)"), "");
  EXPECT_EQ(findForbidden("%r : f32[4] = aten.div.Tensor_mode(%f, %k, \"trunc\")"), "");
}

// Counts are kept at the places that indices name, which nobody has looked at.
TEST(CallChecks, IndicesAreNotCounted) {
  const std::string call =
      "%r : f32[10,6] = aten.embedding_dense_backward.default(%g, %n, 10, -1, ";
  expectSays(findForbidden(call + "true)"), "scale_grad_by_freq");
  EXPECT_EQ(findForbidden(call + "false)"), "");
}

TEST(CallChecks, WhatIsWrittenHasAPlaceForEachElement) {
  const std::string head = "graph @calls version=1 device=\"cpu\" target=\"cpu\" {\n";
  const auto find = [&](const std::string& state, const std::string& call) {
    return findWrong(head + "  input %x : f32[4]\n" + state + "forward \"\":\n  " + call + "\n}\n");
  };
  expectSays(find("  state %a \"a\" : f32[4] strides=[0]\n", "aten.add_.Tensor(inout %a, %x, 1)"),
             "elements at one place");
  const std::string views =
      "  state %a \"a\" : f32[8]\n  view %p of %a : f32[4]\n  view %q of %a : f32[4] offset=";
  const std::string call = "aten._foreach_add_.Scalar([inout %p, inout %q], 1)";
  expectSays(find(views + "2\n", call), "%p is written twice, also as %q");
  EXPECT_EQ(find(views + "4\n", call), "");
}

}  // namespace
}  // namespace stowage::runtime
