// SPDX-License-Identifier: Apache-2.0
#include "tools/comparison.h"

#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>

#include <map>
#include <utility>

#include "ir/op_table.h"

namespace stowage::tools {

namespace {

std::vector<std::string> opsThatDoNotRepeat(const ir::Graph& graph) {
  std::map<std::string, int> counts;
  for (const ir::Node& node : graph.nodes()) {
    if (!ir::repeatsItsBits(ir::lookUpOp(node.op), /*deterministicMode=*/false)) ++counts[node.op];
  }
  std::vector<std::string> ops;
  for (const auto& [op, count] : counts) ops.push_back(fmt::format("{} ({})", op, count));
  return ops;
}

}  // namespace

ir::Expected<Comparison> compareWithUnplanned(const ir::Graph& graph, const TrainingRecord& planned,
                                              const UnplannedTraining& train) {
  ir::Expected<TrainingRecord> eager = train();
  if (!eager) return eager.takeError();
  std::vector<std::string> differences = findDifferences(*eager, planned);
  Comparison comparison;
  if (!graph.provenance().deterministic) {
    ir::Expected<TrainingRecord> again = train();
    if (!again) return again.takeError();
    const std::vector<std::string> unrepeated = findDifferences(*eager, *again);
    llvm::erase_if(differences,
                   [&](const std::string& name) { return llvm::is_contained(unrepeated, name); });
    const size_t compared = eager->reports.size() + eager->state.size();
    comparison.repeated = {.compared = compared,
                           .equal = compared - unrepeated.size(),
                           .ops = opsThatDoNotRepeat(graph)};
  }
  if (!differences.empty()) comparison.difference = differences.front();
  comparison.eager = std::move(*eager);
  return comparison;
}

}  // namespace stowage::tools
