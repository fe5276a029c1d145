// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/g10_step.h"

#include <zlib.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/graph/liveness.h"

namespace stowage::tools {

namespace {

using Json = nlohmann::json;

constexpr double kCyclesPerNanosecond = 1.2;
constexpr int64_t kLinkBytesPerSecond = 15'754'000'000;

ir::Expected<std::string> readGzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return ir::makeError(ir::ErrorCode::kIo, "could not open " + path);
  std::string text;
  char buffer[1 << 16];
  int got = 0;
  while ((got = gzread(file, buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<size_t>(got));
  }
  gzclose(file);
  if (got < 0) return ir::makeError(ir::ErrorCode::kIo, "could not unpack " + path);
  return text;
}

class Builder {
 public:
  explicit Builder(const Json& json) : json_(json), builder_(json["name"].get<std::string>()) {}

  ir::Graph build() {
    for (const Json& tensor : json_["tensors"]) addTensor(tensor);
    for (const Json& kernel : json_["kernels"]) addKernel(kernel);
    return std::move(builder_).finish();
  }

 private:
  void addTensor(const Json& tensor) {
    const int64_t id = tensor[0];
    const bool isWeight = tensor[2].get<int>() != 0;
    const std::string name = (isWeight ? "w" : "t") + std::to_string(id);
    ir::TensorType type{
        .dtype = ir::DType::kU8, .sizes = {tensor[1].get<int64_t>()}, .strides = {1}};
    const ir::StorageId storage =
        builder_.addStorage({.name = name,
                             .bytes = type.extentBytes(),
                             .role = isWeight ? ir::Role::kParameter : ir::Role::kActivation,
                             .persistent = isWeight});
    values_[id] = builder_.addValue({.name = name, .storage = storage, .type = std::move(type)});
    if (isWeight) made_.insert(id);
  }

  void addKernel(const Json& kernel) {
    ir::Node node{.op = "aten.mm.default"};
    for (const Json& id : kernel[3]) {
      // What nobody made comes from outside, anew in every step.
      const ir::ValueId value = values_.at(id);
      if (made_.insert(id.get<int64_t>()).second) {
        builder_.storage(builder_.value(value).storage).role = ir::Role::kInput;
      }
    }
    for (const Json& id : kernel[3]) node.args.push_back(ir::ValueArg{values_.at(id)});
    for (const Json& id : kernel[4]) {
      const ir::ValueId value = values_.at(id);
      node.results.push_back(value);
      if (made_.insert(id.get<int64_t>()).second) continue;
      // Made before: changed in place.
      node.args.push_back(ir::ValueArg{value});
      node.writes.push_back({value, false});
    }
    builder_.addNode(std::move(node));
  }

  const Json& json_;
  ir::GraphBuilder builder_;
  std::map<int64_t, ir::ValueId> values_;
  std::set<int64_t> made_;
};

}  // namespace

ir::Expected<G10Step> readG10Step(const std::string& path) {
  ir::Expected<std::string> text = readGzip(path);
  if (!text) return text.takeError();
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.contains("tensors") || !json.contains("kernels")) {
    return ir::makeError(ir::ErrorCode::kParse,
                         path + ": expected a step with tensors and kernels");
  }
  G10Step step{.name = json["name"].get<std::string>(),
               .budget = Bytes(json["gpu_mem_bytes"].get<int64_t>()),
               .graph = Builder(json).build(),
               .target = {},
               .costs = {}};
  step.target.profile = "g10";
  const ir::LinkRate link{.bandwidth = BytesPerSecond(kLinkBytesPerSecond),
                          .latency = Nanoseconds()};
  step.costs.links = {.deviceToHost = link, .hostToDevice = link};
  for (const Json& kernel : json["kernels"]) {
    ir::OpCost cost;
    cost.work = Nanoseconds(static_cast<int64_t>(kernel[2].get<double>() / kCyclesPerNanosecond));
    step.costs.nodes.push_back(std::move(cost));
  }
  return step;
}

planner::Problem makeG10Problem(const G10Step& step, bool recompute) {
  return {.graph = step.graph,
          .target = step.target,
          .costs = step.costs,
          .allowed = {.recompute = recompute},
          .limits = {},
          .pins = {},
          .pinnedRows = {},
          .graphMode = ir::GraphMode::kNone,
          .lives = ir::computeLives(step.graph)};
}

}  // namespace stowage::tools
