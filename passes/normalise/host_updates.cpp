// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/host_updates.h"

#include <llvm/ADT/EquivalenceClasses.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/host_updates.h"
#include "passes/manage/pass_options.h"
#include "passes/normalise/graph_edit.h"

namespace stowage::passes {

namespace {

/// The nodes of the optimizer that belong together because of the state that they share.
struct Update {
  std::vector<ir::NodeId> nodes;
  Bytes parameters;  // that it writes
  int64_t way = 0;   // nodes between what it waits for and what waits for it
};

class UpdateFinder {
 public:
  explicit UpdateFinder(const ir::Graph& graph) : graph_(graph), uses_(graph.storages().size()) {}

  /// In order of their first nodes.
  std::vector<Update> find() {
    noteUses();
    std::map<size_t, Update> updates;  // by the first node
    for (const size_t node : nodes_) {
      updates[groups_.getLeaderValue(node)].nodes.push_back(ir::NodeId(node));
    }
    std::vector<Update> found;
    for (auto& [leader, update] : updates) {
      measure(update);
      if (update.parameters.value() > 0) found.push_back(std::move(update));
    }
    llvm::sort(found, [](const Update& a, const Update& b) { return a.nodes[0] < b.nodes[0]; });
    return found;
  }

 private:
  struct StorageUse {
    std::vector<size_t> changing;  // nodes of the optimizer that change state
    int64_t firstRead = -1;        // by any other node
    int64_t lastAccess = -1;
    bool isChanged = false;
  };

  bool changesState(size_t node) const {
    const auto accesses = graph_.accesses(ir::NodeId(node));
    return graph_.nodes()[node].phase == ir::Phase::kOptimizer &&
           llvm::any_of(accesses, [&](const ir::Access& access) {
             return access.writes() && graph_.storage(access.storage).persistent;
           });
  }

  void noteUses() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const bool changes = changesState(i);
      if (changes) groups_.insert(i);
      if (changes) nodes_.push_back(i);
      for (const ir::Access& access : graph_.accesses(ir::NodeId(i))) {
        noteUse(i, changes, access, uses_[access.storage.index()]);
      }
    }
    for (const StorageUse& use : uses_) {
      for (const size_t node : use.changing) {
        if (use.isChanged) groups_.unionSets(use.changing.front(), node);
      }
    }
  }

  void noteUse(size_t node, bool changes, const ir::Access& access, StorageUse& use) const {
    if (changes) {
      if (graph_.storage(access.storage).persistent) use.changing.push_back(node);
      use.isChanged = use.isChanged || access.writes();
      return;
    }
    if (access.reads() && use.firstRead < 0) use.firstRead = static_cast<int64_t>(node);
    use.lastAccess = static_cast<int64_t>(node);
  }

  void measure(Update& update) {
    const auto count = static_cast<int64_t>(graph_.nodes().size());
    int64_t begin = -1;
    int64_t end = count;
    std::vector<ir::StorageId> written;
    for (const ir::NodeId node : update.nodes) {
      for (const ir::Access& access : graph_.accesses(node)) {
        const StorageUse& use = uses_[access.storage.index()];
        begin = std::max(begin, use.lastAccess);
        const bool isParameter = graph_.storage(access.storage).role == ir::Role::kParameter;
        if (!access.writes() || !isParameter) continue;
        if (use.firstRead >= 0) end = std::min(end, use.firstRead);
        if (!llvm::is_contained(written, access.storage)) written.push_back(access.storage);
      }
    }
    for (const ir::StorageId id : written) update.parameters += graph_.storage(id).bytes;
    update.way = end + count - begin;
  }

  const ir::Graph& graph_;
  std::vector<StorageUse> uses_;
  std::vector<size_t> nodes_;  // that change state
  llvm::EquivalenceClasses<size_t> groups_;
};

/// Those that may run on the host beside each other. Each one that may not brings its nodes back to
/// the device, which may stand against another.
std::vector<Update> keepPossible(const ir::Graph& graph, std::vector<Update> updates,
                                 std::vector<std::string>& remarks) {
  while (true) {
    std::vector<bool> onHost(graph.nodes().size(), false);
    for (const Update& update : updates) {
      for (const ir::NodeId node : update.nodes) onHost[node.index()] = true;
    }
    const auto faults = ir::findHostFaults(graph, onHost);
    if (faults.empty()) return updates;
    const auto& [node, fault] = faults.front();
    if (remarks.empty()) remarks.push_back(graph.describeNode(node) + " stays: it " + fault);
    std::vector<bool> isFaulty(graph.nodes().size(), false);
    for (const auto& [faulty, why] : faults) isFaulty[faulty.index()] = true;
    llvm::erase_if(updates, [&](const Update& update) {
      return llvm::any_of(update.nodes, [&](ir::NodeId id) { return isFaulty[id.index()]; });
    });
  }
}

/// The longest ways first, up to the share.
void keepShare(int64_t percent, std::vector<Update>& updates) {
  llvm::stable_sort(updates, [](const Update& a, const Update& b) { return a.way > b.way; });
  Bytes all;
  for (const Update& update : updates) all += update.parameters;
  Bytes marked;
  size_t kept = 0;
  while (kept < updates.size() && marked.value() * 100 < all.value() * percent) {
    marked += updates[kept++].parameters;
  }
  updates.resize(kept);
}

}  // namespace

ir::Expected<std::unique_ptr<Pass>> HostUpdates::parse(llvm::StringRef text) {
  HostUpdatesOptions options;
  OptionReader reader("host-updates", text);
  options.percent = reader.readNumber("percent", options.percent);
  if (ir::Error error = reader.finish()) return error;
  if (options.percent > 100) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument, "host-updates: option 'percent' is " +
                                                              std::to_string(options.percent) +
                                                              ", expected at most 100");
  }
  return std::make_unique<HostUpdates>(options);
}

std::string HostUpdates::options() const {
  if (options_.percent == HostUpdatesOptions().percent) return "";
  return "percent=" + std::to_string(options_.percent);
}

ir::Expected<PassReport> HostUpdates::run(PassState& state) const {
  const ir::Graph& graph = state.graph;
  std::vector<Update> updates = UpdateFinder(graph).find();
  PassReport report{.counters = {{"updates", static_cast<int64_t>(updates.size())}}};
  updates = keepPossible(graph, std::move(updates), report.remarks);
  report.counters.push_back({"possible", static_cast<int64_t>(updates.size())});
  keepShare(options_.percent, updates);
  report.counters.push_back({"marked", static_cast<int64_t>(updates.size())});
  std::vector<ir::Node> nodes = graph.nodes().vec();
  for (const Update& update : updates) {
    for (const ir::NodeId node : update.nodes) {
      report.changed = report.changed || !nodes[node.index()].onHost;
      nodes[node.index()].onHost = true;
    }
  }
  if (report.changed) state.graph = withNodes(graph, std::move(nodes));
  return report;
}

}  // namespace stowage::passes
