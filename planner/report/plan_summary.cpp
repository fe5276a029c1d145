// SPDX-License-Identifier: Apache-2.0
#include "planner/report/plan_summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "ir/graph/collectives.h"

namespace stowage::planner {

namespace {

using Json = nlohmann::ordered_json;

/// "offload 3 activations and 12 states, recompute 4, reuse in place 7"; "nothing to do" when all
/// is kept.
std::string describeChoices(const PlanCounts& counts) {
  std::string text;
  const auto add = [&](int64_t count, const std::string& what) {
    if (count == 0) return;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", what, count);
  };
  add(counts.offloadedActivations, "offload");
  add(counts.recomputed, "recompute");
  add(counts.reusedInPlace, "reuse in place");
  add(counts.offloadedStates, "offload states");
  add(counts.toDisk, "to disk");
  return text.empty() ? "everything stays on the device" : text;
}

/// The first line of an answer whose times are estimates. Temporaries are estimates as well.
void printEstimate(const SummaryCosts& costs, llvm::raw_ostream& os) {
  if (costs.source != ir::CostSource::kRoofline) return;
  os << "estimated  " << costs.estimate << " ('stowage profile' measures)\n";
}

const char* costsRemark(const SummaryCosts& costs) {
  return costs.source == ir::CostSource::kGiven ? "  (times as given by hand)" : "";
}

/// Bytes that are alive at once, wherever they are: an arena for all of them may take more.
std::string unplannedText(const PlanSummary& summary) {
  if (summary.keepAll.value() <= 0) return "";
  return " (unplanned: " + formatBytes(summary.keepAll) + " at once)";
}

/// A line of its own; nothing on devices that are no GPU.
void printOutside(const PlanSummary& summary, llvm::raw_ostream& os) {
  if (summary.outside.value() <= 0) return;
  os << "           beside it " << formatBytes(summary.outside)
     << " of the device for context, kernels and libraries ("
     << (summary.outsideMeasured ? "measured" : "estimated") << ")\n";
}

}  // namespace

std::string formatExcess(Nanoseconds value, Nanoseconds base, bool sign) {
  if (base.value() <= 0) return "";
  const double percent =
      (static_cast<double>(value.value()) / static_cast<double>(base.value()) - 1) * 100;
  return sign ? fmt::format("{:+.1f} %", percent) : fmt::format("{:.1f} %", percent);
}

namespace {

void countUpdates(const ir::Graph& graph, PlanCounts& counts) {
  std::set<ir::StorageId> updated;
  std::set<ir::StorageId> deferred;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      const bool isParameter = graph.storage(access.storage).role == ir::Role::kParameter;
      if (!isParameter || !access.writes()) continue;
      updated.insert(access.storage);
      if (graph.nodes()[i].phase == ir::Phase::kDeferred) deferred.insert(access.storage);
    }
  }
  counts.updatedParameters = static_cast<int64_t>(updated.size());
  counts.deferredParameters = static_cast<int64_t>(deferred.size());
}

void countCopy(const ir::Graph& graph, const ir::Schedule& schedule, const ir::Command& command,
               PlanCounts& counts) {
  const Bytes bytes = graph.storage(schedule.residency(command.from).storage).bytes;
  ++counts.copies;
  if (command.stream == ir::Stream::kDiskWrite) counts.diskWritten += bytes;
  if (command.stream == ir::Stream::kDiskRead) counts.diskRead += bytes;
}

}  // namespace

