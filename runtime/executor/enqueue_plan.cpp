// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/enqueue_plan.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "ir/base/interval.h"
#include "ir/graph/op_table.h"

namespace stowage::runtime {

namespace {

using ir::Command;
using ir::CommandId;
using ir::CommandKind;
using ir::ResidencyId;
using ir::Space;
using ir::StorageId;

class PlanMaker {
 public:
  PlanMaker(const ir::Graph& graph, const ir::Schedule& schedule)
      : graph_(graph), schedule_(schedule), needsEvent_(schedule.commands.size(), false) {}

  ir::Expected<EnqueuePlan> make() && {
    findInputs();
    if (ir::Error error = findOutputs()) return error;
    markEvents();
    numberEvents();
    for (size_t i = 0; i < schedule_.commands.size(); ++i) addRecord(CommandId(i));
    for (size_t k = 0; k < plan_.outputs.size(); ++k) {
      const CommandId writer = plan_.outputs[k].writer;
      if (writer.isValid()) plan_.records[writer.index()].output = static_cast<int32_t>(k);
    }
    findFirstUpdate();
    findLeftOut();
    if (plan_.defersUpdates) findFilledCopies();
    return std::move(plan_);
  }

 private:
  // The commands after which an input's bytes may be replaced: per stream the last that uses them.
  using LastUsers = std::array<CommandId, ir::kStreamCount>;

  void findInputs() {
    for (const ir::BoundaryEntry& entry : schedule_.boundary) {
      const ir::Storage& storage = graph_.storage(entry.storage);
      if (storage.role != ir::Role::kInput) continue;
      InputPort port{
          entry.storage, storage.bytes, schedule_.residency(entry.at.front()).offset, {}};
      bool isCopied = true;
      for (const CommandId user : findUsers(entry.storage)) {
        if (!user.isValid()) continue;
        needsEvent_[user.index()] = true;
        port.users.push_back(user.raw());  // turned into an event later
        port.copiedOn = schedule_.command(user).stream;
        // A launch may read host bytes when it is enqueued, before its stream comes to it.
        isCopied &= schedule_.command(user).kind == CommandKind::kCopy;
      }
      if (port.users.size() > 1 || !isCopied) port.copiedOn.reset();
      plan_.inputs.push_back(std::move(port));
    }
  }

  LastUsers findUsers(StorageId storage) const {
    LastUsers last;
    for (size_t i = 0; i < schedule_.commands.size(); ++i) {
      const Command& command = schedule_.commands[i];
      if (usesOnHost(command, storage)) last[static_cast<size_t>(command.stream)] = CommandId(i);
    }
    return last;
  }

  bool usesOnHost(const Command& command, StorageId storage) const {
    const auto isOnHost = [&](ResidencyId id) { return isHostResidency(id, storage); };
    if (command.kind == CommandKind::kCopy) return isOnHost(command.from) || isOnHost(command.to);
    return llvm::any_of(command.in, isOnHost) || llvm::any_of(command.out, isOnHost);
  }

  bool isHostResidency(ResidencyId id, StorageId storage) const {
    const ir::Residency& residency = schedule_.residency(id);
    return residency.storage == storage && residency.space == Space::kHost;
  }

  ir::Error findOutputs() {
    for (size_t i = 0; i < graph_.storages().size(); ++i) {
      if (!graph_.storages()[i].output) continue;
      OutputPort port{StorageId(i), graph_.storages()[i].bytes, {}, -1, -1};
      findAtBoundary(port);
      for (size_t c = 0; c < schedule_.commands.size(); ++c) {
        const ResidencyId written = writtenOnHost(schedule_.commands[c], port.storage);
        if (!written.isValid()) continue;
        port.writer = CommandId(c);
        port.hostOffset = schedule_.residency(written).offset;
      }
      if (port.hostOffset < 0) {
        return ir::makeError(ir::ErrorCode::kInvalidIr,
                             "output '" + graph_.storages()[i].name + "' never reaches the host");
      }
      if (port.writer.isValid()) needsEvent_[port.writer.index()] = true;
      plan_.outputs.push_back(port);
    }
    return ir::success();
  }

  void findAtBoundary(OutputPort& port) const {
    for (const ir::BoundaryEntry& entry : schedule_.boundary) {
      for (const ResidencyId id : entry.at) {
        if (isHostResidency(id, port.storage)) port.hostOffset = schedule_.residency(id).offset;
      }
    }
  }

  ResidencyId writtenOnHost(const Command& command, StorageId storage) const {
    if (command.kind == CommandKind::kCopy) {
      return isHostResidency(command.to, storage) ? command.to : ResidencyId();
    }
    for (const ResidencyId id : command.out) {
      if (isHostResidency(id, storage)) return id;
    }
    return ResidencyId();
  }

