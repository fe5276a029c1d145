// SPDX-License-Identifier: Apache-2.0
//
// Prints what this program's libtorch says of each of its ops, and what we say: a JSON object, one
// op a line. compare_ops.py reads two of them.
//
//     stowage-op-list > ops-2.15.0.json
#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "ir/graph/op_table.h"
#include "runtime/capture/ops/op_facts.h"
#include "runtime/torch/torch_version.h"

namespace {

using stowage::runtime::OpFacts;
using stowage::runtime::ResultsBy;

constexpr std::array<std::pair<c10::DispatchKey, const char*>, 5> kKernels = {{
    {c10::DispatchKey::CPU, "cpu"},
    {c10::DispatchKey::Meta, "meta"},
    {c10::DispatchKey::CompositeImplicitAutograd, "composite"},
    {c10::DispatchKey::CompositeExplicitAutograd, "composite_explicit"},
    {c10::DispatchKey::CompositeExplicitAutogradNonFunctional, "composite_structured"},
}};

const char* nameOf(ResultsBy results) {
  switch (results) {
    case ResultsBy::kRule:
      return "rule";
    case ResultsBy::kMeta:
      return "meta";
    case ResultsBy::kComposite:
      return "composite";
    case ResultsBy::kNothing:
      return "nothing";
  }
  return "nothing";
}

/// Arguments and results, as libtorch writes them.
std::string schemaOf(const c10::OperatorHandle& op) {
  std::ostringstream text;
  text << op.schema();
  return text.str();
}

nlohmann::ordered_json describe(const c10::OperatorHandle& op) {
  const OpFacts facts(op);
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const auto& [key, name] : kKernels) {
    if (op.hasKernelForDispatchKey(key)) kernels.push_back(name);
  }
  nlohmann::ordered_json ours = nlohmann::ordered_json::array();
  if (stowage::ir::lookUpOp(facts.name).known) ours.push_back("table");
  if (facts.rule != nullptr) ours.push_back("shape rule");
  if (facts.operandRule != nullptr) ours.push_back("operand rule");
  return {{"schema", schemaOf(op)},
          {"kernels", std::move(kernels)},
          {"results_by", nameOf(facts.resultsBy)},
          {"ours", std::move(ours)}};
}

}  // namespace

int main() {
  std::map<std::string, std::string> lines;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.getNamespace() != "aten") continue;
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (op) lines.emplace(OpFacts(*op).name, describe(*op).dump());
  }
  std::cout << "{\"torch\": \"" << stowage::runtime::torchVersion() << "\", \"ops\": {\n";
  const char* separator = "";
  for (const auto& [name, line] : lines) {
    std::cout << separator << nlohmann::json(name).dump() << ": " << line;
    separator = ",\n";
  }
  std::cout << "\n}}\n";
  return std::cout.good() ? 0 : 4;
}
