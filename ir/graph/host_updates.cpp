// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/host_updates.h"

#include "ir/graph/op_table.h"

namespace stowage::ir {

namespace {

/// Who uses a storage where.
struct StorageUse {
  NodeId firstHostWrite;
  NodeId deviceWrite;  // the last one
  NodeId lastDeviceRead;
  bool isOnDevice() const { return deviceWrite.isValid() || lastDeviceRead.isValid(); }
};

class FaultFinder {
 public:
  FaultFinder(const Graph& graph, const std::vector<bool>& onHost)
      : graph_(graph), onHost_(onHost), uses_(graph.storages().size()) {}

  std::vector<std::pair<NodeId, std::string>> find() {
    for (size_t i = 0; i < onHost_.size(); ++i) noteUses(NodeId(i));
    for (size_t i = 0; i < onHost_.size(); ++i) {
      if (onHost_[i]) checkNode(NodeId(i));
    }
    return std::move(faults_);
  }

 private:
  void noteUses(NodeId id) {
    for (const Access& access : graph_.accesses(id)) {
      StorageUse& use = uses_[access.storage.index()];
      if (onHost_[id.index()]) {
        if (access.writes() && !use.firstHostWrite.isValid()) use.firstHostWrite = id;
        continue;
      }
      if (access.writes()) use.deviceWrite = id;
      if (access.reads()) use.lastDeviceRead = id;
    }
  }

  void add(NodeId id, std::string fault) { faults_.emplace_back(id, std::move(fault)); }
  std::string nameOf(StorageId id) const { return "'" + graph_.storage(id).name + "'"; }

  void checkNode(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.phase != Phase::kOptimizer) return add(id, "is no update of this step");
    const OpInfo& op = lookUpOp(node.op);
    if (!op.known) return add(id, "is an op that is not known");
    if (op.random) return add(id, "draws random numbers");
    for (const Access& access : graph_.accesses(id)) checkAccess(id, access);
  }

  void checkAccess(NodeId id, const Access& access) {
    const Storage& storage = graph_.storage(access.storage);
    const StorageUse& use = uses_[access.storage.index()];
    const bool changes = graph_.lastVersion(access.storage) > 0;
    if (storage.home == Space::kHost && use.isOnDevice() && changes) {
      return add(id, "uses " + nameOf(access.storage) +
                         ", which ops of the device find on the host when they are launched");
    }
    if (!access.writes() && !use.firstHostWrite.isValid()) return checkRead(id, access);
    if (!storage.persistent && (!access.reads() || storage.role == Role::kInput)) {
      return add(id, "makes " + nameOf(access.storage));
    }
    if (storage.output) return add(id, "uses " + nameOf(access.storage) + ", which is delivered");
    if (storage.bytes == Bytes(0)) return add(id, "uses " + nameOf(access.storage) + ", no bytes");
    const bool isHandedOver =
        !storage.persistent && use.deviceWrite < use.firstHostWrite && use.deviceWrite < id;
    if (use.deviceWrite.isValid() && !isHandedOver) {
      return add(id, "uses " + nameOf(access.storage) + ", which " +
                         graph_.describeNode(use.deviceWrite) + " writes on the device");
    }
    if (use.firstHostWrite == id && use.lastDeviceRead > id) {
      add(id, "writes " + nameOf(access.storage) + ", which " +
                  graph_.describeNode(use.lastDeviceRead) + " reads after it on the device");
    }
  }

  void checkRead(NodeId id, const Access& access) {
    if (access.readVersion == graph_.lastVersion(access.storage)) return;
    add(id, "reads " + nameOf(access.storage) + ", which is written after it");
  }

  const Graph& graph_;
  const std::vector<bool>& onHost_;
  std::vector<StorageUse> uses_;
  std::vector<std::pair<NodeId, std::string>> faults_;
};

}  // namespace

std::vector<std::pair<NodeId, std::string>> findHostFaults(const Graph& graph,
                                                           const std::vector<bool>& onHost) {
  return FaultFinder(graph, onHost).find();
}

std::vector<bool> nodesOnHost(const Graph& graph) {
  std::vector<bool> marks;
  for (const Node& node : graph.nodes()) marks.push_back(node.onHost);
  return marks;
}

std::vector<bool> storagesOfHostNodes(const Graph& graph) {
  std::vector<bool> onHost(graph.storages().size(), false);
  std::vector<bool> onDevice(graph.storages().size(), false);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    for (const Access& access : graph.accesses(NodeId(i))) {
      (graph.nodes()[i].onHost ? onHost : onDevice)[access.storage.index()] = true;
    }
  }
  for (size_t i = 0; i < onHost.size(); ++i) {
    onHost[i] = onHost[i] && !onDevice[i] && graph.storages()[i].persistent;
  }
  return onHost;
}

}  // namespace stowage::ir
