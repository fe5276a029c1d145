// SPDX-License-Identifier: Apache-2.0
#include "tests/support/small_pt2.h"

#include <caffe2/serialize/inline_container.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

namespace stowage::tests {
namespace {

using nlohmann::json;

constexpr int kFloat = 7;  // of the archive's schema

json sizesOf(const std::vector<int>& numbers) {
  json list = json::array();
  for (const int number : numbers) list.push_back({{"as_int", number}});
  return list;
}

json named(const std::string& name) { return {{"name", name}}; }

json tensors(const std::vector<std::string>& names) {
  json list = json::array();
  for (const std::string& name : names) list.push_back(named(name));
  return {{"as_tensors", list}};
}

json userSpec(const std::string& kind, const std::string& name) {
  return {{kind, {{"arg", tensorArgument(name)}}}};
}

json smallNodes() {
  const auto t = [](const char* name) { return tensorArgument(name); };
  json nodes = json::array();
  const auto add = [&](const char* target, json inputs, json outputs) {
    nodes.push_back(programNode(target, std::move(inputs), std::move(outputs)));
  };
  add("aten.detach.default", {{"self", t("a_0")}}, {t("detach")});
  add("aten.mm.default", {{"self", t("a_5")}, {"mat2", t("detach")}}, {t("mm")});
  add("aten.mul_.Tensor", {{"self", t("mm")}, {"other", {{"as_float", 0.5}}}}, {t("mul_")});
  add("aten.empty_like.default", {{"self", t("mul_")}}, {t("empty_like")});
  add("aten.uniform_.default", {{"self", t("empty_like")}}, {t("uniform_")});
  add("aten.add.Tensor", {{"self", t("mul_")}, {"other", t("uniform_")}}, {t("add")});
  add("aten.sub.Tensor", {{"self", t("add")}, {"other", t("a_6")}}, {t("sub")});
  add("aten.mul.Tensor", {{"self", t("sub")}, {"other", t("sub")}}, {t("mul")});
  add("aten.sum.default", {{"self", t("mul")}}, {t("sum_1")});
  add("aten.mul.Tensor", {{"self", t("sub")}, {"other", {{"as_int", 1}}}}, {t("mul_1")});
  add("aten.t.default", {{"self", t("a_5")}}, {t("t")});
  add("aten.mm.default", {{"self", t("t")}, {"mat2", t("mul_1")}}, {t("mm_1")});
  add("aten._foreach_add_.Scalar", {{"self", tensors({"a_3"})}, {"scalar", {{"as_int", 1}}}},
      json::array());
  add("aten._fused_adamw_.tensor_lr",
      {{"self", tensors({"a_0"})},
       {"grads", tensors({"mm_1"})},
       {"exp_avgs", tensors({"a_1"})},
       {"exp_avg_sqs", tensors({"a_2"})},
       {"max_exp_avg_sqs", tensors({})},
       {"state_steps", tensors({"a_3"})},
       {"lr", t("a_4")},
       {"beta1", {{"as_float", 0.9}}},
       {"beta2", {{"as_float", 0.95}}},
       {"weight_decay", {{"as_float", 0.1}}},
       {"eps", {{"as_float", 1e-8}}},
       {"amsgrad", {{"as_bool", false}}},
       {"maximize", {{"as_bool", false}}}},
      json::array());
  add("aten.detach.default", {{"self", t("sum_1")}}, {t("detach_1")});
  return nodes;
}

json smallTensors() {
  const json wide = tensorMeta(kFloat, {4, 3}, {3, 1});
  const json weight = tensorMeta(kFloat, {3, 2}, {2, 1});
  const json hidden = tensorMeta(kFloat, {4, 2}, {2, 1});
  const json scalar = tensorMeta(kFloat, {}, {});
  json values = {{"a_5", wide}, {"t", tensorMeta(kFloat, {3, 4}, {1, 3})}};
  for (const char* name : {"a_0", "a_1", "a_2", "detach", "mm_1"}) values[name] = weight;
  for (const char* name : {"a_3", "a_4", "sum_1", "detach_1"}) values[name] = scalar;
  for (const char* name :
       {"a_6", "mm", "mul_", "empty_like", "uniform_", "add", "sub", "mul", "mul_1"}) {
    values[name] = hidden;
  }
  return values;
}

}  // namespace

json tensorMeta(int dtype, const std::vector<int>& sizes, const std::vector<int>& strides,
                int offset) {
  return {{"dtype", dtype},
          {"sizes", sizesOf(sizes)},
          {"requires_grad", false},
          {"device", {{"type", "cpu"}, {"index", nullptr}}},
          {"strides", sizesOf(strides)},
          {"storage_offset", {{"as_int", offset}}},
          {"layout", 7}};
}

json tensorArgument(const std::string& name) { return {{"as_tensor", named(name)}}; }

json programNode(const std::string& target, json inputs, json outputs) {
  json arguments = json::array();
  for (const auto& [name, value] : inputs.items()) {
    arguments.push_back({{"name", name}, {"arg", value}, {"kind", 1}});
  }
  const std::string op = target.substr(target.find('.') + 1);
  return {{"target", "torch.ops." + target},
          {"inputs", arguments},
          {"outputs", std::move(outputs)},
          {"metadata", json::object()},
          {"name", op.substr(0, op.find('.'))}};
}

json smallStepProgram() {
  json inputs = json::array(), inputSpecs = json::array();
  for (int i = 0; i < 7; ++i) {
    const std::string name = "a_" + std::to_string(i);
    inputs.push_back(tensorArgument(name));
    inputSpecs.push_back(userSpec("user_input", name));
  }
  const json graph = {{"inputs", inputs},
                      {"outputs", {tensorArgument("detach_1")}},
                      {"nodes", smallNodes()},
                      {"tensor_values", smallTensors()},
                      {"sym_int_values", json::object()},
                      {"sym_bool_values", json::object()}};
  const json signature = {{"input_specs", inputSpecs},
                          {"output_specs", {userSpec("user_output", "detach_1")}}};
  return {{"graph_module", {{"graph", graph}, {"signature", signature}}},
          {"schema_version", {{"major", 8}, {"minor", 17}}},
          {"torch_version", "2.11.0"},
          {"opset_version", {{"aten", 10}}}};
}

std::string smallStepSideFile() {
  return R"({"name": "small", "input_groups": {"train": 1, "exp_avg": 1, "exp_avg_sq": 1, "step": 1,
             "lr": 1, "batch": 2}, "names": {"train": ["net.fc.weight"]}})";
}

