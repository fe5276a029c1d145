// SPDX-License-Identifier: Apache-2.0
//
// Results of an archive's calls are laid out as libtorch does, whatever the archive's trace said,
// and their storages are as large as libtorch makes them.

#include "runtime/capture/pt2/pt2_shapes.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "ir/graph/check_graph.h"
#include "runtime/capture/pt2/pt2_import.h"
#include "tests/support/small_pt2.h"

namespace stowage::tests {
namespace {

using nlohmann::json;

constexpr int kFloat = 7;  // of the archive's schema

/// The small step, with `change` made to its program.
class ChangedStep {
 public:
  ChangedStep() : program_(smallStepProgram()) {}

  void setType(const std::string& tensor, const json& meta) {
    graph()["tensor_values"][tensor] = meta;
  }
  /// A node at the end that makes `result`.
  void add(const std::string& target, const json& inputs, const std::string& result,
           const json& meta) {
    setType(result, meta);
    graph()["nodes"].push_back(programNode(target, inputs, json::array({tensorArgument(result)})));
  }

  /// native_layer_norm over the last dimension, of size 2, with its three results.
  void addNorm(const std::string& input, const std::string& weight,
               const std::vector<std::pair<std::string, json>>& results) {
    json outputs = json::array();
    for (const auto& [name, meta] : results) {
      setType(name, meta);
      outputs.push_back(tensorArgument(name));
    }
    graph()["nodes"].push_back(programNode("aten.native_layer_norm.default",
                                           {{"input", tensorArgument(input)},
                                            {"normalized_shape", {{"as_ints", {2}}}},
                                            {"weight", tensorArgument(weight)},
                                            {"bias", tensorArgument(weight)},
                                            {"eps", {{"as_float", 1e-5}}}},
                                           outputs));
  }

  ir::Expected<runtime::ImportedStep> import() const {
    const ir::Target target{.profile = "cpu", .device = ir::DeviceKind::kCpu};
    return runtime::importTrainingStep(writePt2("shapes_test", packPt2(program_.dump())), target);
  }
  ir::Graph graphOfImport() const { return llvm::cantFail(import()).graph; }
  std::string refusal() const {
    ir::Expected<runtime::ImportedStep> step = import();
    return step ? "" : ir::describe(step.takeError());
  }

