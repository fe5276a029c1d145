// SPDX-License-Identifier: Apache-2.0
#include "planner/report/explain.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "planner/evaluate/copy_schedule.h"
#include "planner/evaluate/expand.h"
#include "planner/evaluate/launch_loads.h"
#include "planner/report/holder_groups.h"

namespace stowage::planner {

namespace {

constexpr size_t kMostHolders = 10;

bool isThereAt(const LiveRange& range, int32_t launch, int32_t period) {
  if (range.isHost) return false;
  if (range.always) return true;
  if (range.begin < 0) return false;
  const bool now = range.begin <= launch && launch <= range.end;
  const bool sinceLastStep = range.begin <= launch + period && launch + period <= range.end;
  return now || sinceLastStep;
}

bool uses(const ir::Graph& graph, ir::NodeId node, ir::StorageId storage) {
  return llvm::any_of(graph.accesses(node),
                      [&](const ir::Access& access) { return access.storage == storage; });
}

void keepLargest(std::vector<ir::Infeasible::Holder>& holders) {
  std::sort(holders.begin(), holders.end(),
            [](const ir::Infeasible::Holder& a, const ir::Infeasible::Holder& b) {
              return a.bytes != b.bytes ? a.bytes > b.bytes : a.storage < b.storage;
            });
  if (holders.size() > kMostHolders) holders.resize(kMostHolders);
}

}  // namespace

ir::Expected<PeakHolders> findPeakHolders(const GapTable& table, const Actions& actions) {
  ir::Expected<Expansion> expansion = expand(table, actions);
  if (!expansion) return expansion.takeError();
  const std::vector<int64_t> loads = computeLoads(table, *expansion);
  if (loads.size() < 2) return PeakHolders{};
  const auto highest = std::max_element(loads.begin() + 1, loads.end());
  const auto launch = static_cast<int32_t>(highest - loads.begin());
  PeakHolders peak{.node = expansion->launches[static_cast<size_t>(launch)].node,
                   .bytes = Bytes(*highest + table.reservedBytes())};
  const ir::Graph& graph = table.problem().graph;
  if (table.reservedBytes() > 0) {
    peak.holders.push_back({"reserved for libraries", Bytes(table.reservedBytes())});
  }
  if (peak.node.isValid() && table.temporary(peak.node.index()) > 0) {
    peak.holders.push_back({"temporaries of the node", Bytes(table.temporary(peak.node.index()))});
  }
  const std::vector<ir::Infeasible::Holder> others = peak.holders;
  std::vector<ir::StorageId> storages;
  for (const LiveRange& range : expansion->liveRanges) {
    if (!isThereAt(range, launch, expansion->launchCount())) continue;
    const bool isTaken = range.takenBy >= 0 && range.end == launch;  // counted for its successor
    if (!isTaken) storages.push_back(range.storage);
    const Bytes bytes(table.bytes(range.storage));
    peak.holders.push_back({graph.storage(range.storage).name, bytes});
    if (!peak.node.isValid() || !uses(graph, peak.node, range.storage)) peak.beside += bytes;
  }
  peak.groups = groupHolders(graph, storages, others, table.problem().target.alignBytes);
  keepLargest(peak.holders);
  return peak;
}

std::vector<ir::Infeasible::Holder> findHostHolders(const GapTable& table, const Actions& actions,
                                                    Bytes prefetchLimit) {
  std::vector<ir::Infeasible::Holder> holders;
  ir::Expected<Timetable> timetable = evaluateActions(table, actions, prefetchLimit.value());
  if (!timetable) {
    llvm::consumeError(timetable.takeError());
    return holders;
  }
  for (const ir::Residency& residency : timetable->residencies) {
    if (residency.space != ir::Space::kHost) continue;
    holders.push_back({table.problem().graph.storage(residency.storage).name,
                       Bytes(table.bytes(residency.storage))});
  }
  keepLargest(holders);
  return holders;
}

}  // namespace stowage::planner
