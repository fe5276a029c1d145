// SPDX-License-Identifier: Apache-2.0
//
// Row blocks on real ops on the CPU: a loss and its gradient, softmax of attention in math form and
// random row-wise graphs give the same bytes in blocks as whole, and the loss those of libtorch's
// own cross entropy. Shapes, dtypes, ignored rows, threads and numbers of blocks are random.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "ir/graph/check_graph.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "passes/normalise/block_rows.h"
#include "runtime/capture/graph/graph_replay.h"
#include "tests/support/or_fail.h"
#include "tests/support/random.h"

namespace stowage::tests {
namespace {

// STOWAGE_ROW_SEEDS asks for more.
uint64_t seedCount() {
  const char* asked = std::getenv("STOWAGE_ROW_SEEDS");
  return asked == nullptr ? 50 : std::strtoull(asked, nullptr, 10);
}

using Bytes8 = std::vector<uint8_t>;
using Inputs = std::map<std::string, at::Tensor>;
using Outputs = std::map<std::string, Bytes8>;

std::string number(int64_t value) { return std::to_string(value); }

std::string list(const std::vector<int64_t>& sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : ",") + number(size);
  return "[" + text + "]";
}

Bytes8 bytesOf(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  const auto* data = static_cast<const uint8_t*>(dense.const_data_ptr());
  return {data, data + dense.nbytes()};
}

ir::Graph parse(const std::string& text) {
  ir::Graph graph = orFail(ir::parseGraph(text));
  if (ir::Error error = ir::checkGraph(graph)) ADD_FAILURE() << ir::describe(std::move(error));
  return graph;
}

/// What is delivered, by name.
Outputs run(const ir::Graph& graph, const Inputs& inputs) {
  runtime::GraphReplay replay(graph);
  for (size_t i = 0; i < graph.storages().size(); ++i) {
    const auto input = inputs.find(graph.storages()[i].name);
    if (input != inputs.end()) replay.bind(ir::StorageId(i), input->second.clone().storage());
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (ir::Error error = replay.run(ir::NodeId(i))) {
      ADD_FAILURE() << graph.describeNode(ir::NodeId(i)) << ": " << ir::describe(std::move(error));
      return {};
    }
  }
  Outputs outputs;
  for (size_t i = 0; i < graph.storages().size(); ++i) {
    if (graph.storages()[i].output) {
      outputs[graph.storages()[i].name] = bytesOf(replay.bytesOf(ir::StorageId(i)));
    }
  }
  return outputs;
}

struct Blocked {
  ir::Graph graph;
  int64_t regions = 0;
};
Blocked block(const ir::Graph& graph, int64_t blocks) {
  passes::PassState state;
  state.graph = graph;
  const passes::PassReport report =
      orFail(passes::BlockRows(passes::BlockRowsOptions{blocks}).run(state));
  if (ir::Error error = ir::checkGraph(state.graph)) {
    ADD_FAILURE() << ir::describe(std::move(error)) << ir::toText(state.graph);
  }
  return {std::move(state.graph), report.counters.front().second};
}

/// A product, a cast if `dtype` is narrow, log-softmax, loss, and back to the gradient.
std::string lossText(int64_t rows, int64_t classes, const std::string& dtype, int reduction,
                     int64_t ignored) {
  const std::string logits = dtype + list({rows, classes});
  const std::string wide = "f32" + list({rows, classes});
  return "graph @loss version=1 device=\"cpu\" {\n  input %a : " + dtype + list({rows, 8}) +
         "\n  input %b : " + dtype + list({8, classes}) + "\n  input %t : i64" + list({rows}) +
         "\nforward \"\":\n  %x : " + logits + " = aten.mm.default(%a, %b)\n  %c : " + wide +
         " = aten._to_copy.default(%x, dtype(f32), none, none, none, false, none)\n  %p : " + wide +
         " = aten._log_softmax.default(%c, 1, false)\n  %l output : f32[], %w output : f32[] = "
         "aten.nll_loss_forward.default(%p, %t, none, " +
         number(reduction) + ", " + number(ignored) +
         ")\n  %o : f32[] = aten.ones_like.default(%l, none, none, none, none, "
         "memory_format(contiguous))\nbackward \"\":\n  %g : " +
         wide + " = aten.nll_loss_backward.default(%o, %p, %t, none, " + number(reduction) + ", " +
         number(ignored) + ", %w)\n  %d : " + wide +
         " = aten._log_softmax_backward_data.default(%g, %p, 1, dtype(f32))\n  %e : " + logits +
         " = aten._to_copy.default(%d, dtype(" + dtype +
         "), none, none, none, false, none)\n  view %et of %e : " + dtype + list({classes, rows}) +
         " strides=[1," + number(classes) + "]\n  %dw output : " + dtype + list({classes, 8}) +
         " = aten.mm.default(%et, %a)\n  %copy output : " + logits +
         " = aten.clone.default(%e, none)\n}\n";
}

struct LossCase {
  int64_t rows = 0, classes = 0, ignored = -100;
  std::string dtype;
  int reduction = 1;
  Inputs inputs;
};

LossCase makeLossCase(uint64_t seed) {
  Random random(seed);
  LossCase made;
  made.rows = random.between(2, 700);
  made.classes = random.chance(30) ? 8 * random.between(1, 100) : random.between(2, 900);
  made.dtype = random.chance(50) ? "f32" : "bf16";
  made.reduction = static_cast<int>(random.between(1, 2));
  made.ignored = random.pick(std::vector<int64_t>{-100, 0, -1, made.classes - 1});
  at::manual_seed(static_cast<int64_t>(seed));
  const at::ScalarType type = made.dtype == "f32" ? at::kFloat : at::kBFloat16;
  at::Tensor targets = at::randint(made.classes, {made.rows}, at::kLong);
  const auto share = static_cast<double>(random.between(0, 100)) / 100;
  targets.masked_fill_(at::rand({made.rows}) < (random.chance(50) ? share : 0.0), made.ignored);
  at::Tensor a = at::randn({made.rows, 8}).to(type);
  if (random.chance(10)) a[0][0] = std::numeric_limits<float>::infinity();
  made.inputs = {{"a", a}, {"b", at::randn({8, made.classes}).to(type)}, {"t", targets}};
  return made;
}

/// Loss and gradient as training gets them.
Outputs runEager(const LossCase& made) {
  const at::Tensor x = at::mm(made.inputs.at("a"), made.inputs.at("b"));
  const at::Tensor p = at::log_softmax(x.to(at::kFloat), 1);
  auto [loss, weight] =
      at::nll_loss_forward(p, made.inputs.at("t"), {}, made.reduction, made.ignored);
  const at::Tensor g = at::nll_loss_backward(at::ones_like(loss), p, made.inputs.at("t"), {},
                                             made.reduction, made.ignored, weight);
  const at::Tensor e = at::_log_softmax_backward_data(g, p, 1, at::kFloat).to(x.scalar_type());
  return {{"l", bytesOf(loss)},
          {"w", bytesOf(weight)},
          {"dw", bytesOf(at::mm(e.t(), made.inputs.at("a")))},
          {"copy", bytesOf(e)}};
}

TEST(RowBlocks, ALossKeepsItsBits) {
  int64_t blocked = 0;
  for (uint64_t seed = 0; seed < seedCount() && !HasFailure(); ++seed) {
    at::set_num_threads(static_cast<int>(1 + seed % 3));
    const LossCase made = makeLossCase(seed);
    const ir::Graph graph =
        parse(lossText(made.rows, made.classes, made.dtype, made.reduction, made.ignored));
    const Outputs expected = run(graph, made.inputs);
    EXPECT_EQ(expected, runEager(made)) << "seed " << seed;
    for (const int64_t blocks : {2, 5, 16}) {
      const Blocked made2 = block(graph, blocks);
      blocked += made2.regions;
      EXPECT_EQ(run(made2.graph, made.inputs), expected)
          << "seed " << seed << ", " << made.rows << " x " << made.classes << " " << made.dtype
          << ", " << blocks << " blocks\n"
          << ir::toText(made2.graph);
    }
  }
  // The rest has too few rows for aligned blocks.
  EXPECT_GT(blocked, static_cast<int64_t>(seedCount()));
}

/// Scores, scaled and masked, softmax, and its backward: [heads, queries, keys], mask per query and
/// key.
std::string attentionText(int64_t heads, int64_t queries, int64_t keys, const std::string& dtype) {
  const std::string scores = dtype + list({heads, queries, keys});
  const std::string values = dtype + list({heads, keys, 8});
  const std::string results = dtype + list({heads, queries, 8});
  return "graph @attention version=1 device=\"cpu\" {\n  input %q : " + results +
         "\n  input %k : " + dtype + list({heads, 8, keys}) + "\n  input %v : " + values +
         "\n  input %m : " + dtype + list({1, queries, keys}) + "\n  input %go : " + results +
         "\n  view %vt of %v : " + dtype + list({heads, 8, keys}) + " strides=[" +
         number(8 * keys) + ",1,8]\nforward \"\":\n  %s : " + scores +
         " = aten.bmm.default(%q, %k)\n  %sc : " + scores +
         " = aten.mul.Scalar(%s, 0.125)\n  %sm : " + scores +
         " = aten.add.Tensor(%sc, %m, 1)\n  %p : " + scores +
         " = aten._softmax.default(%sm, -1, false)\n  %o output : " + results +
         " = aten.bmm.default(%p, %v)\nbackward \"\":\n  %gp : " + scores +
         " = aten.bmm.default(%go, %vt)\n  %gs : " + scores +
         " = aten._softmax_backward_data.default(%gp, %p, -1, dtype(" + dtype +
         "))\n  %gc output : " + scores + " = aten.mul.Scalar(%gs, 0.125)\n}\n";
}

TEST(RowBlocks, AttentionKeepsItsBits) {
  int64_t blocked = 0;
  for (uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
    Random random(seed);
    at::set_num_threads(static_cast<int>(1 + seed % 3));
    const int64_t heads = random.between(2, 12);
    const int64_t queries = random.chance(60) ? 8 * random.between(1, 5) : random.between(1, 40);
    const int64_t keys = random.chance(60) ? 16 * random.between(1, 6) : random.between(2, 90);
    const std::string dtype = random.chance(50) ? "f32" : "bf16";
    const at::ScalarType type = dtype == "f32" ? at::kFloat : at::kBFloat16;
    at::manual_seed(static_cast<int64_t>(seed));
    const Inputs inputs = {{"q", at::randn({heads, queries, 8}).to(type)},
                           {"k", at::randn({heads, 8, keys}).to(type)},
                           {"v", at::randn({heads, keys, 8}).to(type)},
                           {"m", at::randn({1, queries, keys}).to(type)},
                           {"go", at::randn({heads, queries, 8}).to(type)}};
    const ir::Graph graph = parse(attentionText(heads, queries, keys, dtype));
    const Outputs expected = run(graph, inputs);
    for (const int64_t blocks : {2, 4}) {
      const Blocked made = block(graph, blocks);
      blocked += made.regions;
      EXPECT_EQ(run(made.graph, inputs), expected) << "seed " << seed << ir::toText(made.graph);
    }
  }
  EXPECT_GT(blocked, 20);
}

/// Random row-wise ops with broadcasts and views, and between them what must not be cut: sums over
/// rows, transposed readers, writes in place.
class RandomRows {
 public:
  explicit RandomRows(uint64_t seed) : random_(seed) {
    rows_ = 16 * random_.between(1, 12);
    columns_ = random_.chance(60) ? 32 * random_.between(1, 4) : random_.between(1, 60);
    text_ = "graph @rows version=1 device=\"cpu\" {\n";
    declare("x", {rows_, columns_});
    declare("c", {columns_});
    declare("r", {rows_, 1});
    text_ += "forward \"\":\n";
    made_ = {add("mul.Scalar", "%x, 0.5")};
    for (int64_t i = random_.between(3, 14); i > 0; --i) addNode();
    add("sum.dim_IntList", last() + ", [1], false, none", {rows_}, true);
    if (random_.chance(50)) add("clone.default", pick() + ", none", {rows_, columns_}, true);
    text_ += "}\n";
  }
  const std::string& text() const { return text_; }
  const Inputs& inputs() const { return inputs_; }

