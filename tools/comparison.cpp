// SPDX-License-Identifier: Apache-2.0
#include "tools/comparison.h"

#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringSet.h>

#include <map>
#include <utility>

#include "ir/op_table.h"

namespace stowage::tools {

namespace {

/// Two trainings may agree by chance, in a loss for instance, where ops do not repeat their bits.
constexpr int kMostTrainings = 8;

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
    const std::vector<std::string> ops = opsThatDoNotRepeat(graph);
    const int most = ops.empty() ? 2 : kMostTrainings;
    llvm::StringSet<> unrepeated;
    int trainings = 1;
    while (trainings < 2 || (!differences.empty() && trainings < most)) {
      ir::Expected<TrainingRecord> again = train();
      if (!again) return again.takeError();
      ++trainings;
      for (const std::string& name : findDifferences(*eager, *again)) unrepeated.insert(name);
      llvm::erase_if(differences,
                     [&](const std::string& name) { return unrepeated.contains(name); });
    }
    const size_t compared = eager->reports.size() + eager->state.size();
    comparison.repeated = {.trainings = trainings,
                           .compared = compared,
                           .equal = compared - unrepeated.size(),
                           .ops = ops};
  }
  if (!differences.empty()) comparison.difference = differences.front();
  comparison.eager = std::move(*eager);
  return comparison;
}

}  // namespace stowage::tools
