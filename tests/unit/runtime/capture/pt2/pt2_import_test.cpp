// SPDX-License-Identifier: Apache-2.0
//
// The import of a small archive: the whole graph in text form, roles and names with a side file and
// without, and refusals.

#include "runtime/capture/pt2/pt2_import.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "ir/graph/check_graph.h"
#include "ir/text/printer.h"
#include "runtime/torch/torch_version.h"
#include "tests/support/small_pt2.h"

namespace stowage::tests {
namespace {

using nlohmann::json;
using runtime::ImportedStep;
using runtime::importTrainingStep;

ir::Target cpuTarget() { return {.profile = "cpu", .device = ir::DeviceKind::kCpu}; }

ir::Expected<ImportedStep> importProgram(const json& program, const std::string& sideFile = "") {
  return importTrainingStep(writePt2("import_test", packPt2(program.dump()), sideFile),
                            cpuTarget());
}

ImportedStep importSmall(const std::string& sideFile = smallStepSideFile()) {
  return llvm::cantFail(importProgram(smallStepProgram(), sideFile));
}

json& graphOf(json& document) { return document["graph_module"]["graph"]; }

std::string refusal(const std::function<void(json&)>& change, const std::string& sideFile = "") {
  json program = smallStepProgram();
  change(program);
  ir::Expected<ImportedStep> step = importProgram(program, sideFile);
  if (step) return "";
  const ir::PlanError error = ir::takePayload(step.takeError());
  EXPECT_FALSE(error.location().file.empty()) << error.text();
  std::string text = error.text();
  for (const std::string& note : error.notes()) text += "\n" + note;
  return text;
}

const ir::Storage& storageOf(const ImportedStep& step, ir::ValueId value) {
  return step.graph.storage(step.graph.value(value).storage);
}

TEST(Pt2Import, MakesTheGraphOfTheSmallStep) {
  // Exported by 2.11.0, whatever imports it.
  const std::string torch = runtime::torchVersion();
  const std::string producer = torch == "2.11.0" ? "torch.export, torch 2.11.0"
                                                 : "torch.export of torch 2.11.0, torch " + torch;
  std::string text = ir::toText(importSmall().graph);
  const size_t place = text.find(producer);
  ASSERT_NE(place, std::string::npos) << text;
  text.replace(place, producer.size(), "PRODUCER");
  EXPECT_EQ(
      text,
      R"text(graph @small version=1 device="cpu" target="cpu" recipe="import_test.pt2 fingerprint=xxh64:c1b609bbc7a13623" producer="PRODUCER" steps=1 {
  parameter %net.fc.weight : f32[3,2]
  state %m_net.fc.weight_ "m(net.fc.weight)" : f32[3,2]
  state %v_net.fc.weight_ "v(net.fc.weight)" : f32[3,2]
  step_counter %step_net.fc.weight_ "step(net.fc.weight)" : f32[]
  input %lr : f32[]
  input %batch.0 : f32[4,3]
  input %batch.1 : f32[4,2]
forward "net.fc":
  %mm "net.fc/mm.0" : f32[4,2] = aten.mm.default(%batch.0, %net.fc.weight)
forward "":
  %mm = aten.mul_.Tensor(inout %mm, wrapped(f64 0.5))
  %empty_like "empty_like.0" : f32[4,2] = aten.empty_like.default(%mm, none, none, none, none, none)
  %empty_like = aten.uniform_.default(out %empty_like, 0.0, 1.0, none)
  %add "add.0" : f32[4,2] = aten.add.Tensor(%mm, %empty_like, 1)
  %sub "sub.0" : f32[4,2] = aten.sub.Tensor(%add, %batch.1, 1)
  %mul "mul.0" : f32[4,2] = aten.mul.Tensor(%sub, %sub)
  %sum_1 "loss" output : f32[] = aten.sum.default(%mul, none)
backward "":
  %mul_1 "mul.1" : f32[4,2] = aten.mul.Tensor(%sub, wrapped(i64 1))
  view %t of %batch.0 : f32[3,4] strides=[1,3]
  %mm_1 "grad(net.fc.weight)" gradient : f32[3,2] = aten.mm.default(%t, %mul_1)
optimizer "":
  aten._foreach_add_.Scalar([inout %step_net.fc.weight_], 1)
  aten._fused_adamw_.tensor_lr([inout %net.fc.weight], [inout %mm_1], [inout %m_net.fc.weight_], [inout %v_net.fc.weight_], values[], [%step_net.fc.weight_], %lr, 0.9, 0.95, 0.1, 1e-08, false, false, none, none)
}
)text");
}

TEST(Pt2Import, FoldsViewsAndKeepsAliases) {
  const ImportedStep step = importSmall();
  EXPECT_EQ(step.graph.nodes().size(), 12U);  // 15 less two detach and a transpose
  for (const ir::Node& node : step.graph.nodes()) {
    EXPECT_NE(node.op, "aten.detach.default");
    EXPECT_NE(node.op, "aten.t.default");
  }
  // mm and mul_ are one value; so are the weight and its detached self.
  EXPECT_EQ(step.graph.nodes()[1].results[0], step.graph.nodes()[0].results[0]);
  EXPECT_EQ(std::get<ir::ValueArg>(step.graph.nodes()[0].args[1]).value, step.arguments[0]);
  // The transposed input is another value of its storage.
  const auto transposed = std::get<ir::ValueArg>(step.graph.nodes()[9].args[0]).value;
  EXPECT_EQ(step.graph.value(transposed).storage, step.graph.value(step.arguments[5]).storage);
  EXPECT_EQ(step.graph.value(transposed).type.strides, (llvm::SmallVector<int64_t, 4>{1, 3}));
}

TEST(Pt2Import, KnowsWhatIsWritten) {
  const ImportedStep step = importSmall();
  const ir::Node& uniform = step.graph.nodes()[3];
  EXPECT_EQ(uniform.op, "aten.uniform_.default");
  ASSERT_EQ(uniform.writes.size(), 1U);
  EXPECT_TRUE(uniform.writes[0].whole);
  const ir::Node& inPlace = step.graph.nodes()[1];
  ASSERT_EQ(inPlace.writes.size(), 1U);
  EXPECT_FALSE(inPlace.writes[0].whole);
  for (const size_t input : {0, 1, 2, 3}) {
    const ir::StorageId storage = step.graph.value(step.arguments[input]).storage;
    EXPECT_EQ(step.graph.lastVersion(storage), 1) << input;
    EXPECT_TRUE(step.graph.storage(storage).persistent) << input;
  }
}

TEST(Pt2Import, FillsInDefaultsAndWrapsNumbers) {
  const ImportedStep step = importSmall();
  const ir::Node& add = step.graph.nodes()[4];
  ASSERT_EQ(add.args.size(), 3U);
  EXPECT_EQ(std::get<int64_t>(add.args[2]), 1);  // alpha
  const auto wrapped = std::get<ir::WrappedNumberArg>(step.graph.nodes()[1].args[1]);
  EXPECT_EQ(wrapped.dtype, ir::DType::kF64);
  EXPECT_EQ(std::get<double>(wrapped.value), 0.5);
  const auto whole = std::get<ir::WrappedNumberArg>(step.graph.nodes()[8].args[1]);
  EXPECT_EQ(whole.dtype, ir::DType::kI64);
}

TEST(Pt2Import, FindsRolesWithoutASideFile) {
  const ImportedStep step = importSmall(/*sideFile=*/"");
  const std::vector<std::pair<const char*, ir::Role>> expected = {
      {"parameter.0", ir::Role::kParameter},
      {"m(parameter.0)", ir::Role::kState},
      {"v(parameter.0)", ir::Role::kState},
      {"step(parameter.0)", ir::Role::kStepCounter},
      {"lr.0", ir::Role::kInput},
      {"input.0", ir::Role::kInput},
      {"input.1", ir::Role::kInput}};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(storageOf(step, step.arguments[i]).name, expected[i].first);
    EXPECT_EQ(storageOf(step, step.arguments[i]).role, expected[i].second) << i;
  }
  EXPECT_EQ(step.learningRates, std::vector<ir::ValueId>{step.arguments[4]});
}

