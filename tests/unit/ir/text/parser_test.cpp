// SPDX-License-Identifier: Apache-2.0
//
// The text form: what is read, how it is written, and what a broken text is told.

#include "ir/text/parser.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <ctime>
#include <limits>

#include "ir/text/literal.h"
#include "ir/text/printer.h"

namespace stowage::ir {
namespace {

Graph parsed(const std::string& text) {
  Expected<Graph> graph = parseGraph(text);
  if (graph) return std::move(*graph);
  ADD_FAILURE() << describe(graph.takeError()) << "\nin\n" << text;
  return {};
}

std::string failure(const std::string& text) {
  Expected<Module> module = parseModule(text, "f.ir");
  return module ? "no error" : describe(module.takeError());
}

// `body` inside a graph with an input %x and a parameter %w, both f32[4,4].
std::string withBody(const std::string& body) {
  return "graph @g version=1 {\n  scalar #lr : f64 = 0.5\n  input %x : f32[4,4]\n  parameter %w : "
         "f32[4,4]\n" +
         body + "}\n";
}

TEST(Parser, ReadsEveryKindOfArgument) {
  const Graph graph = parsed(
      withBody("  aten.op.all(%x, inout %w, none, true, false, -3, 1.5, 1e-3, inf, -inf, "
               "\"a\\\"b\\n\\x00\", "
               "complex(1.0, -0.5), #lr, dtype(f32), device(cuda:0), layout(strided), "
               "memory_format(channels_last), wrapped(f64 2.0), wrapped(i64 3), wrapped(f32 #lr), "
               "[%x, none, %w], [1, 2.5, true, #lr], values[], numbers[])\n"));
  const std::vector<Argument>& args = graph.nodes()[0].args;
  const ScalarId lr(0);
  const std::vector<Argument> expected = {
      ValueArg{ValueId(0)},
      ValueArg{ValueId(1)},
      NoneArg{},
      true,
      false,
      int64_t{-3},
      1.5,
      1e-3,
      std::numeric_limits<double>::infinity(),
      -std::numeric_limits<double>::infinity(),
      std::string("a\"b\n\0", 5),
      ComplexArg{1.0, -0.5},
      ScalarArg{lr},
      EnumArg{"dtype", "f32"},
      EnumArg{"device", "cuda:0"},
      EnumArg{"layout", "strided"},
      EnumArg{"memory_format", "channels_last"},
      WrappedNumberArg{.dtype = DType::kF64, .value = 2.0},
      WrappedNumberArg{.dtype = DType::kI64, .value = int64_t{3}},
      WrappedNumberArg{.dtype = DType::kF32, .value = lr},
      ValueList{{ValueId(0)}, {}, {ValueId(1)}},
      NumberList{int64_t{1}, 2.5, true, ScalarArg{lr}},
      ValueList{},
      NumberList{}};
  ASSERT_EQ(args.size(), expected.size());
  for (size_t i = 0; i < args.size(); ++i) EXPECT_EQ(args[i], expected[i]) << "argument " << i;
  EXPECT_EQ(graph.nodes()[0].writes.size(), 1u);
  EXPECT_EQ(parsed(toText(graph)), graph);
}

TEST(Parser, ReadsDeclarationsWithEveryAttribute) {
  const Graph graph = parsed(
      "graph @g version=1 device=\"cuda\" target=\"h200\" recipe=\"r\" producer=\"p\" steps=4 {\n"
      "  gradient %g \"grad(w)\" persistent : bf16[4,2] strides=[2,1] bytes=64\n"
      "  input %lr \"lr\" host : f32[]\n"
      "  view %part of %g : bf16[2] offset=3\n"
      "backward \"a.b\":\n"
      "  %m \"metric\" gradient output : f32[4] = aten.x.default(%part)\n"
      "  %l output : f32[4], %lv of %l : f32[2] offset=2, _ = aten.y.default(%m)\n"
      "  %k activation output : f32[] = aten.z.default(%lv)\n"
      "}\n");
  EXPECT_EQ(
      graph.provenance(),
      (Provenance{
          .producer = "p", .recipe = "r", .device = "cuda", .target = "h200", .stepsCaptured = 4}));
  EXPECT_EQ(
      graph.storages()[0],
      (Storage{
          .name = "grad(w)", .bytes = Bytes(64), .role = Role::kGradient, .persistent = true}));
  EXPECT_EQ(graph.storages()[1].home, Space::kHost);
  EXPECT_EQ(graph.storages()[2].role, Role::kGradient);
  EXPECT_TRUE(graph.storages()[2].output);
  EXPECT_EQ(graph.storages()[3].role, Role::kOutput);
  EXPECT_EQ(graph.storages()[4].role, Role::kActivation);
  EXPECT_TRUE(graph.storages()[4].output);
  EXPECT_EQ(graph.value(ValueId(2)).type.offset, 3);
  EXPECT_EQ(graph.nodes()[1].results.size(), 3u);
  EXPECT_FALSE(graph.nodes()[1].results[2].isValid());
  EXPECT_EQ(graph.describeNode(NodeId(0)), "aten.x.default (a.b, backward)");
  EXPECT_EQ(parsed(toText(graph)), graph);
  EXPECT_EQ(toText(parsed(toText(graph))), toText(graph));
}

TEST(Parser, StatedIdsPlaceDeclarations) {
  const std::string text =
      "graph @g version=1 {\n"
      "  input %x storage=1 value=2 : f32[2]\n"
      "  %h storage=0 value=0 : f32[2] = aten.relu.default(%x)\n"
      "  %k storage=2 value=1 : f32[2] = aten.relu.default(%h)\n"
      "}\n";
  const Graph graph = parsed(text);
  EXPECT_EQ(graph.values()[0].name, "h");
  EXPECT_EQ(graph.values()[2].name, "x");
  EXPECT_EQ(graph.storages()[1].name, "x");
  // %k's value follows from %h's, its storage does not.
  EXPECT_EQ(toText(graph),
            "graph @g version=1 {\n"
            "  input %x storage=1 value=2 : f32[2]\n"
            "  %h storage=0 value=0 : f32[2] = aten.relu.default(%x)\n"
            "  %k storage=2 : f32[2] = aten.relu.default(%h)\n"
            "}\n");
  EXPECT_EQ(parsed(toText(graph)), graph);
}

TEST(Parser, ReadsInWhichModeAStepWasCaptured) {
  const std::string text =
      "graph @g version=1 device=\"cuda\" steps=3 nondeterministic {\n"
      "  input %x : f32[2]\n"
      "}\n";
  EXPECT_FALSE(parsed(text).provenance().deterministic);
  EXPECT_EQ(toText(parsed(text)), text);
  EXPECT_TRUE(parsed("graph @g version=1 {\n  input %x : f32[2]\n}\n").provenance().deterministic);
}

TEST(Parser, StatementsMaySpanLinesAndCarryComments) {
  const Graph graph = parsed(
      "// a comment\ngraph @g version=1 {\r\n"
      "\tinput %x : f32[2] // %y\n"
      "  %h : f32[2] =\n      aten.add.Tensor(%x,\n %x, 1)\n} // end");
  EXPECT_EQ(graph.nodes().size(), 1u);
  EXPECT_EQ(graph.nodes()[0].args.size(), 3u);
}

struct BadText {
  const char* body;
  const char* message;
};

class BadBody : public testing::TestWithParam<BadText> {};

TEST_P(BadBody, IsRefusedWithItsPlace) {
  EXPECT_EQ(failure(withBody(GetParam().body)), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Graph, BadBody,
    testing::Values(
        BadText{"  %h : f32[4] = aten.relu.default(%y)\n",
                "f.ir:5:35: found '%y', expected a value that is declared above"},
        BadText{"  %h : f33[4] = aten.relu.default(%x)\n",
                "f.ir:5:8: found 'f33', expected a dtype"},
        BadText{"  %h : f32[-4] = aten.relu.default(%x)\n",
                "f.ir:5:8: the sizes of a tensor are negative or their product exceeds 64 bits"},
        BadText{"  view %v of %x : f32[9223372036854775807,2]\n",
                "f.ir:5:19: the sizes of a tensor are negative or their product exceeds 64 bits"},
        BadText{"  view %v of %x : f32[9223372036854775808]\n",
                "f.ir:5:23: found '9223372036854775808', expected an integer of 64 bits"},
        BadText{"  view %v of %x : f32[4] strides=[1,1]\n",
                "f.ir:5:19: found 2 strides, expected 1"},
        BadText{"  view %v of %x : f32[4] strides=[-1]\n",
                "f.ir:5:19: a stride is negative or the extent of the tensor exceeds 64 bits"},
        BadText{"  view %x of %x : f32[4]\n", "f.ir:5:8: found '%x' declared a second time"},
        BadText{"  scalar #lr : f64 = 1.0\n", "f.ir:5:10: found '#lr' declared a second time"},
        BadText{"  scalar #a : f32 = 1.0\n", "f.ir:5:15: found 'f32', expected f64 or i64"},
        BadText{"  scalar #a : f64 = 1\n",
                "f.ir:5:21: found '1', expected a floating point number"},
        BadText{"  aten.x.y(#no)\n",
                "f.ir:5:12: found '#no', expected a step scalar that is declared above"},
        BadText{"  aten.x.y(inout %w, inout %w)\n",
                "f.ir:5:28: found '%w' written a second time by one node"},
        BadText{"  aten.x.y([])\n",
                "f.ir:5:13: found ']', expected an element (an empty list is values[] or "
                "numbers[])"},
        BadText{"  aten.x.y([1, %x])\n",
                "f.ir:5:16: found '%x', expected a number, true, false or a step scalar"},
        BadText{
            "  aten.x.y(\"a\\q\")\n",
            "f.ir:5:12: found an unknown escape in a string, expected \\\", \\\\, \\n or \\xHH"},
        BadText{"  aten.x.y(\"a\n",
                "f.ir:5:12: found a string without an end on its line, "
                "expected an argument (%value, inout %value, out %value, "
                "#scalar, a number, a string, a list, none, true, false, "
                "complex, wrapped, dtype, device, layout or memory_format)"},
        BadText{"  aten.x.y(%x) aten.x.y(%x)\n",
                "f.ir:5:16: found 'aten.x.y', expected a new line"},
        BadText{"  relu(%x)\n",
                "f.ir:5:3: found 'relu', expected a declaration, a phase, a node or '}'"},
        BadText{"  %h = relu(%x)\n",
                "f.ir:5:3: found '%h', expected a value that is declared above or a type after "
                "it"},
        BadText{"  %x = relu(%x)\n", "f.ir:5:8: found 'relu', expected an op like aten.mm.default"},
        BadText{"  input %y host host : f32[]\n",
                "f.ir:5:17: found 'host', expected ':' or an attribute that is not there yet"},
        BadText{"  input %y gradient : f32[]\n", "f.ir:5:9: found two roles in one declaration"},
        BadText{"  input %y value=9 : f32[]\n",
                "f.ir:5:9: found value=9, expected each of 0 to 2 once"},
        BadText{"  input %y storage=0 : f32[]\n",
                "f.ir:5:9: found storage=0, expected each of 0 to 2 once"},
        BadText{"  input %y storage=-1 : f32[]\n",
                "f.ir:5:20: found '-1', expected an id that is not negative"},
        BadText{"  aten.x.y(1e999)\n",
                "f.ir:5:12: found '1e999', expected a number within the range of f64"},
        BadText{"  aten.x.y(1x)\n",
                "f.ir:5:12: found a number that runs into a name, expected an argument (%value, "
                "inout %value, out %value, #scalar, a number, a string, a list, none, true, "
                "false, complex, wrapped, dtype, device, layout or memory_format)"},
        BadText{"  ?\n",
                "f.ir:5:3: found a character that begins nothing, expected a "
                "declaration, a phase, a node or '}'"},
        BadText{"forward \"a\"\n  aten.x.y(%x)\n", "f.ir:6:3: found 'aten.x.y', expected ':'"}));

TEST(Parser, RefusesWhatIsNoGraph) {
  EXPECT_EQ(failure(""), "f.ir:1:1: found the end of the text, expected 'graph'");
  EXPECT_EQ(failure("graph @g version=2 {}"),
            "f.ir:1:18: found version 2 of the text form, expected 1");
  EXPECT_EQ(failure("graph @g version=1 {"),
            "f.ir:1:21: found the end of the text, expected a declaration, a phase, a node or '}'");
  EXPECT_EQ(failure("graph @g version=1 {\n} graph"),
            "f.ir:2:3: found 'graph', expected a new line");
  EXPECT_EQ(failure("graph @g version=1 {\n}\ngraph"),
            "f.ir:3:1: found 'graph', expected 'schedule'");
}

TEST(Parser, GraphsThatBreakInvariantsAreRefusedWithNotes) {
  EXPECT_EQ(failure(withBody("  activation %h : f32[4]\n  aten.x.y(%h)\n")),
            "f.ir:1:1: graph @g breaks 1 invariant\n"
            "  n0 aten.x.y (forward) reads storage \"h\" before anything wrote it");
}

TEST(Parser, AGraphAloneIsAskedForWhenAScheduleFollows) {
  Expected<Graph> graph = parseGraph(
      "graph @g version=1 {\n}\nschedule @g level=ordered graph=\"\" target=\"\" ops=0 mode=none "
      "joined {\n}\n",
      "f.ir");
  ASSERT_FALSE(static_cast<bool>(graph));
  EXPECT_EQ(describe(graph.takeError()), "f.ir: found a schedule, expected a graph and no more");
}

TEST(Printer, CommentsCarryDerivedFactsAndChangeNothing) {
  const Graph graph =
      parsed(withBody("  %h : f32[4,4] = aten.mm.default(%x, %w)\n"
                      "  %h = aten.relu_.default(inout %h)\n"));
  const std::string text = toText(graph, {.comments = true});
  EXPECT_NE(text.find("input %x : f32[4,4]  // 64 B live [0, 1)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("(%x, %w)  // n0, %h 64 B live [0, 2)\n"), std::string::npos) << text;
  EXPECT_EQ(parsed(text), graph);
}

TEST(Printer, ViewsStandBeforeTheirFirstUseOrAtTheEnd) {
  GraphBuilder builder("g");
  const StorageId x = builder.addStorage({.name = "x", .bytes = Bytes(8), .role = Role::kInput});
  const StorageId h = builder.addStorage({.name = "h", .bytes = Bytes(8)});
  const TensorType type{.sizes = {2}, .strides = {1}};
  const ValueId used = builder.addValue({.name = "used", .storage = h, .type = type});
  const ValueId made = builder.addValue({.name = "made", .storage = h, .type = type});
  builder.addValue({.name = "unused", .storage = h, .type = type});
  const ValueId input = builder.addValue({.name = "in", .storage = x, .type = type});
  builder.addNode({.op = "aten.a.b", .args = {ValueArg{input}}, .results = {made}});
  builder.addNode({.op = "aten.a.b", .args = {ValueArg{used}}});
  const Graph graph = std::move(builder).finish();
  EXPECT_EQ(toText(graph),
            "graph @g version=1 {\n"
            "  input %in \"x\" value=3 : f32[2]\n"
            "  %made \"h\" value=1 : f32[2] = aten.a.b(%in)\n"
            "  view %used of %made value=0 : f32[2]\n"
            "  aten.a.b(%used)\n"
            "  view %unused of %made value=2 : f32[2]\n"
            "}\n");
  EXPECT_EQ(parsed(toText(graph)), graph);
}

TEST(Literal, DoublesReadBackExactlyAndAreNoIntegers) {
  const auto written = [](double value) {
    std::string text;
    llvm::raw_string_ostream os(text);
    writeDouble(os, value);
    return text;
  };
  EXPECT_EQ(written(1), "1.0");
  EXPECT_EQ(written(-0.0), "-0.0");
  EXPECT_EQ(written(0.1), "0.1");
  EXPECT_EQ(written(1e300), "1e+300");
  EXPECT_EQ(written(std::numeric_limits<double>::quiet_NaN()), "nan");
  for (const double nan : {std::numeric_limits<double>::quiet_NaN(), -std::nan("")}) {
    const Graph graph = parsed(withBody("  aten.x.y(" + written(nan) + ")\n"));
    EXPECT_TRUE(std::isnan(std::get<double>(graph.nodes()[0].args[0])));
  }
  for (const double value : {5e-324, 1.7976931348623157e308, 2.0 / 3, -0.0, 123456789.0}) {
    const Graph graph = parsed(withBody("  aten.x.y(" + written(value) + ")\n"));
    EXPECT_EQ(std::bit_cast<uint64_t>(std::get<double>(graph.nodes()[0].args[0])),
              std::bit_cast<uint64_t>(value));
  }
}

// 100,000 nodes, each with a result, a list and a scope change now and then.
TEST(Parser, LargeGraphsAreReadInTimeThatGrowsWithThem) {
  std::string text = "graph @g version=1 {\n  input %v0 : f32[64,64]\n";
  for (int i = 1; i <= 100'000; ++i) {
    const std::string number = std::to_string(i);
    if (i % 10 == 0) text += "forward \"layers." + number + ".mlp\":\n";
    text += "  %v" + number + " : f32[64,64] = aten.add.Tensor(%v" + std::to_string(i - 1) +
            ", [%v" + std::to_string(i / 2) + ", none], 1.5)\n";
  }
  text += "}\n";
  // Time of this process, so that a busy machine does not matter.
  const std::clock_t start = std::clock();
  const Graph graph = parsed(text);
  const std::string printed = toText(graph);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(printed, text);
  EXPECT_LT(seconds, 10.0);
  RecordProperty("seconds", std::to_string(seconds));
}

}  // namespace
}  // namespace stowage::ir