std::string packZip(const std::vector<ZipSource>& sources) {
  std::string archive;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* bytes, size_t count) {
    archive.append(static_cast<const char*>(bytes), count);
    return count;
  });
  for (const ZipSource& source : sources) {
    writer.writeRecord(source.name, source.bytes.data(), source.bytes.size(), source.compress);
  }
  writer.writeEndOfFile();
  return archive;
}

std::string packPt2(const std::string& program) {
  return packZip(
      {{"models/model.json", program}, {"archive_format", "pt2"}, {"archive_version", "0"}});
}

std::string temporaryPath(const std::string& name) {
  // Tests run side by side, each in a process of its own.
  struct Folder {
    std::string path = testing::TempDir() + "stowage_pt2." + std::to_string(getpid()) + "/";
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() { std::filesystem::remove_all(path); }
  };
  static const Folder kFolder;
  return kFolder.path + name;
}

std::string writeTemporaryFile(const std::string& name, const std::string& bytes) {
  std::string path = temporaryPath(name);
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

std::string writePt2(const std::string& name, const std::string& archive,
                     const std::string& sideFile) {
  std::filesystem::remove(temporaryPath(name + ".json"));
  if (!sideFile.empty()) writeTemporaryFile(name + ".json", sideFile);
  return writeTemporaryFile(name + ".pt2", archive);
}

}  // namespace stowage::tests