  void markEvents() {
    std::array<CommandId, ir::kStreamCount> last;
    for (size_t i = 0; i < schedule_.commands.size(); ++i) {
      const Command& command = schedule_.commands[i];
      last[static_cast<size_t>(command.stream)] = CommandId(i);
      for (const CommandId other : command.wait) markIfForeign(command, other);
      for (const CommandId other : command.prev) markIfForeign(command, other);
    }
    for (const CommandId id : last) {
      if (!id.isValid()) continue;
      needsEvent_[id.index()] = true;
      // The command is turned into its event later.
      plan_.stepEnd.push_back({schedule_.command(id).stream, id.raw()});
    }
  }

  void markIfForeign(const Command& command, CommandId other) {
    if (schedule_.command(other).stream != command.stream) needsEvent_[other.index()] = true;
  }

  void numberEvents() {
    eventOf_.assign(needsEvent_.size(), -1);
    for (size_t i = 0; i < needsEvent_.size(); ++i) {
      if (needsEvent_[i]) eventOf_[i] = plan_.eventCount++;
    }
    for (StreamEnd& end : plan_.stepEnd) end.event = eventOf_[static_cast<size_t>(end.event)];
    for (InputPort& input : plan_.inputs) {
      for (int32_t& user : input.users) user = eventOf_[static_cast<size_t>(user)];
    }
    for (OutputPort& output : plan_.outputs) {
      if (output.writer.isValid()) output.event = eventOf_[output.writer.index()];
    }
  }

  void addRecord(CommandId id) {
    const Command& command = schedule_.command(id);
    EnqueueRecord record{
        .kind = command.kind, .stream = command.stream, .event = eventOf_[id.index()]};
    for (const CommandId other : command.wait) {
      if (isForeign(command, other)) record.waitFor.push_back(eventOf_[other.index()]);
    }
    for (const CommandId other : command.prev) {
      if (isForeign(command, other)) record.waitPrev.push_back(eventOf_[other.index()]);
    }
    plan_.records.push_back(std::move(record));
  }

  bool isForeign(const Command& command, CommandId other) const {
    return schedule_.command(other).stream != command.stream;
  }

  void findFirstUpdate() {
    findEmptied();
    plan_.firstUpdate = schedule_.commands.size();
    for (size_t i = schedule_.commands.size(); i-- > 0;) {
      const Command& command = schedule_.commands[i];
      if (command.kind != CommandKind::kRun) continue;
      const ir::Node& node = graph_.node(command.node);
      const bool scalars = usesStepScalars(node);
      plan_.needsScalars = plan_.needsScalars || scalars;
      if (node.phase == ir::Phase::kDeferred) {
        plan_.records[i].isDeferred = plan_.defersUpdates = true;
        continue;
      }
      const bool updates = node.phase == ir::Phase::kOptimizer && !empties(command.node);
      plan_.records[i].updates = updates;
      if (scalars || updates) plan_.firstUpdate = i;
      if (!updates) noteStateWrites(command.node);
    }
    const auto isEmptied = [&](StorageId storage) { return isEmptied_[storage.index()]; };
    plan_.emptiesState = llvm::any_of(plan_.writtenByLoss, isEmptied);
    llvm::erase_if(plan_.writtenByLoss, isEmptied);
  }

  void noteStateWrites(ir::NodeId node) {
    for (const ir::Access& access : graph_.accesses(node)) {
      if (!access.writes() || !graph_.storage(access.storage).persistent) continue;
      if (!llvm::is_contained(plan_.writtenByLoss, access.storage)) {
        plan_.writtenByLoss.push_back(access.storage);
      }
    }
    llvm::sort(plan_.writtenByLoss, [](StorageId a, StorageId b) { return a < b; });
  }

  // State that each step leaves at the same value, which needs nothing of the step: gradients that
  // are set to zero. Done in a step without updates, too, it is as after any other.
  bool empties(ir::NodeId id) const {
    const llvm::ArrayRef<ir::Access> accesses = graph_.accesses(id);
    return accesses.size() == 1 && accesses.front().writes() &&
           isEmptied_[accesses.front().storage.index()];
  }

  void findEmptied() {
    isEmptied_.assign(graph_.storages().size(), false);
    std::vector<bool> isWrittenLater(graph_.storages().size(), false);
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      const ir::Node& node = graph_.nodes()[i];
      const llvm::ArrayRef<ir::Access> accesses = graph_.accesses(ir::NodeId(i));
      for (const ir::Access& access : accesses) {
        if (!access.writes() || isWrittenLater[access.storage.index()]) continue;
        isWrittenLater[access.storage.index()] = true;
        const ir::OpInfo& op = ir::lookUpOp(node.op);
        const bool fills = node.phase == ir::Phase::kOptimizer && accesses.size() == 1 &&
                           !access.reads() && op.known && !op.random && !usesStepScalars(node);
        isEmptied_[access.storage.index()] = fills && graph_.storage(access.storage).persistent;
      }
    }
  }

