// SPDX-License-Identifier: Apache-2.0
#include "planner/explain.h"

#include <algorithm>

#include "planner/copy_schedule.h"
#include "planner/expand.h"

namespace stowage::planner {

namespace {

constexpr size_t kMostHolders = 10;

bool isThereAt(const Stay& stay, int32_t step, int32_t period) {
  if (stay.isHost) return false;
  if (stay.always) return true;
  if (stay.begin < 0) return false;
  const bool now = stay.begin <= step && step <= stay.end;
  const bool sinceLastStep = stay.begin <= step + period && step + period <= stay.end;
  return now || sinceLastStep;
}

}  // namespace

ir::Expected<PeakHolders> findPeakHolders(const GapTable& table, const Actions& actions) {
  ir::Expected<Expansion> expansion = expand(table, actions);
  if (!expansion) return expansion.takeError();
  const std::vector<int64_t> loads = computeLoads(table, *expansion);
  if (loads.size() < 2) return PeakHolders{};
  const auto highest = std::max_element(loads.begin() + 1, loads.end());
  const auto step = static_cast<int32_t>(highest - loads.begin());
  PeakHolders peak{.node = expansion->steps[static_cast<size_t>(step)].node,
                   .bytes = Bytes(*highest + table.reservedBytes())};
  const ir::Graph& graph = table.problem().graph;
  for (const Stay& stay : expansion->stays) {
    if (!isThereAt(stay, step, expansion->stepCount())) continue;
    peak.holders.push_back({graph.storage(stay.storage).name, Bytes(table.bytes(stay.storage))});
  }
  std::sort(peak.holders.begin(), peak.holders.end(),
            [](const ir::Infeasible::Holder& a, const ir::Infeasible::Holder& b) {
              return a.bytes != b.bytes ? a.bytes > b.bytes : a.storage < b.storage;
            });
  if (peak.holders.size() > kMostHolders) peak.holders.resize(kMostHolders);
  return peak;
}

}  // namespace stowage::planner
