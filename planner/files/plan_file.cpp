// SPDX-License-Identifier: Apache-2.0
#include "planner/files/plan_file.h"

#include <utility>

#include "ir/schedule/fingerprint.h"

namespace stowage::planner {

namespace {

ir::Error mismatch(const PlanFile& plan, std::string message) {
  return ir::makeError(
      ir::PlanError(ir::ErrorCode::kPlanMismatch, std::move(message)).at({.file = plan.path}));
}

/// What people read beside a decision must be about the storage that it is for.
ir::Error checkLabel(const PlanFile& plan, size_t row, const ir::Graph& graph) {
  const DecisionLabel& label = plan.labels[row];
  const ir::StorageId id = plan.schedule.decisions[row].storage;
  const ir::Storage& storage = graph.storage(id);
  const std::string place = "at /decisions/" + std::to_string(label.place);
  const std::string whose = "storage " + std::to_string(id.raw());
  if (label.name != storage.name) {
    return mismatch(plan, place + "/name: found '" + label.name + "', expected the name of " +
                              whose + ", '" + storage.name + "'");
  }
  if (label.bytes == storage.bytes) return ir::success();
  return mismatch(plan, place + "/bytes: found " + std::to_string(label.bytes.value()) +
                            ", expected the size of " + whose + ", " +
                            std::to_string(storage.bytes.value()));
}

/// Notes "what: found X, expected Y" for what differs.
class Differences {
 public:
  explicit Differences(ir::PlanError& error) : error_(error) {}

  void compare(const std::string& what, const std::string& machine, const std::string& plan) {
    if (machine == plan) return;
    error_.note(what + ": found " + machine + ", the plan expects " + plan);
    ++count_;
  }
  void compare(const std::string& what, int64_t machine, int64_t plan) {
    compare(what, std::to_string(machine), std::to_string(plan));
  }
  int count() const { return count_; }

 private:
  ir::PlanError& error_;
  int count_ = 0;
};

std::string describeLibraries(const ir::Target& target) {
  std::string text;
  for (const auto& [name, version] : target.libraries) {
    if (!text.empty()) text += ", ";
    text += name;
    text += ' ';
    text += version;
  }
  return text.empty() ? "none" : text;
}

std::string describeReserved(const ir::Target& target) {
  std::string text;
  for (const ir::ReservedRegion& region : target.reserved) {
    text += (text.empty() ? "" : ", ") + region.what + " on stream " +
            std::to_string(region.stream) + " of " + std::to_string(region.bytes.value()) +
            " bytes";
  }
  return text.empty() ? "none" : text;
}

ir::Error checkCount(const PlanFile& plan, const char* what, int64_t stated, size_t found) {
  if (stated == static_cast<int64_t>(found)) return ir::success();
  return mismatch(plan, "the plan says that its graph has " + std::to_string(stated) + " " + what +
                            ", found " + std::to_string(found));
}

}  // namespace

PlanFile makePlanFile(const ir::Graph& graph, const ir::Target& target, ir::Schedule schedule,
                      Bytes budget) {
  PlanFile plan;
  plan.graph = {.fingerprint = ir::fingerprint(graph),
                .nodes = static_cast<int64_t>(graph.nodes().size()),
                .storages = static_cast<int64_t>(graph.storages().size()),
                .stepsCaptured = graph.provenance().stepsCaptured,
                .ranks = graph.ranks(),
                .file = "",
                .text = std::nullopt};
  plan.target = target;
  plan.budget = budget;
  for (const ir::DecisionRow& row : schedule.decisions) {
    const ir::Storage& storage = graph.storage(row.storage);
    plan.labels.push_back(
        {.name = storage.name, .bytes = storage.bytes, .place = plan.labels.size()});
  }
  plan.schedule = std::move(schedule);
  return plan;
}

ir::Error checkPlanGraph(const PlanFile& plan, const ir::Graph& graph) {
  const std::string fingerprint = ir::fingerprint(graph);
  if (plan.graph.fingerprint != fingerprint) {
    return mismatch(plan, "found graph '" + graph.name() + "' with fingerprint " + fingerprint +
                              ", expected the plan's, " + plan.graph.fingerprint);
  }
  if (plan.graph.ranks != graph.ranks()) {
    return mismatch(plan, "the plan says that its graph is for " +
                              std::to_string(plan.graph.ranks) + " ranks, found " +
                              std::to_string(graph.ranks()));
  }
  if (ir::Error error = checkCount(plan, "nodes", plan.graph.nodes, graph.nodes().size())) {
    return error;
  }
  if (ir::Error error =
          checkCount(plan, "storages", plan.graph.storages, graph.storages().size())) {
    return error;
  }
  for (size_t row = 0; row < plan.labels.size(); ++row) {
    if (ir::Error error = checkLabel(plan, row, graph)) return error;
  }
  return ir::success();
}

ir::Error checkPlanTarget(const PlanFile& plan, const ir::Target& machine) {
  const ir::Target& target = plan.target;
  ir::PlanError error(ir::ErrorCode::kPlanMismatch,
                      "the plan is for another machine, profile '" + target.profile + "'");
  Differences differences(error);
  differences.compare("device", ir::deviceKindName(machine.device),
                      ir::deviceKindName(target.device));
  differences.compare("compute capability", machine.computeCapability, target.computeCapability);
  differences.compare("alignment in bytes", machine.alignBytes, target.alignBytes);
  differences.compare("threads of an op", machine.intraOpThreads, target.intraOpThreads);
  differences.compare("deterministic mode", machine.deterministic ? "on" : "off",
                      target.deterministic ? "on" : "off");
  const std::string here = describeLibraries(machine);
  const std::string planned = describeLibraries(target);
  differences.compare("libraries", here, planned);
  differences.compare("reserved regions", describeReserved(machine), describeReserved(target));
  if (differences.count() == 0) return ir::success();
  if (here != planned) {
    error.note("libraries choose kernels: capture, profile and plan the step again with these");
  }
  return ir::makeError(std::move(error));
}

}  // namespace stowage::planner