 private:
  void declare(const std::string& name, std::vector<int64_t> sizes) {
    text_ += "  input %" + name + " : f32" + list(sizes) + "\n";
    inputs_[name] = at::randn(sizes);
  }
  std::string pick() { return random_.pick(made_); }
  std::string last() const { return made_.back(); }
  std::string add(const std::string& op, const std::string& args, std::vector<int64_t> sizes = {},
                  bool output = false) {
    const std::string name = "%v" + number(next_++);
    if (sizes.empty()) sizes = {rows_, columns_};
    text_ += "  " + name + (output ? " output" : "") + " : f32" + list(sizes) + " = aten." + op +
             "(" + args + ")\n";
    return name;
  }
  void addNode() {
    switch (random_.between(0, 11)) {
      case 0:
        return made_.push_back(add("mul.Tensor", last() + ", %c"));
      case 1:
        return made_.push_back(add("add.Tensor", last() + ", %r, 1"));
      case 2:
        return made_.push_back(add("_softmax.default", last() + ", 1, false"));
      case 3:
        return made_.push_back(add("add.Tensor", last() + ", " + pick() + ", 2"));  // not exact
      case 4:
        return made_.push_back(add("relu.default", pick()));
      case 5: {  // a sum over rows that a later node needs
        const std::string sum = add("sum.dim_IntList", pick() + ", [0], false, none", {columns_});
        return made_.push_back(add("sub.Tensor", last() + ", " + sum + ", 1"));
      }
      case 6:
        text_ += "  aten.add_.Scalar(inout " + pick() + ", 0.25, 1)\n";
        return;
      case 7: {  // read with the rows last
        const std::string base = pick();
        const std::string view = "%t" + number(next_++);
        text_ += "  view " + view + " of " + base + " : f32" + list({columns_, rows_}) +
                 " strides=[1," + number(columns_) + "]\n";
        add("neg.default", view, {columns_, rows_}, true);
        return;
      }
      case 8: {  // the same rows in two dimensions
        const std::string base = last();
        const std::string view = "%t" + number(next_++);
        text_ +=
            "  view " + view + " of " + base + " : f32" + list({rows_ / 16, 16, columns_}) + "\n";
        const std::string abs = add("abs.default", view, {rows_ / 16, 16, columns_});
        const std::string back = "%t" + number(next_++);
        text_ += "  view " + back + " of " + abs + " : f32" + list({rows_, columns_}) + "\n";
        return made_.push_back(add("neg.default", back));
      }
      default:
        return made_.push_back(add("add.Tensor", last() + ", " + pick() + ", 1"));
    }
  }

