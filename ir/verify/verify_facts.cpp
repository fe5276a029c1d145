// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "ir/verify/verify_internal.h"

namespace stowage::ir::verifier {

void Report::add(int rule, CommandId command, std::string message) {
  violations_.push_back({.rule = rule, .message = std::move(message), .command = command});
}

std::vector<Violation> Report::take() && {
  std::sort(violations_.begin(), violations_.end(), [](const Violation& a, const Violation& b) {
    return std::tie(a.rule, a.command, a.message) < std::tie(b.rule, b.command, b.message);
  });
  return std::move(violations_);
}

llvm::SmallVector<Access, 4> accessesOf(const Graph& graph, const Command& run) {
  const Node& node = graph.node(run.node);
  const bool inReplayForm = run.recompute > 0 && *lookUpOp(node.op).replayForm != '\0';
  llvm::SmallVector<Access, 4> accesses;
  for (const Access& access : graph.accesses(run.node)) {
    const bool isWrittenInPlace =
        std::any_of(node.writes.begin(), node.writes.end(), [&](const Node::Write& write) {
          return graph.value(write.value).storage == access.storage;
        });
    if (!inReplayForm || !isWrittenInPlace) accesses.push_back(access);
  }
  return accesses;
}

Facts::Facts(const VerifyInput& input)
    : graph(input.graph),
      schedule(input.schedule),
      target(input.target),
      costs(input.costs),
      budget(input.budget),
      hostLimit(input.hostLimit),
      diskLimit(input.diskLimit),
      originals_(graph.nodes().size()),
      boundary_(graph.storages().size(), -1),
      held_(schedule.residencies.size(), 0) {
  for (const Node& node : graph.nodes()) ops_.push_back(&lookUpOp(node.op));
  for (size_t i = 0; i < schedule.boundary.size(); ++i) {
    const BoundaryEntry& entry = schedule.boundary[i];
    boundary_[entry.storage.index()] = static_cast<int32_t>(i);
    for (const ResidencyId id : entry.at) held_[id.index()] = 1;
  }
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    firstUse_.push_back(static_cast<uint32_t>(uses_.size()));
    addUses(CommandId(i));
  }
  firstUse_.push_back(static_cast<uint32_t>(uses_.size()));
  indexUsesByResidency();
  findDelivered();
}

void Facts::addUses(CommandId id) {
  const Command& command = schedule.command(id);
  if (command.kind == CommandKind::kRun) {
    if (command.recompute == 0 && !original(command.node).isValid()) {
      originals_[command.node.index()] = id;
    }
    addRunUses(id);
    return;
  }
  uses_.push_back({.command = id,
                   .residency = command.from,
                   .storage = schedule.residency(command.from).storage,
                   .reads = true});
  uses_.push_back({.command = id,
                   .residency = command.to,
                   .storage = schedule.residency(command.to).storage,
                   .writes = true});
}

void Facts::addRunUses(CommandId id) {
  const Command& run = schedule.command(id);
  size_t reads = 0;
  size_t writes = 0;
  for (const Access& access : accessesOf(graph, run)) {
    const ResidencyId in = access.reads() ? run.in[reads++] : ResidencyId();
    const ResidencyId out = access.writes() ? run.out[writes++] : ResidencyId();
    Use use{.command = id, .residency = in, .storage = access.storage};
    if (access.reads()) {
      use.readVersion = access.readVersion;
      use.reads = true;
      if (in != out) uses_.push_back(use);
    }
    if (!access.writes()) continue;
    if (in != out) use.reads = false;
    use.residency = out;
    use.writtenVersion = access.writtenVersion;
    use.writes = true;
    uses_.push_back(use);
  }
}

void Facts::indexUsesByResidency() {
  firstUseOfResidency_.assign(schedule.residencies.size() + 1, 0);
  for (const Use& use : uses_) ++firstUseOfResidency_[use.residency.index() + 1];
  for (size_t i = 1; i < firstUseOfResidency_.size(); ++i) {
    firstUseOfResidency_[i] += firstUseOfResidency_[i - 1];
  }
  std::vector<uint32_t> next(firstUseOfResidency_.begin(), firstUseOfResidency_.end() - 1);
  useByResidency_.resize(uses_.size());
  for (size_t i = 0; i < uses_.size(); ++i) {
    useByResidency_[next[uses_[i].residency.index()]++] = static_cast<uint32_t>(i);
  }
}

void Facts::findDelivered() {
  delivered_.resize(graph.storages().size());
  for (const BoundaryEntry& entry : schedule.boundary) {
    for (const ResidencyId id : entry.at) {
      ResidencyId& delivered = delivered_[entry.storage.index()];
      if (schedule.residency(id).space == Space::kHost && !delivered.isValid()) delivered = id;
    }
  }
  for (const Use& use : uses_) {
    const Residency& residency = schedule.residency(use.residency);
    if (use.writes && residency.space == Space::kHost) {
      delivered_[residency.storage.index()] = use.residency;
    }
  }
  for (size_t i = 0; i < delivered_.size(); ++i) {
    if (!graph.storages()[i].output) delivered_[i] = ResidencyId();
  }
}

llvm::ArrayRef<Use> Facts::usesOf(CommandId command) const {
  const uint32_t begin = firstUse_[command.index()];
  const uint32_t end = firstUse_[command.index() + 1];
  return llvm::ArrayRef<Use>(uses_).slice(begin, end - begin);
}

llvm::ArrayRef<uint32_t> Facts::usesOf(ResidencyId residency) const {
  const uint32_t begin = firstUseOfResidency_[residency.index()];
  const uint32_t end = firstUseOfResidency_[residency.index() + 1];
  return llvm::ArrayRef<uint32_t>(useByResidency_).slice(begin, end - begin);
}

const BoundaryEntry* Facts::boundary(StorageId storage) const {
  const int32_t index = boundary_[storage.index()];
  return index < 0 ? nullptr : &schedule.boundary[static_cast<size_t>(index)];
}

Bytes Facts::size(ResidencyId id) const {
  const bool onDisk = schedule.residency(id).space == Space::kDisk;
  return roundUp(storage(id).bytes, onDisk ? kDiskBlock : target.alignBytes);
}

bool Facts::isInputSlot(ResidencyId id) const {
  const Storage& stored = storage(id);
  return isHeld(id) && stored.role == Role::kInput && !stored.persistent;
}

ResidencyId Facts::freshResult(CommandId run) const {
  const Node& ran = node(schedule.command(run));
  if (ran.results.empty() || !ran.results[0].isValid()) return {};
  const StorageId result = graph.value(ran.results[0]).storage;
  for (const Use& use : usesOf(run)) {
    if (use.storage == result && use.defines()) return use.residency;
  }
  return {};
}

std::string Facts::describe(CommandId id) const {
  const Command& command = schedule.command(id);
  const std::string name = "c" + std::to_string(id.raw());
  if (command.kind == CommandKind::kCopy) {
    return name + " (copy r" + std::to_string(command.from.raw()) + " -> r" +
           std::to_string(command.to.raw()) + ")";
  }
  const std::string recompute =
      command.recompute > 0 ? " recompute " + std::to_string(command.recompute) : std::string();
  return name + " (n" + std::to_string(command.node.raw()) + recompute + ": " +
         graph.describeNode(command.node) + ")";
}

std::string Facts::describe(ResidencyId id) const {
  const Residency& residency = schedule.residency(id);
  return "r" + std::to_string(id.raw()) + " of " + describe(residency.storage) + " on " +
         spaceName(residency.space);
}

}  // namespace stowage::ir::verifier