PlanCounts countPlan(const ir::Graph& graph, const ir::Schedule& schedule) {
  PlanCounts counts;
  std::set<ir::StorageId> states;
  std::set<ir::StorageId> activations;
  std::set<ir::StorageId> left;  // the device in some gap
  for (const ir::DecisionRow& row : schedule.decisions) {
    const ir::Storage& storage = graph.storage(row.storage);
    if (row.action == ir::GapAction::kRecompute) ++counts.recomputed;
    if (row.action == ir::GapAction::kDisk) ++counts.toDisk;
    if (row.action == ir::GapAction::kHost || row.action == ir::GapAction::kDisk) {
      left.insert(row.storage);
    }
    if (row.action == ir::GapAction::kHost)
      (ir::isState(storage) ? states : activations).insert(row.storage);
  }
  counts.offloadedStates = static_cast<int64_t>(states.size());
  counts.offloadedActivations = static_cast<int64_t>(activations.size());
  for (size_t i = 0; i < graph.storages().size(); ++i) {
    const ir::Storage& storage = graph.storages()[i];
    const bool isOnDevice = storage.home == ir::Space::kDevice;
    if (storage.role == ir::Role::kPending) counts.pending += storage.bytes;
    if (ir::isState(storage) && isOnDevice && !left.contains(ir::StorageId(i))) {
      counts.resident = counts.resident + storage.bytes;
    }
  }
  for (const ir::Command& command : schedule.commands) {
    if (command.kind == ir::CommandKind::kCopy) countCopy(graph, schedule, command, counts);
    if (command.recompute > 0) ++counts.recomputedLaunches;
    if (command.stream == ir::Stream::kCollective) {
      counts.received += ir::receivedBytes(graph, graph.node(command.node));
    }
    if (command.takes.isValid()) ++counts.reusedInPlace;
  }
  countUpdates(graph, counts);
  return counts;
}

Bytes updatedBytes(const ir::Graph& graph, bool onHost) {
  std::set<ir::StorageId> updated;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (onHost && !graph.nodes()[i].onHost) continue;
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      const bool isParameter = graph.storage(access.storage).role == ir::Role::kParameter;
      if (isParameter && access.writes()) updated.insert(access.storage);
    }
  }
  Bytes bytes;
  for (const ir::StorageId id : updated) bytes += graph.storage(id).bytes;
  return bytes;
}

namespace {

void printDeferred(const PlanCounts& counts, llvm::raw_ostream& os) {
  if (counts.deferredParameters == 0) return;
  os << "updates    of " << counts.deferredParameters << " of " << counts.updatedParameters
     << " parameters run in the next step, just before they are read; "
     << formatBytes(counts.pending) << " of gradients wait\n";
}

void printDisk(const ir::Schedule& schedule, const PlanCounts& counts, const Stalls& stalls,
               llvm::raw_ostream& os) {
  const Bytes disk = schedule.arenaBytes(ir::Space::kDisk);
  if (disk.value() == 0) return;
  os << "disk       writes " << formatBytes(counts.diskWritten) << ", reads "
     << formatBytes(counts.diskRead) << " per step, holds " << formatBytes(disk)
     << "; compute waits " << formatDuration(stalls.disk) << " for it\n";
}

void printRanks(const PlanSummary& summary, const PlanCounts& counts, llvm::raw_ostream& os) {
  if (summary.graph.ranks() < 2) return;
  os << "ranks      each of " << summary.graph.ranks() << " receives "
     << formatBytes(counts.received) << " per step; compute waits "
     << formatDuration(summary.stalls.ranks) << " for it\n";
}

/// What the step's graph has that the captured one has not.
void printArrangement(const PlanSummary& summary, llvm::raw_ostream& os) {
  if (summary.rowBlocks > 1) os << "row blocks " << summary.rowBlocks << '\n';
  const Bytes onHost = updatedBytes(summary.graph, /*onHost=*/true);
  if (onHost == Bytes(0)) return;
  os << "on host    updates of " << formatBytes(onHost) << " of "
     << formatBytes(updatedBytes(summary.graph, /*onHost=*/false))
     << " of parameters, with the bits of the host's kernels\n";
}

}  // namespace

