// SPDX-License-Identifier: Apache-2.0
#include "tests/support/keep_all_schedule.h"

#include <algorithm>
#include <vector>

#include "ir/graph/op_table.h"
#include "ir/schedule/fingerprint.h"

namespace stowage::tests {

namespace {

class KeepAll {
 public:
  KeepAll(const ir::Graph& graph, const ir::Target& target, const ir::NodeCosts* costs)
      : graph_(graph), target_(target), costs_(costs) {}

  ir::Schedule make() && {
    schedule_.level = ir::Level::kSynced;
    schedule_.graphFingerprint = fingerprint(graph_);
    schedule_.targetFingerprint = fingerprint(target_);
    schedule_.opTableVersion = ir::opTableVersion();
    placeStorages();
    copyInputs();
    runNodes();
    copyOutputs();
    schedule_.arenas = {{ir::Space::kDevice, device_}, {ir::Space::kHost, host_}};
    return std::move(schedule_);
  }

 private:
  ir::ResidencyId addResidency(size_t storage, ir::Space space) {
    Bytes& top = space == ir::Space::kDevice ? device_ : host_;
    schedule_.residencies.push_back({ir::StorageId(storage), space, top.value()});
    top += roundUp(graph_.storages()[storage].bytes, target_.alignBytes);
    return ir::ResidencyId(schedule_.residencies.size() - 1);
  }

  void placeStorages() {
    for (size_t i = 0; i < graph_.storages().size(); ++i) {
      const ir::Storage& storage = graph_.storages()[i];
      residencies_.push_back(addResidency(i, storage.home));
      if (storage.persistent) {
        const bool dirty = storage.home == ir::Space::kDevice;
        schedule_.boundary.push_back({ir::StorageId(i), {residencies_[i]}, dirty});
      } else if (storage.role == ir::Role::kInput) {
        schedule_.boundary.push_back(
            {ir::StorageId(i), {addResidency(i, ir::Space::kHost)}, false});
      }
    }
  }

  ir::Command& addCommand(ir::CommandKind kind, ir::Stream stream) {
    schedule_.commands.emplace_back();
    schedule_.commands.back().kind = kind;
    schedule_.commands.back().stream = stream;
    return schedule_.commands.back();
  }

  void copyInputs() {
    for (const ir::BoundaryEntry& entry : schedule_.boundary) {
      if (graph_.storage(entry.storage).persistent) continue;
      ir::Command& copy = addCommand(ir::CommandKind::kCopy, ir::Stream::kHostToDevice);
      copy.from = entry.at.front();
      copy.to = residencies_[entry.storage.index()];
    }
    inputs_ = schedule_.commands.size();
  }

  void runNodes() {
    Bytes temporary;
    for (size_t n = 0; costs_ != nullptr && n < costs_->nodes.size(); ++n) {
      temporary = std::max(temporary, roundUp(costs_->nodes[n].temporary, target_.alignBytes));
    }
    int slots = 0;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      ir::Command& run = addCommand(ir::CommandKind::kRun, ir::Stream::kCompute);
      run.node = ir::NodeId(n);
      for (const ir::Access& access : graph_.accesses(run.node)) {
        const ir::ResidencyId residency = residencies_[access.storage.index()];
        if (access.reads()) run.in.push_back(residency);
        if (access.writes()) run.out.push_back(residency);
      }
      if (temporary.value() > 0) run.temp = {device_.value(), temporary};
      if (ir::lookUpOp(graph_.node(run.node).op).random) run.rngSlot = slots++;
      // The first one waits for all inputs; inputs wait for the last one of the step before.
      for (size_t c = 0; n == 0 && c < inputs_; ++c) run.wait.push_back(ir::CommandId(c));
    }
    device_ += temporary;
    for (size_t c = 0; c < inputs_; ++c) {
      schedule_.commands[c].prev.push_back(ir::CommandId(schedule_.commands.size() - 1));
    }
  }

  void copyOutputs() {
    const ir::CommandId last(schedule_.commands.size() - 1);
    for (size_t i = 0; i < graph_.storages().size(); ++i) {
      if (!graph_.storages()[i].output) continue;
      const ir::ResidencyId to = addResidency(i, ir::Space::kHost);
      ir::Command& copy = addCommand(ir::CommandKind::kCopy, ir::Stream::kDeviceToHost);
      copy.from = residencies_[i];
      copy.to = to;
      copy.wait.push_back(last);
      schedule_.commands[inputs_].prev.push_back(ir::CommandId(schedule_.commands.size() - 1));
    }
  }

  const ir::Graph& graph_;
  const ir::Target& target_;
  const ir::NodeCosts* costs_;
  ir::Schedule schedule_;
  std::vector<ir::ResidencyId> residencies_;  // by storage
  size_t inputs_ = 0;                         // commands that copy inputs; the first launch follows
  Bytes device_;
  Bytes host_;
};

}  // namespace

ir::Schedule makeKeepAllSchedule(const ir::Graph& graph, const ir::Target& target,
                                 const ir::NodeCosts* costs) {
  return KeepAll(graph, target, costs).make();
}

}  // namespace stowage::tests