TEST(Pt2Import, FindsParametersInsideTheArchive) {
  json program = smallStepProgram();
  json& specs = program["graph_module"]["signature"]["input_specs"];
  specs[0] = {{"parameter", {{"arg", {{"name", "a_0"}}}, {"parameter_name", "fc.weight"}}}};
  specs[6] = {{"tensor_constant", {{"arg", {{"name", "a_6"}}}, {"tensor_constant_name", "c0"}}}};
  const ImportedStep step = llvm::cantFail(importProgram(program));
  EXPECT_EQ(storageOf(step, step.arguments[0]).name, "fc.weight");
  EXPECT_EQ(storageOf(step, step.arguments[0]).role, ir::Role::kParameter);
  EXPECT_EQ(storageOf(step, step.arguments[1]).name, "m(fc.weight)");
  EXPECT_EQ(storageOf(step, step.arguments[6]).role, ir::Role::kConstant);
}

TEST(Pt2Import, TellsPhasesByTheData) {
  const ImportedStep step = importSmall();
  const std::vector<ir::Phase> expected(
      {ir::Phase::kForward, ir::Phase::kForward, ir::Phase::kForward, ir::Phase::kForward,
       ir::Phase::kForward, ir::Phase::kForward, ir::Phase::kForward, ir::Phase::kForward,
       ir::Phase::kBackward, ir::Phase::kBackward, ir::Phase::kOptimizer, ir::Phase::kOptimizer});
  ASSERT_EQ(step.graph.nodes().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(step.graph.nodes()[i].phase, expected[i]) << i;
  }
}