void printPlanSummary(const PlanSummary& summary, llvm::raw_ostream& os) {
  const ir::Prediction& claim = summary.schedule.predicted;
  printEstimate(summary.costs, os);
  if (!summary.planNeeded) {
    os << "fits       as it is: laid out in " << formatBytes(claim.peakBytes)
       << " of the budget of " << formatBytes(summary.budget) << unplannedText(summary)
       << ", nothing has to be offloaded or recomputed, " << formatDuration(claim.stepTime)
       << " a step predicted" << costsRemark(summary.costs) << '\n';
    printOutside(summary, os);
    printRanks(summary, countPlan(summary.graph, summary.schedule), os);
    printArrangement(summary, os);
    return;
  }
  os << "fits       " << formatBytes(claim.peakBytes) << " of the budget of "
     << formatBytes(summary.budget) << unplannedText(summary) << '\n';
  printOutside(summary, os);
  const PlanCounts counts = countPlan(summary.graph, summary.schedule);
  os << "planned    " << describeChoices(counts) << '\n';
  printDeferred(counts, os);
  os << "step       " << formatDuration(claim.stepTime) << " predicted, ";
  // Costs may say that nothing takes time.
  const Nanoseconds unlimited =
      summary.unlimited.value() > 0 ? summary.unlimited : claim.computeTime;
  if (unlimited.value() > 0) os << formatExcess(claim.stepTime, unlimited, /*sign=*/true) << " ";
  os << "against unlimited memory (" << formatDuration(unlimited) << ")"
     << costsRemark(summary.costs) << '\n';
  os << "bound      " << formatDuration(claim.bound) << ": at most "
     << formatExcess(claim.stepTime, claim.bound, /*sign=*/false)
     << " from the best schedule of these orders\n";
  os << "moves      offloads " << formatBytes(claim.bytesOut) << ", prefetches "
     << formatBytes(claim.bytesIn) << " per step; host memory " << formatBytes(claim.hostPeakBytes)
     << '\n';
  printDisk(summary.schedule, counts, summary.stalls, os);
  printRanks(summary, counts, os);
  printArrangement(summary, os);
}

Json planSummaryJson(const PlanSummary& summary) {
  const ir::Prediction& claim = summary.schedule.predicted;
  const PlanCounts counts = countPlan(summary.graph, summary.schedule);
  Json json = Json::object();
  if (summary.costs.source == ir::CostSource::kRoofline) {
    json["estimated"] = summary.costs.estimate;
  }
  json["fits"] = true;
  json["plan_needed"] = summary.planNeeded;
  json["budget_bytes"] = summary.budget.value();
  if (summary.keepAll.value() > 0) json["unplanned_bytes"] = summary.keepAll.value();
  json["predicted"] = {{"peak_bytes", claim.peakBytes.value()},
                       {"host_peak_bytes", claim.hostPeakBytes.value()},
                       {"step_ns", claim.stepTime.value()},
                       {"bound_ns", claim.bound.value()},
                       {"compute_ns", claim.computeTime.value()},
                       {"out_bytes", claim.bytesOut.value()},
                       {"in_bytes", claim.bytesIn.value()},
                       {"stall_ns",
                        {{"d2h", summary.stalls.deviceToHost.value()},
                         {"h2d", summary.stalls.hostToDevice.value()},
                         {"disk", summary.stalls.disk.value()}}}};
  if (const Bytes disk = summary.schedule.arenaBytes(ir::Space::kDisk); disk.value() > 0) {
    json["disk"] = {{"arena_bytes", disk.value()},
                    {"written_bytes", counts.diskWritten.value()},
                    {"read_bytes", counts.diskRead.value()}};
  }
  if (summary.graph.ranks() > 1) {
    json["ranks"] = {{"count", summary.graph.ranks()},
                     {"received_bytes", counts.received.value()},
                     {"stall_ns", summary.stalls.ranks.value()}};
  }
  if (summary.outside.value() > 0) json["outside_bytes"] = summary.outside.value();
  json["resident_bytes"] = counts.resident.value();
  json["row_blocks"] = summary.rowBlocks;
  json["host_updated_bytes"] = updatedBytes(summary.graph, /*onHost=*/true).value();
  json["costs"] = {{"source", ir::costSourceName(summary.costs.source)}};
  if (summary.costs.source == ir::CostSource::kRoofline && summary.costs.errorPercent) {
    json["costs"]["error_percent"] = *summary.costs.errorPercent;
  }
  json["counts"] = {{"offloaded", counts.offloadedActivations},
                    {"streamed_states", counts.offloadedStates},
                    {"recomputed", counts.recomputed},
                    {"to_disk", counts.toDisk},
                    {"reused_in_place", counts.reusedInPlace},
                    {"copies", counts.copies},
                    {"recomputed_launches", counts.recomputedLaunches},
                    {"deferred_parameters", counts.deferredParameters},
                    {"commands", summary.schedule.commands.size()}};
  return json;
}

}  // namespace stowage::planner
