// SPDX-License-Identifier: Apache-2.0
//
// The reader of torch.export's JSON: codes, arguments of each kind, and refusals with their place.

#include "runtime/capture/pt2/pt2_json.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/support/small_pt2.h"

namespace stowage::tests {
namespace {

using nlohmann::json;
using runtime::Pt2Program;
using runtime::readPt2Program;

json& graphOf(json& document) { return document["graph_module"]["graph"]; }

Pt2Program readChanged(const std::function<void(json&)>& change) {
  json document = smallStepProgram();
  change(document);
  return llvm::cantFail(readPt2Program(document.dump(), "m.json"));
}

struct Refusal {
  ir::ErrorCode code = ir::ErrorCode::kInternal;
  std::string text;
};

Refusal refuse(const std::function<void(json&)>& change) {
  json document = smallStepProgram();
  change(document);
  ir::Expected<Pt2Program> program = readPt2Program(document.dump(), "m.json");
  if (program) return {};
  const ir::PlanError error = ir::takePayload(program.takeError());
  EXPECT_EQ(error.location().file, "m.json");
  return {error.code(), error.text()};
}

/// Gives node 2's argument `other` another value.
std::function<void(json&)> withArgument(const json& value) {
  return [value](json& document) { graphOf(document)["nodes"][2]["inputs"][0]["arg"] = value; };
}

runtime::Pt2Value readArgument(const json& value) {
  return readChanged(withArgument(value)).nodes[2].inputs[0].value;
}

TEST(Pt2Json, ReadsTheSmallStep) {
  const Pt2Program program = readChanged([](json&) {});
  EXPECT_EQ(program.torchVersion, "2.11.0");
  EXPECT_EQ(program.inputs.size(), 7U);
  ASSERT_EQ(program.nodes.size(), 15U);
  EXPECT_EQ(program.nodes[1].target, "torch.ops.aten.mm.default");
  EXPECT_EQ(program.outputs.size(), 1U);
}

TEST(Pt2Json, ReadsElementTypesByTheCodesOfTheSchema) {
  const std::vector<std::pair<int, ir::DType>> codes = {
      {1, ir::DType::kU8},      {2, ir::DType::kI8},     {3, ir::DType::kI16},
      {4, ir::DType::kI32},     {5, ir::DType::kI64},    {6, ir::DType::kF16},
      {7, ir::DType::kF32},     {8, ir::DType::kF64},    {10, ir::DType::kC64},
      {11, ir::DType::kC128},   {12, ir::DType::kBool},  {13, ir::DType::kBF16},
      {29, ir::DType::kF8E4M3}, {30, ir::DType::kF8E5M2}};
  for (const auto& [code, dtype] : codes) {
    const Pt2Program program =
        readChanged([code = code](json& d) { graphOf(d)["tensor_values"]["a_0"]["dtype"] = code; });
    EXPECT_EQ(program.tensors[0].name, "a_0");
    EXPECT_EQ(program.tensors[0].type.dtype, dtype) << code;
  }
  for (const int code : {0, 9, 28, 31, 99}) {
    const Refusal refusal =
        refuse([code](json& d) { graphOf(d)["tensor_values"]["a_0"]["dtype"] = code; });
    EXPECT_EQ(refusal.code, ir::ErrorCode::kUnsupported) << code;
  }
}

TEST(Pt2Json, ReadsArgumentsOfEachKind) {
  EXPECT_EQ(std::get<int64_t>(readArgument({{"as_int", -3}})), -3);
  EXPECT_EQ(std::get<double>(readArgument({{"as_float", 0.25}})), 0.25);
  EXPECT_EQ(std::get<double>(readArgument({{"as_float", "-Infinity"}})),
            -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(std::get<double>(readArgument({{"as_float", "NaN"}}))));
  EXPECT_TRUE(std::get<bool>(readArgument({{"as_bool", true}})));
  EXPECT_EQ(std::get<std::string>(readArgument({{"as_string", "mean"}})), "mean");
  EXPECT_EQ(std::get<ir::EnumArg>(readArgument({{"as_scalar_type", 13}})),
            (ir::EnumArg{"dtype", "bf16"}));
  EXPECT_EQ(std::get<ir::EnumArg>(readArgument({{"as_memory_format", 4}})),
            (ir::EnumArg{"memory_format", "preserve"}));
  EXPECT_EQ(std::get<ir::EnumArg>(readArgument({{"as_layout", 7}})),
            (ir::EnumArg{"layout", "strided"}));
  EXPECT_EQ(std::get<ir::EnumArg>(readArgument({{"as_device", {{"type", "cuda"}, {"index", 0}}}})),
            (ir::EnumArg{"device", "cuda:0"}));
  EXPECT_EQ(std::get<ir::NumberList>(readArgument({{"as_ints", {1, 2}}})),
            (ir::NumberList{int64_t{1}, int64_t{2}}));
  EXPECT_EQ(std::get<ir::NumberList>(readArgument({{"as_bools", {true, false}}})),
            (ir::NumberList{true, false}));
  EXPECT_EQ(std::get<ir::ComplexArg>(readArgument({{"as_complex", {{"real", 1.0}, {"imag", 2}}}})),
            (ir::ComplexArg{1, 2}));
  const json optionals = {{{"as_none", true}}, tensorArgument("a_5")};
  const auto list =
      std::get<runtime::Pt2TensorList>(readArgument({{"as_optional_tensors", optionals}}));
  EXPECT_EQ(list[0].tensor, -1);
  EXPECT_GE(list[1].tensor, 0);
}

TEST(Pt2Json, TakesNumbersThatOnlyLookSymbolic) {
  const auto change = [](json& document) {
    graphOf(document)["sym_int_values"]["n"] = {{"as_int", 12}};
    withArgument({{"as_sym_int", {{"as_name", "n"}}}})(document);
  };
  EXPECT_EQ(std::get<int64_t>(readChanged(change).nodes[2].inputs[0].value), 12);
  const json list = {{{"as_int", 4}}, {{"as_int", 5}}};
  EXPECT_EQ(std::get<ir::NumberList>(readArgument({{"as_sym_ints", list}})),
            (ir::NumberList{int64_t{4}, int64_t{5}}));
}

TEST(Pt2Json, NamesTheNodeOfAWrongArgument) {
  const Refusal refusal = refuse(withArgument({{"as_int", "three"}}));
  EXPECT_EQ(refusal.code, ir::ErrorCode::kParse);
  EXPECT_EQ(refusal.text,
            "node 2 'mul_' (torch.ops.aten.mul_.Tensor): field 'as_int': found string, expected an "
            "integer of 64 bits");
}

TEST(Pt2Json, RefusesWhatIsSymbolic) {
  const json symbol = {{"as_expr", {{"expr_str", "s0"}}}};
  const Refusal size =
      refuse([&](json& d) { graphOf(d)["tensor_values"]["mm"]["sizes"][0] = symbol; });
  EXPECT_EQ(size.code, ir::ErrorCode::kUnsupported);
  EXPECT_NE(size.text.find("tensor 'mm': found the symbolic size 's0'"), std::string::npos);
  const Refusal number = refuse(withArgument({{"as_sym_int", {{"as_name", "s1"}}}}));
  EXPECT_EQ(number.code, ir::ErrorCode::kUnsupported);
  EXPECT_NE(number.text.find("symbolic number 's1'"), std::string::npos);
}

TEST(Pt2Json, RefusesOtherSchemaVersions) {
  const Refusal major = refuse([](json& d) { d["schema_version"]["major"] = 9; });
  EXPECT_EQ(major.code, ir::ErrorCode::kUnsupported);
  EXPECT_NE(major.text.find("schema version 9.17, expected 8"), std::string::npos);
  readChanged([](json& d) { d["schema_version"]["minor"] = 99; });
}

struct BadProgram {
  const char* what;
  std::function<void(json&)> change;
  const char* expected;
};

TEST(Pt2Json, RefusesProgramsThatDoNotFollowTheSchema) {
  const std::vector<BadProgram> programs = {
      {"no graph", [](json& d) { d["graph_module"].erase("graph"); }, "no field 'graph'"},
      {"nodes", [](json& d) { graphOf(d)["nodes"] = 3; }, "expected a list"},
      {"unknown tensor", withArgument(tensorArgument("zz")), "no tensor 'zz'"},
      {"two kinds", withArgument({{"as_int", 1}, {"as_float", 1.0}}), "expected one field"},
      {"kind", withArgument({{"as_graph", {{"name", "g"}}}}), "kind 'as_graph'"},
      {"device", withArgument({{"as_device", {{"type", "xpu"}}}}), "expected cpu or cuda"},
      {"negative size",
       [](json& d) {
         graphOf(d)["tensor_values"]["mm"]["sizes"][0] = {{"as_int", -1}};
       },
       "negative number in sizes"},
      {"overflow",
       [](json& d) {
         for (int i : {0, 1}) {
           graphOf(d)["tensor_values"]["mm"]["sizes"][i] = {{"as_int", int64_t{1} << 40}};
         }
       },
       "that no tensor has"},
      {"strides", [](json& d) { graphOf(d)["tensor_values"]["mm"]["strides"].erase(0); },
       "that no tensor has"},
      {"sparse", [](json& d) { graphOf(d)["tensor_values"]["mm"]["layout"] = 1; },
       "found layout sparse_coo, expected strided"},
      {"inputs", [](json& d) { graphOf(d)["inputs"].erase(0); }, "7 input_specs, expected 6"},
      {"token",
       [](json& d) {
         d["graph_module"]["signature"]["input_specs"][0] = {{"token", {{"arg", {{"name", "t"}}}}}};
       },
       "kind 'token'"},
      {"functional",
       [](json& d) {
         d["graph_module"]["signature"]["output_specs"][0] = {
             {"buffer_mutation", {{"arg", {{"name", "mm"}}}, {"buffer_name", "b"}}}};
       },
       "without functionalising"}};
  for (const BadProgram& program : programs) {
    EXPECT_NE(refuse(program.change).text.find(program.expected), std::string::npos)
        << program.what << ": " << refuse(program.change).text;
  }
}

TEST(Pt2Json, GivesLineAndColumnOfTextThatIsNoJson) {
  ir::Expected<Pt2Program> program = readPt2Program("{\n  \"a\": 1,\n  oops\n}", "m.json");
  ASSERT_FALSE(program);
  const ir::PlanError error = ir::takePayload(program.takeError());
  EXPECT_EQ(error.location().line, 3);
  EXPECT_EQ(error.location().column, 3);
}

TEST(Pt2Json, RefusesBottomlessNesting) {
  const std::string deep(1 << 20, '[');
  ir::Expected<Pt2Program> program = readPt2Program(deep, "m.json");
  ASSERT_FALSE(program);
  EXPECT_NE(ir::describe(program.takeError()).find("nested deeper"), std::string::npos);
}

TEST(Pt2Json, ReadsTheModulePath) {
  const auto stack = [](const char* text) {
    return [text](json& d) { graphOf(d)["nodes"][1]["metadata"]["nn_module_stack"] = text; };
  };
  EXPECT_EQ(readChanged(stack("L__self__,,M")).nodes[1].modulePath, "");
  EXPECT_EQ(readChanged(stack("L__self__,,M;L_h,h.3,Block;L_f,h.3.mlp,Mlp")).nodes[1].modulePath,
            "h.3.mlp");
}

TEST(Pt2Json, ReadsASideFileInTheOrderOfItsGroups) {
  const runtime::Pt2SideFile side =
      llvm::cantFail(runtime::readPt2SideFile(smallStepSideFile(), "s.json"));
  ASSERT_EQ(side.groups.size(), 6U);
  EXPECT_EQ(side.groups[0].name, "train");
  EXPECT_EQ(side.groups[0].names, std::vector<std::string>{"net.fc.weight"});
  EXPECT_EQ(side.groups[5].name, "batch");
  EXPECT_EQ(side.groups[5].count, 2);
  for (const char* text : {"{}", R"({"input_groups": []})", R"({"input_groups": {"train": -1}})",
                           R"({"input_groups": {"train": 2}, "names": {"train": ["a"]}})"}) {
    ir::Expected<runtime::Pt2SideFile> bad = runtime::readPt2SideFile(text, "s.json");
    ASSERT_FALSE(bad) << text;
    EXPECT_EQ(ir::takePayload(bad.takeError()).location().file, "s.json");
  }
}

}  // namespace
}  // namespace stowage::tests