TEST(Pt2Import, ListsHostNumbersOfTheOptimizer) {
  const ImportedStep step = importSmall();
  std::vector<std::pair<std::string, double>> found;
  for (const runtime::FrozenScalar& scalar : step.frozenScalars) {
    found.emplace_back(scalar.name, scalar.value);
  }
  EXPECT_EQ(
      found,
      (std::vector<std::pair<std::string, double>>{
          {"scalar", 1}, {"beta1", 0.9}, {"beta2", 0.95}, {"weight_decay", 0.1}, {"eps", 1e-8}}));
}

TEST(Pt2Import, ReturnsTheLoss) {
  const ImportedStep step = importSmall();
  ASSERT_EQ(step.reports.size(), 1U);
  ASSERT_TRUE(step.loss.has_value());
  EXPECT_EQ(step.reports[0], *step.loss);
  EXPECT_EQ(step.inputs,
            (std::vector<ir::ValueId>{step.arguments[4], step.arguments[5], step.arguments[6]}));
  EXPECT_EQ(storageOf(step, *step.loss).name, "loss");
  EXPECT_TRUE(storageOf(step, *step.loss).output);
}

TEST(Pt2Import, ReturnsInputsAsTheyCame) {
  json program = smallStepProgram();
  json& outputs = graphOf(program)["outputs"];
  json& specs = program["graph_module"]["signature"]["output_specs"];
  for (const char* name : {"a_5", "a_0"}) {  // one that nothing writes, one that is updated
    outputs.push_back(tensorArgument(name));
    specs.push_back({{"user_output", {{"arg", tensorArgument(name)}}}});
  }
  const ImportedStep step = llvm::cantFail(importProgram(program, smallStepSideFile()));
  EXPECT_FALSE(storageOf(step, step.arguments[5]).output);
  EXPECT_TRUE(storageOf(step, step.arguments[0]).output);
  EXPECT_EQ(step.reports, (std::vector<ir::ValueId>{*step.loss, step.arguments[0]}));
}

