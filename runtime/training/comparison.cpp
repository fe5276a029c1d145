// SPDX-License-Identifier: Apache-2.0
#include "runtime/training/comparison.h"

#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringSet.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "ir/graph/op_table.h"

namespace stowage::runtime {

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

/// Losses that no two trainings repeat cannot be compared by bits: how far apart are they?
class LossRanges {
 public:
  explicit LossRanges(const TrainingRecord& first) {
    for (const double loss : first.losses) ranges_.push_back({loss, loss});
  }
  void add(const TrainingRecord& training) {
    for (size_t i = 0; i < std::min(ranges_.size(), training.losses.size()); ++i) {
      ranges_[i].low = std::min(ranges_[i].low, training.losses[i]);
      ranges_[i].high = std::max(ranges_[i].high, training.losses[i]);
    }
  }
  /// The first loss that is further from theirs than ten times what they are apart; "" if none is.
  std::string findFar(const TrainingRecord& planned) const {
    constexpr double kFar = 10;
    for (size_t i = 0; i < std::min(ranges_.size(), planned.losses.size()); ++i) {
      const auto [low, high] = ranges_[i];
      const double room = kFar * (high - low);
      const double loss = planned.losses[i];
      if (high == low || std::isnan(room) || (loss >= low - room && loss <= high + room)) continue;
      return fmt::format("{} is {:.6g}, far from {:.6g} to {:.6g}", planned.lossName(i), loss, low,
                         high);
    }
    return "";
  }

 private:
  struct Range {
    double low;
    double high;
  };
  std::vector<Range> ranges_;
};

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
    LossRanges losses(*eager);
    llvm::StringSet<> unrepeated;
    std::string far;
    int trainings = 1;
    while (trainings < 2 || (trainings < most && (!differences.empty() || !far.empty()))) {
      ir::Expected<TrainingRecord> again = train();
      if (!again) return again.takeError();
      ++trainings;
      for (const std::string& name : findDifferences(*eager, *again)) unrepeated.insert(name);
      llvm::erase_if(differences,
                     [&](const std::string& name) { return unrepeated.contains(name); });
      losses.add(*again);
      far = losses.findFar(planned);
    }
    const size_t compared = eager->reports.size() + eager->state.size();
    comparison.repeated = {.trainings = trainings,
                           .compared = compared,
                           .equal = compared - std::min<size_t>(unrepeated.size(), compared),
                           .ops = ops};
    comparison.difference = far;
  }
  if (!differences.empty()) comparison.difference = differences.front();
  comparison.eager = std::move(*eager);
  return comparison;
}

}  // namespace stowage::runtime