  // What a step without updates leaves out beside them: copies of what only they make. State that
  // they write whole, without having read it, is as it was where its old bytes lie untouched.
  void findLeftOut() {
    std::vector<bool> isHeld(schedule_.residencies.size(), false);  // between steps
    for (const ir::BoundaryEntry& entry : schedule_.boundary) {
      for (const ResidencyId residency : entry.at) isHeld[residency.index()] = true;
    }
    std::vector<bool> hasBytes = isHeld;
    std::vector<ResidencyId> keepOldBytes;
    for (size_t i = 0; i < schedule_.commands.size(); ++i) {
      const Command& command = schedule_.commands[i];
      EnqueueRecord& record = plan_.records[i];
      if (command.kind == CommandKind::kCopy) record.updates = !hasBytes[command.from.index()];
      for (const ResidencyId residency : definedBy(command)) {
        if (!record.updates) hasBytes[residency.index()] = true;
        if (record.updates && isHeld[residency.index()]) keepOldBytes.push_back(residency);
      }
    }
    plan_.canEndWithoutUpdates =
        llvm::none_of(keepOldBytes, [&](ResidencyId residency) { return sharesBytes(residency); });
  }

  // Copies of what a left out launch would have made have nothing to copy.
  void findFilledCopies() {
    const std::vector<bool> withoutPending = findFilled(/*runsDeferred=*/false);
    const std::vector<bool> pending = findFilled(/*runsDeferred=*/true);
    for (size_t i = 0; i < plan_.records.size(); ++i) {
      plan_.records[i].copiesWithoutPending = withoutPending[i];
      plan_.records[i].copiesPending = pending[i];
    }
  }

  /// By command: is it a copy of bytes that are there, if of all launches the deferred ones run, or
  /// all others?
  std::vector<bool> findFilled(bool runsDeferred) const {
    std::vector<bool> hasBytes(schedule_.residencies.size(), false);
    for (const ir::BoundaryEntry& entry : schedule_.boundary) {
      const bool isPending = graph_.storage(entry.storage).role == ir::Role::kPending;
      for (const ResidencyId id : entry.at) hasBytes[id.index()] = runsDeferred || !isPending;
    }
    std::vector<bool> filled(schedule_.commands.size(), false);
    for (size_t i = 0; i < schedule_.commands.size(); ++i) {
      const Command& command = schedule_.commands[i];
      if (command.kind == CommandKind::kCopy) {
        filled[i] = hasBytes[command.from.index()];
        hasBytes[command.to.index()] = filled[i];
      } else if (plan_.records[i].isDeferred == runsDeferred) {
        for (const ResidencyId id : command.out) hasBytes[id.index()] = true;
      } else {  // what was there before is of no use
        for (const ResidencyId id : definedBy(command)) hasBytes[id.index()] = false;
      }
    }
    return filled;
  }

  /// Residencies that a command writes whole, whatever they held.
  llvm::SmallVector<ResidencyId, 2> definedBy(const Command& command) const {
    if (command.kind == CommandKind::kCopy) return {command.to};
    llvm::SmallVector<ResidencyId, 2> defined;
    for (const ResidencyId residency : command.out) {
      if (!llvm::is_contained(command.in, residency)) defined.push_back(residency);
    }
    return defined;
  }

  ir::ByteRange rangeOf(const ir::Residency& residency) const {
    return {residency.offset, residency.offset + graph_.storage(residency.storage).bytes.value()};
  }

  // For a residency that is held between steps. Before it is written again, others may have its
  // bytes.
  bool sharesBytes(ResidencyId id) const {
    const ir::Residency& residency = schedule_.residency(id);
    const ir::ByteRange own = rangeOf(residency);
    for (size_t i = 0; i < schedule_.residencies.size(); ++i) {
      const ir::Residency& other = schedule_.residencies[i];
      if (i == id.index() || other.space != residency.space) continue;
      if (own.overlaps(rangeOf(other))) return true;
    }
    return residency.space == Space::kDevice &&
           llvm::any_of(schedule_.commands, [&](const Command& c) {
             return own.overlaps({c.temp.offset, c.temp.offset + c.temp.bytes.value()});
           });
  }

  const ir::Graph& graph_;
  const ir::Schedule& schedule_;
  std::vector<bool> needsEvent_;  // by command
  std::vector<int32_t> eventOf_;  // by command
  std::vector<bool> isEmptied_;   // by storage
  EnqueuePlan plan_;
};

}  // namespace

int32_t EnqueuePlan::findOutput(ir::StorageId storage) const {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].storage == storage) return static_cast<int32_t>(i);
  }
  return -1;
}

bool usesStepScalars(const ir::Node& node) { return ir::firstStepScalar(node).has_value(); }

ir::Expected<EnqueuePlan> makeEnqueuePlan(const ir::Graph& graph, const ir::Schedule& schedule) {
  return PlanMaker(graph, schedule).make();
}

}  // namespace stowage::runtime