  Random random_;
  int64_t rows_ = 0, columns_ = 0;
  int next_ = 0;
  std::string text_;
  std::vector<std::string> made_;
  Inputs inputs_;
};

TEST(RowBlocks, RandomRowWiseGraphsKeepTheirBits) {
  int64_t blocked = 0;
  for (uint64_t seed = 0; seed < 8 * seedCount() && !HasFailure(); ++seed) {
    at::set_num_threads(static_cast<int>(1 + seed % 3));
    const RandomRows made(seed);
    const ir::Graph graph = parse(made.text());
    if (HasFailure()) FAIL() << made.text();
    const Outputs expected = run(graph, made.inputs());
    const Blocked cut = block(graph, 2 + static_cast<int64_t>(seed % 5));
    blocked += cut.regions;
    EXPECT_EQ(run(cut.graph, made.inputs()), expected) << "seed " << seed << '\n'
                                                       << made.text() << "became\n"
                                                       << ir::toText(cut.graph);
  }
  EXPECT_GT(blocked, static_cast<int64_t>(2 * seedCount()));
}

// Whatever the place of an element in vector loops, threads and tails: %x is the operand, %k a
// mask.
TEST(RowBlocks, ExactOpsGiveTheSameForABlock) {
  const std::vector<std::pair<std::string, std::string>> calls = {
      {"abs.default", "%a"},
      {"add.Scalar", "%a, 0.3, 1"},
      {"add.Tensor", "%a, %x, 1"},
      {"ceil.default", "%a"},
      {"clamp.default", "%a, -0.5, 0.5"},
      {"clamp_max.default", "%a, 0.5"},
      {"clamp_min.default", "%a, 0.5"},
      {"clone.default", "%a, none"},
      {"div.Scalar", "%a, 3.0"},
      {"div.Tensor", "%a, %x"},
      {"floor.default", "%a"},
      {"masked_fill.Scalar", "%a, %k, 0.5"},
      {"maximum.default", "%a, %x"},
      {"minimum.default", "%a, %x"},
      {"mul.Scalar", "%a, 0.3"},
      {"mul.Tensor", "%a, %x"},
      {"neg.default", "%a"},
      {"relu.default", "%a"},
      {"round.default", "%a"},
      {"rsub.Scalar", "%a, 0.3, 1"},
      {"rsub.Tensor", "%a, %x, 1"},
      {"sign.default", "%a"},
      {"sqrt.default", "%a"},
      {"sub.Scalar", "%a, 0.3, 1"},
      {"sub.Tensor", "%a, %x, 1"},
      {"threshold_backward.default", "%x, %a, 0.1"},
      {"trunc.default", "%a"},
      {"where.self", "%k, %a, %x"}};
  Random random(1);
  for (const auto& [op, args] : calls) {
    for (const std::string& dtype : {std::string("f32"), std::string("bf16")}) {
      const int64_t rows = 8 * random.between(2, 30);
      const int64_t columns = random.between(1, 700);
      at::set_num_threads(static_cast<int>(random.between(1, 3)));
      const std::string type = dtype + list({rows, columns});
      const ir::Graph graph =
          parse("graph @op version=1 device=\"cpu\" {\n  input %x : " + type +
                "\n  input %k : bool" + list({rows, columns}) + "\nforward \"\":\n  %a : " + type +
                " = aten.mul.Scalar(%x, 0.7)\n  %b : " + type + " = aten." + op + "(" + args +
                ")\n  %c output : " + type + " = aten.neg.default(%b)\n}\n");
      const at::ScalarType scalar = dtype == "f32" ? at::kFloat : at::kBFloat16;
      // No square root of less than 0: in 16 bits a vector's NaN has other bits than a tail's.
      const at::Tensor x = at::randn({rows, columns}).to(scalar);
      const Inputs inputs = {{"x", op == "sqrt.default" ? x.abs() : x},
                             {"k", at::rand({rows, columns}) < 0.5}};
      const Blocked cut = block(graph, 3);
      EXPECT_EQ(cut.regions, 1) << op << ir::toText(graph);
      EXPECT_EQ(run(cut.graph, inputs), run(graph, inputs)) << op << " " << type;
    }
  }
}

// The comparison itself: a block that reads or writes the rows of its neighbour shows.
TEST(RowBlocks, RowsOfAnotherBlockShow) {
  const ir::Graph graph = parse(lossText(256, 64, "f32", 1, -100));
  at::manual_seed(1);
  const Inputs inputs = {{"a", at::randn({256, 8})},
                         {"b", at::randn({8, 64})},
                         {"t", at::randint(64, {256}, at::kLong)}};
  const Blocked cut = block(graph, 4);
  ASSERT_EQ(cut.regions, 1);
  const Outputs expected = run(graph, inputs);
  int moved = 0;
  for (size_t i = 0; i < cut.graph.values().size(); ++i) {
    const ir::Value& value = cut.graph.values()[i];
    if (value.type.offset == 0) continue;
    ir::GraphBuilder builder(cut.graph);
    builder.value(ir::ValueId(i)).type.offset -= value.type.numElements();
    for (const ir::Node& node : cut.graph.nodes()) builder.addNode(node);
    EXPECT_NE(run(std::move(builder).finish(), inputs), expected) << value.name;
    ++moved;
  }
  EXPECT_EQ(moved, 3 * 5);  // logits, targets; losses, gradient, its copy
}

}  // namespace
}  // namespace stowage::tests