TEST(Pt2Import, TakesAnExplicitSideFile) {
  const std::string archive = writePt2("import_test", packPt2(smallStepProgram().dump()));
  const std::string side = writePt2("elsewhere", "", smallStepSideFile());
  const ImportedStep step = llvm::cantFail(importTrainingStep(
      archive, cpuTarget(), {.sideFile = side.substr(0, side.size() - 4) + ".json"}));
  EXPECT_EQ(storageOf(step, step.arguments[0]).name, "net.fc.weight");
  ir::Expected<ImportedStep> missing =
      importTrainingStep(archive, cpuTarget(), {.sideFile = "no such file"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(ir::takePayload(missing.takeError()).code(), ir::ErrorCode::kIo);
}

TEST(Pt2Import, RefusesASideFileThatDoesNotFit) {
  const auto none = [](json&) {};
  EXPECT_NE(refusal(none, R"({"input_groups": {"train": 3}})").find("7 inputs"), std::string::npos);
  EXPECT_NE(
      refusal(none,
              R"({"input_groups": {"train": 7000000000000000000, "lr": 7000000000000000000}})")
          .find("7 inputs"),
      std::string::npos);
  EXPECT_NE(refusal(none, R"({"input_groups": {"weights": 7}})").find("called 'weights'"),
            std::string::npos);
  EXPECT_NE(refusal(none, R"({"input_groups": {"frozen": 7}})").find("is called frozen"),
            std::string::npos);
  EXPECT_NE(refusal(none, "{").find("no JSON"), std::string::npos);
}

// Plain gradient descent: what multiplies a gradient by the rate is no gradient.
TEST(Pt2Import, WhatReadsTheLearningRateBelongsToTheOptimizer) {
  json program = smallStepProgram();
  json& nodes = graphOf(program)["nodes"];
  graphOf(program)["tensor_values"]["scaled"] = tensorMeta(7, {3, 2}, {2, 1});
  graphOf(program)["tensor_values"]["sub_"] = tensorMeta(7, {3, 2}, {2, 1});
  nodes.erase(13);
  nodes.push_back(programNode("aten.mul.Tensor",
                              {{"self", tensorArgument("mm_1")}, {"other", tensorArgument("a_4")}},
                              json::array({tensorArgument("scaled")})));
  nodes.push_back(programNode(
      "aten.sub_.Tensor", {{"self", tensorArgument("a_0")}, {"other", tensorArgument("scaled")}},
      json::array({tensorArgument("sub_")})));
  const ImportedStep step = llvm::cantFail(importProgram(program, smallStepSideFile()));
  const auto& made = step.graph.nodes();
  ASSERT_GE(made.size(), 2U);
  EXPECT_EQ(made[made.size() - 2].op, "aten.mul.Tensor");
  EXPECT_EQ(made[made.size() - 2].phase, ir::Phase::kOptimizer);
  EXPECT_NE(storageOf(step, made[made.size() - 2].results[0]).role, ir::Role::kGradient);
  EXPECT_EQ(made.back().phase, ir::Phase::kOptimizer);
}

// torch.fx makes inputs of tensors that a trace finds beside its arguments; the archive holds them,
// and whoever wrote the side file need not know of them.
TEST(Pt2Import, TakesConstantsThatNoGroupDescribes) {
  json program = smallStepProgram();
  json& graph = graphOf(program);
  json& signature = program["graph_module"]["signature"];
  graph["tensor_values"]["c"] = tensorMeta(7, {4, 2}, {2, 1});
  graph["inputs"].insert(graph["inputs"].begin(), tensorArgument("c"));
  const json spec = {
      {"buffer",
       {{"arg", {{"name", "c"}}}, {"buffer_name", "gm._tensor_constant0"}, {"persistent", true}}}};
  signature["input_specs"].insert(signature["input_specs"].begin(), spec);
  graph["nodes"][6]["inputs"][1]["arg"] = tensorArgument("c");
  const ImportedStep step = llvm::cantFail(importProgram(program, smallStepSideFile()));
  EXPECT_EQ(storageOf(step, step.arguments[0]).role, ir::Role::kConstant);
  EXPECT_EQ(storageOf(step, step.arguments[0]).name, "gm._tensor_constant0");
  EXPECT_EQ(storageOf(step, step.arguments[1]).name, "net.fc.weight");
  EXPECT_EQ(storageOf(step, step.arguments[2]).name, "m(net.fc.weight)");
  EXPECT_EQ(storageOf(step, step.arguments[7]).role, ir::Role::kInput);
  ir::Expected<ImportedStep> wrong = importProgram(program, R"({"input_groups": {"train": 6}})");
  ASSERT_FALSE(wrong);
  EXPECT_NE(ir::describe(wrong.takeError()).find("1 of which are tensors inside the archive"),
            std::string::npos);
}

/// Adds a node that makes tensor "extra", of the given type.
std::function<void(json&)> withNode(const json& node, const json& meta) {
  return [=](json& document) {
    graphOf(document)["tensor_values"]["extra"] = meta;
    graphOf(document)["nodes"].push_back(node);
  };
}

struct BadStep {
  const char* what;
  std::function<void(json&)> change;
  const char* expected;
};

TEST(Pt2Import, RefusesStepsNamingTheNode) {
  const json scalar = tensorMeta(7, {}, {});
  const json wide = tensorMeta(7, {4, 3}, {3, 1});
  const json self = {{"self", tensorArgument("a_5")}};
  const json extra = json::array({tensorArgument("extra")});
  const std::vector<BadStep> steps = {
      {"no op", withNode(programNode("aten.no_such.default", self, extra), wide),
       "has no op 'torch.ops.aten.no_such.default'"},
      {"python", [](json& d) { graphOf(d)["nodes"][1]["target"] = "_operator.add"; },
       "expected an op"},
      {"composite", withNode(programNode("aten.relu6.default", self, extra), wide),
       "made of other ops"},
      {"data dependent", withNode(programNode("aten.nonzero.default", self, extra), wide),
       "depends on values"},
      {"defined late",
       [](json& d) { graphOf(d)["nodes"][1]["inputs"][1]["arg"] = tensorArgument("mm_1"); },
       "no node before this one makes"},
      {"defined twice",
       [](json& d) { graphOf(d)["nodes"][6]["outputs"][0] = tensorArgument("mm"); },
       "is made twice"},
      {"missing argument", [](json& d) { graphOf(d)["nodes"][1]["inputs"].erase(0); },
       "argument 'mat2' is missing"},
      {"unknown argument", [](json& d) { graphOf(d)["nodes"][1]["inputs"][0]["name"] = "other"; },
       "no argument 'other'"},
      {"argument twice",
       [](json& d) {
         graphOf(d)["nodes"][1]["inputs"].push_back(graphOf(d)["nodes"][1]["inputs"][0]);
       },
       "given twice"},
      {"wrong kind",
       [](json& d) {
         graphOf(d)["nodes"][1]["inputs"][0]["arg"] = {{"as_string", "x"}};
       },
       "found a string, expected Tensor"},
      {"outputs", [](json& d) { graphOf(d)["nodes"][1]["outputs"] = json::array(); },
       "found 0 outputs, expected 1"},
      {"list for a tensor",
       [](json& d) {
         graphOf(d)["nodes"][1]["outputs"][0] = {{"as_tensors", {{{"name", "mm"}}}}};
       },
       "no tensor"},
      {"view outside",
       [&](json& d) {
         graphOf(d)["tensor_values"]["t"] = tensorMeta(7, {3, 4}, {1, 3}, 1);
       },
       "expected f32 [3,4] with strides [1,3] from element 0"},
      {"view of other elements",
       [&](json& d) {
         graphOf(d)["tensor_values"]["t"] = tensorMeta(6, {3, 4}, {1, 3});
       },
       "found result 't' as f16"},
      {"in place, another shape",
       [&](json& d) {
         graphOf(d)["tensor_values"]["mul_"] = tensorMeta(7, {2, 4}, {4, 1});
       },
       "found result 'mul_' as f32 [2,4]"},
      {"result inside something",
       [&](json& d) {
         graphOf(d)["tensor_values"]["sub"] = tensorMeta(7, {4, 2}, {2, 1}, 2);
       },
       "from element 2, expected"},
      {"lazy view", withNode(programNode("aten._neg_view.default", self, extra), wide),
       "other numbers than its bytes"}};
  for (const BadStep& step : steps) {
    const std::string text = refusal(step.change);
    EXPECT_NE(text.find(step.expected), std::string::npos) << step.what << ": " << text;
    EXPECT_EQ(text.compare(0, 5, "node "), 0) << step.what << ": " << text;
  }
}

TEST(Pt2Import, ChecksTypesAgainstTheOps) {
  const auto withMeta = [](const char* tensor, const json& meta) {
    return [=](json& d) { graphOf(d)["tensor_values"][tensor] = meta; };
  };
  const std::vector<BadStep> steps = {
      {"size", withMeta("mm_1", tensorMeta(7, {3, 4}, {4, 1})),
       "node 11 'mm' (torch.ops.aten.mm.default): found result 'mm_1' as f32 [3,4] with strides "
       "[4,1] from element 0, expected f32 [3,2] with strides [2,1]"},
      {"element type", withMeta("mul", tensorMeta(5, {4, 2}, {2, 1})), "found result 'mul' as i64"},
      {"view", withMeta("t", tensorMeta(7, {3, 4}, {4, 1})), "found result 't'"},
      {"arguments", withMeta("a_6", tensorMeta(7, {5, 2}, {2, 1})),
       "node 6 'sub' (torch.ops.aten.sub.Tensor): libtorch refuses these arguments"}};
  for (const BadStep& step : steps) {
    const std::string text = refusal(step.change);
    EXPECT_NE(text.find(step.expected), std::string::npos) << step.what << ": " << text;
  }
  // How dimensions of size 1 are laid out makes no difference.
  json program = smallStepProgram();
  for (const char* name :
       {"a_5", "mm", "mul_", "empty_like", "uniform_", "add", "sub", "mul", "mul_1", "a_6"}) {
    json& sizes = graphOf(program)["tensor_values"][name]["sizes"];
    sizes[0] = {{"as_int", 1}};
  }
  graphOf(program)["tensor_values"]["t"] = tensorMeta(7, {3, 1}, {1, 3});
  graphOf(program)["tensor_values"]["add"]["strides"][0] = {{"as_int", 7}};
  ir::Expected<ImportedStep> step = importProgram(program);
  EXPECT_TRUE(bool(step));
}

/// Our rules look at sizes: nonsense must not make them look elsewhere.
TEST(Pt2Import, RefusesArgumentsThatNoRuleCanAnswer) {
  const json wide = tensorMeta(7, {4, 3}, {3, 1});
  const json self = tensorArgument("a_5"), none = {{"as_none", true}};
  const auto ints = [](const std::vector<int>& numbers) { return json{{"as_ints", numbers}}; };
  const auto convolution = [&](const json& stride) {
    return programNode("aten.convolution.default",
                       {{"input", tensorArgument("b")},
                        {"weight", tensorArgument("b")},
                        {"bias", none},
                        {"stride", stride},
                        {"padding", ints({0, 0})},
                        {"dilation", ints({1, 1})},
                        {"transposed", {{"as_bool", false}}},
                        {"output_padding", ints({0, 0})},
                        {"groups", {{"as_int", 1}}}},
                       json::array({tensorArgument("extra")}));
  };
  const json outputs = json::array({tensorArgument("extra")});
  const std::vector<json> nodes = {
      convolution(ints({0, 0})), convolution(ints({})),
      programNode("aten.native_layer_norm.default",
                  {{"input", self},
                   {"normalized_shape", ints({1, 1, 4, 3})},
                   {"weight", none},
                   {"bias", none},
                   {"eps", {{"as_float", 1e-5}}}},
                  json::array({tensorArgument("extra"), none, none})),
      programNode("aten.index_select.default",
                  {{"self", self}, {"dim", {{"as_int", 7}}}, {"index", tensorArgument("a_4")}},
                  outputs),
      programNode("aten.embedding_dense_backward.default",
                  {{"grad_output", self},
                   {"indices", tensorArgument("a_4")},
                   {"num_weights", {{"as_int", -1}}},
                   {"padding_idx", {{"as_int", -1}}},
                   {"scale_grad_by_freq", {{"as_bool", false}}}},
                  outputs)};
  for (const json& node : nodes) {
    const auto change = [&](json& document) {
      graphOf(document)["tensor_values"]["b"] = tensorMeta(7, {1, 4, 3, 1}, {12, 3, 1, 1});
      graphOf(document)["nodes"].push_back(
          programNode("aten.view.default", {{"self", self}, {"size", ints({1, 4, 3, 1})}},
                      json::array({tensorArgument("b")})));
      withNode(node, wide)(document);
    };
    const std::string text = refusal(change);
    EXPECT_NE(text.find("node 16 "), std::string::npos) << node << text;
    EXPECT_NE(text.find("libtorch refuses these arguments"), std::string::npos) << node << text;
  }
}

TEST(Pt2Import, TakesNoneForATensor) {
  // As attention without a bias has it.
  json program = smallStepProgram();
  json attention =
      programNode("aten._scaled_dot_product_cudnn_attention_backward.default",
                  {{"grad_out", tensorArgument("q")},
                   {"query", tensorArgument("q")},
                   {"key", tensorArgument("q")},
                   {"value", tensorArgument("q")},
                   {"out", tensorArgument("q")},
                   {"logsumexp", tensorArgument("l")},
                   {"philox_seed", tensorArgument("s")},
                   {"philox_offset", tensorArgument("s")},
                   {"attn_bias", {{"as_none", true}}},
                   {"cum_seq_q", {{"as_none", true}}},
                   {"cum_seq_k", {{"as_none", true}}},
                   {"max_q", {{"as_int", 4}}},
                   {"max_k", {{"as_int", 4}}},
                   {"dropout_p", {{"as_float", 0.0}}},
                   {"is_causal", {{"as_bool", true}}}},
                  json::array({tensorArgument("dq"), tensorArgument("dk"), tensorArgument("dv")}));
  const auto factory = [&](const char* name, const json& meta) {
    graphOf(program)["tensor_values"][name] = meta;
    json sizes = json::array();
    for (const json& size : meta["sizes"]) sizes.push_back(size["as_int"]);
    json node = programNode(
        "aten.empty.memory_format",
        {{"size", {{"as_ints", sizes}}}, {"dtype", {{"as_scalar_type", meta["dtype"]}}}},
        json::array({tensorArgument(name)}));
    graphOf(program)["nodes"].push_back(node);
  };
  const json query = tensorMeta(13, {2, 2, 4, 8}, {64, 32, 8, 1});
  factory("q", query);
  factory("l", tensorMeta(7, {2, 2, 4, 1}, {8, 4, 1, 1}));
  factory("s", tensorMeta(5, {}, {}));
  for (const char* name : {"dq", "dk", "dv"}) graphOf(program)["tensor_values"][name] = query;
  graphOf(program)["nodes"].push_back(attention);
  const ImportedStep step = llvm::cantFail(importProgram(program));
  const ir::Node& node = step.graph.nodes().back();
  EXPECT_EQ(node.op, "aten._scaled_dot_product_cudnn_attention_backward.default");
  EXPECT_TRUE(std::holds_alternative<ir::NoneArg>(node.args[8]));
}

TEST(Pt2Import, RefusesStepsLargerThanAnyMemory) {
  const auto huge = [](json& d) {
    for (const char* name : {"a_0", "a_1", "a_2", "a_6"}) {
      graphOf(d)["tensor_values"][name]["sizes"][0] = {{"as_int", int64_t{1} << 55}};
    }
  };
  EXPECT_NE(refusal(huge).find("brings the step above"), std::string::npos) << refusal(huge);
}

TEST(Pt2Import, RefusesAnotherDeviceThanTheTargets) {
  json program = smallStepProgram();
  for (auto& [name, meta] : graphOf(program)["tensor_values"].items()) {
    meta["device"] = {{"type", "cuda"}, {"index", 0}};
  }
  const std::string path = writePt2("import_test", packPt2(program.dump()));
  ir::Expected<ImportedStep> wrong = importTrainingStep(path, cpuTarget());
  ASSERT_FALSE(wrong);
  const ir::PlanError error = ir::takePayload(wrong.takeError());
  EXPECT_EQ(error.code(), ir::ErrorCode::kInvalidArgument);
  EXPECT_NE(error.text().find("traced for cuda, expected cpu"), std::string::npos);
  const ImportedStep step = llvm::cantFail(
      importTrainingStep(path, {.profile = "h200", .device = ir::DeviceKind::kCuda}, {}));
  EXPECT_EQ(step.graph.provenance().device, "cuda");
}

/// The small step on a GPU, but for the tensors named.
json smallStepOnGpu(const std::set<std::string>& onHost) {
  json program = smallStepProgram();
  for (auto& [name, meta] : graphOf(program)["tensor_values"].items()) {
    if (!onHost.contains(name)) meta["device"] = {{"type", "cuda"}, {"index", 0}};
  }
  return program;
}

ir::Expected<ImportedStep> importForGpu(const json& program) {
  return importTrainingStep(writePt2("import_test", packPt2(program.dump())),
                            {.profile = "h200", .device = ir::DeviceKind::kCuda}, {});
}

TEST(Pt2Import, KeepsSmallHostTensorsOfADeviceStepOnTheHost) {
  const ImportedStep step = llvm::cantFail(importForGpu(smallStepOnGpu({"a_4"})));
  EXPECT_EQ(storageOf(step, step.arguments[4]).home, ir::Space::kHost);
  EXPECT_EQ(storageOf(step, step.arguments[0]).home, ir::Space::kDevice);
}

// torch.fx makes such a constant of a number that is put into a tensor: x[:, 0] = 5.
TEST(Pt2Import, KeepsConstantsOfADeviceStepOnTheHost) {
  json program = smallStepOnGpu({});
  json& graph = graphOf(program);
  graph["tensor_values"]["c"] = tensorMeta(7, {}, {});
  graph["inputs"].insert(graph["inputs"].begin(), tensorArgument("c"));
  const json spec = {{"tensor_constant",
                      {{"arg", {{"name", "c"}}}, {"tensor_constant_name", "_tensor_constant0"}}}};
  json& specs = program["graph_module"]["signature"]["input_specs"];
  specs.insert(specs.begin(), spec);
  graph["nodes"][2]["inputs"][0]["arg"] = tensorArgument("c");  // `other`
  const ImportedStep step = llvm::cantFail(importForGpu(program));
  const ir::Storage& constant = storageOf(step, step.arguments[0]);
  EXPECT_EQ(constant.role, ir::Role::kConstant);
  EXPECT_EQ(constant.home, ir::Space::kHost);
}

TEST(Pt2Import, RefusesStateOnTheHostThatADeviceStepWrites) {
  ir::Expected<ImportedStep> step = importForGpu(smallStepOnGpu({"a_3"}));
  ASSERT_FALSE(step);
  const ir::PlanError error = ir::takePayload(step.takeError());
  EXPECT_EQ(error.code(), ir::ErrorCode::kUnsupported);
  EXPECT_FALSE(error.location().file.empty());
  EXPECT_NE(error.text().find("writes state that lives on the host"), std::string::npos);
  ASSERT_FALSE(error.notes().empty());
  EXPECT_NE(error.notes().front().find("_foreach_add_"), std::string::npos);
}

TEST(Pt2Import, RefusesArchivesOfAnotherKind) {
  const auto why = [](const std::string& archive) {
    ir::Expected<ImportedStep> step =
        importTrainingStep(writePt2("import_test", archive), cpuTarget());
    return step ? "" : ir::describe(step.takeError());
  };
  const std::string text = smallStepProgram().dump();
  const auto pack = [&](const std::string& format, const std::string& version) {
    return packZip(
        {{"models/model.json", text}, {"archive_format", format}, {"archive_version", version}});
  };
  EXPECT_EQ(why(pack("pt2", "0")), "");
  EXPECT_NE(why(pack("pt3", "0")).find("found 'pt3', expected 'pt2'"), std::string::npos);
  EXPECT_NE(why(pack("pt2", "1")).find("found '1', expected '0'"), std::string::npos);
  EXPECT_NE(why(packZip({{"models/a.json", text}})).find("no entry 'archive/archive_format'"),
            std::string::npos);
  EXPECT_NE(why(packZip({{"data.pkl", text}})).find("found no program"), std::string::npos);
  EXPECT_NE(why(packZip({{"models/a.json", text}, {"models/b.json", text}})).find("expected one"),
            std::string::npos);
}

}  // namespace
}  // namespace stowage::tests