 private:
  json& graph() { return program_["graph_module"]["graph"]; }
  json program_;
};

const ir::Value& valueOf(const ir::Graph& graph, const std::string& name) {
  for (const ir::Value& value : graph.values()) {
    if (value.name == name) return value;
  }
  throw std::runtime_error("no value " + name);
}

std::vector<int64_t> stridesOf(const ir::Graph& graph, const std::string& name) {
  const auto& strides = valueOf(graph, name).type.strides;
  return {strides.begin(), strides.end()};
}

json ints(const std::vector<int>& numbers) { return {{"as_ints", numbers}}; }

TEST(Pt2Shapes, LaysResultsOutAsLibtorchDoes) {
  ChangedStep step;
  step.setType("add", tensorMeta(kFloat, {4, 2}, {1, 4}));
  step.add("aten.t.default", {{"self", tensorArgument("add")}}, "view",
           tensorMeta(kFloat, {2, 4}, {4, 1}));
  step.add("aten.exp.default", {{"self", tensorArgument("view")}}, "exp",
           tensorMeta(kFloat, {2, 4}, {4, 1}));
  const ir::Graph graph = step.graphOfImport();
  EXPECT_EQ(stridesOf(graph, "add"), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(stridesOf(graph, "view"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(stridesOf(graph, "exp"), (std::vector<int64_t>{1, 2}));
  EXPECT_FALSE(ir::checkGraph(graph));
}

TEST(Pt2Shapes, TakesNoLayoutWithGaps) {
  ChangedStep step;
  step.setType("add", tensorMeta(kFloat, {4, 2}, {3, 1}));
  EXPECT_NE(step.refusal().find("found result 'add' as f32 [4,2] with strides [3,1]"),
            std::string::npos)
      << step.refusal();
}

TEST(Pt2Shapes, TakesNoViewThatLibtorchWouldNotMake) {
  ChangedStep step;
  step.setType("t", tensorMeta(kFloat, {3, 4}, {4, 1}));
  EXPECT_NE(step.refusal().find("found result 't'"), std::string::npos) << step.refusal();
}

TEST(Pt2Shapes, RefusesStridesOfALayoutThatIsNotThere) {
  ChangedStep step;
  step.setType("add", tensorMeta(kFloat, {4, 2}, {1, 4}));
  step.add("aten.as_strided.default",
           {{"self", tensorArgument("add")}, {"size", ints({4})}, {"stride", ints({1})}}, "column",
           tensorMeta(kFloat, {4}, {1}));
  EXPECT_NE(step.refusal().find("lays its argument out otherwise"), std::string::npos)
      << step.refusal();
}

// The scalar that mse_loss returns keeps the bytes of all squares (libtorch 2.11).
TEST(Pt2Shapes, StoragesHaveTheBytesThatLibtorchGivesThem) {
  ChangedStep step;
  step.add("aten.mse_loss.default",
           {{"self", tensorArgument("sub")}, {"target", tensorArgument("a_6")}}, "mse",
           tensorMeta(kFloat, {}, {}));
  const ir::Graph graph = step.graphOfImport();
  const ir::Value& value = valueOf(graph, "mse");
  EXPECT_TRUE(value.type.sizes.empty());
  EXPECT_EQ(graph.storage(value.storage).bytes, Bytes(32));
}

TEST(Pt2Shapes, TakesViewsThatAreMadeInPlace) {
  ChangedStep step;
  step.add("aten.as_strided_.default",
           {{"self", tensorArgument("sub")}, {"size", ints({2, 4})}, {"stride", ints({4, 1})}},
           "wide", tensorMeta(kFloat, {2, 4}, {4, 1}));
  step.add("aten.unsqueeze_.default", {{"self", tensorArgument("wide")}, {"dim", {{"as_int", 0}}}},
           "deep", tensorMeta(kFloat, {1, 2, 4}, {8, 4, 1}));
  step.add("aten.exp.default", {{"self", tensorArgument("deep")}}, "exp",
           tensorMeta(kFloat, {1, 2, 4}, {8, 4, 1}));
  const ir::Graph graph = step.graphOfImport();
  EXPECT_EQ(valueOf(graph, "deep").storage, valueOf(graph, "sub").storage);
  EXPECT_EQ(valueOf(graph, "exp").type, valueOf(graph, "deep").type);
  for (const ir::Node& node : graph.nodes()) {
    EXPECT_NE(node.op, "aten.as_strided_.default");
    EXPECT_NE(node.op, "aten.unsqueeze_.default");
  }
}

// Python's traces on the CPU say bf16 of the statistics too (torch 2.11).
TEST(Pt2Shapes, StatisticsOfANormHaveTheTypeThatLibtorchComputesThemIn) {
  constexpr int kBFloat16 = 13;
  ChangedStep step;
  step.add("aten._to_copy.default",
           {{"self", tensorArgument("sub")}, {"dtype", {{"as_scalar_type", kBFloat16}}}}, "half",
           tensorMeta(kBFloat16, {4, 2}, {2, 1}));
  step.add("aten.sum.dim_IntList", {{"self", tensorArgument("sub")}, {"dim", ints({0})}}, "weight",
           tensorMeta(kFloat, {2}, {1}));
  step.addNorm("half", "weight",
               {{"normed", tensorMeta(kBFloat16, {4, 2}, {2, 1})},
                {"mean", tensorMeta(kBFloat16, {4, 1}, {1, 1})},
                {"deviation", tensorMeta(kBFloat16, {4, 1}, {1, 1})}});
  step.add("aten.t.default", {{"self", tensorArgument("mean")}}, "row",
           tensorMeta(kBFloat16, {1, 4}, {1, 1}));
  const ir::Graph graph = step.graphOfImport();
  EXPECT_EQ(valueOf(graph, "row").type.dtype, ir::DType::kF32);
  EXPECT_EQ(valueOf(graph, "normed").type.dtype, ir::DType::kBF16);
  EXPECT_EQ(valueOf(graph, "mean").type.dtype, ir::DType::kF32);
  EXPECT_EQ(valueOf(graph, "deviation").type.dtype, ir::DType::kF32);
}

TEST(Pt2Shapes, RefusesAWorkspaceOfUnknownSize) {
  ChangedStep step;
  step.add("aten.mkldnn_rnn_layer.default", {{"input", tensorArgument("sub")}}, "layer",
           tensorMeta(kFloat, {4, 2}, {2, 1}));
  EXPECT_NE(step.refusal().find("mkldnn.flags(enabled=False)"), std::string::npos)
      << step.refusal();
}

}  // namespace
}  // namespace stowage::tests
