// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/check_executable.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <string>
#include <utility>

#include "ir/schedule/fingerprint.h"
#include "runtime/executor/device.h"
#include "runtime/executor/run_accesses.h"

namespace stowage::runtime {

namespace {

using ir::Command;
using ir::CommandId;
using ir::CommandKind;
using ir::ResidencyId;
using ir::Space;
using ir::Stream;

std::string quoted(const std::string& text) { return "'" + text + "'"; }

bool isStreamOfCopy(Stream stream, Space from, Space to) {
  switch (stream) {
    case Stream::kDeviceToHost:
      return from == Space::kDevice && to == Space::kHost;
    case Stream::kHostToDevice:
      return from == Space::kHost && to == Space::kDevice;
    case Stream::kDiskRead:
      return from == Space::kDisk && to == Space::kHost;
    case Stream::kDiskWrite:
      return from == Space::kHost && to == Space::kDisk;
    default:
      return false;
  }
}

int countResidencies(const ir::Graph& graph, const Command& run, bool written) {
  int count = 0;
  for (const ir::Access& access : accessesOf(graph, run)) {
    count += (written ? access.writes() : access.reads()) ? 1 : 0;
  }
  return count;
}

class Checker {
 public:
  Checker(const ir::Graph& graph, const ir::Schedule& schedule, const ir::Target& target)
      : source_{graph, schedule, target} {}

  ir::Error run() {
    const ir::Schedule& schedule = source_.schedule;
    for (size_t i = 0; i < schedule.residencies.size(); ++i) checkResidency(ResidencyId(i));
    checkDeferred();
    // The rest looks residencies up.
    if (notes_.empty()) {
      for (const ir::BoundaryEntry& entry : schedule.boundary) checkBoundary(entry);
      for (size_t i = 0; i < schedule.commands.size(); ++i) checkCommand(CommandId(i));
    }
    if (notes_.empty()) return ir::success();
    ir::PlanError error(ir::ErrorCode::kInvalidIr, "the schedule cannot be executed");
    for (std::string& note : notes_) error.note(std::move(note));
    return ir::makeError(std::move(error));
  }

 private:
  // What is recorded is the same in every step.
  void checkDeferred() {
    if (source_.schedule.graphMode == ir::GraphMode::kNone) return;
    const auto nodes = source_.graph.nodes();
    const auto* found = llvm::find_if(
        nodes, [](const ir::Node& node) { return node.phase == ir::Phase::kDeferred; });
    if (found == nodes.end()) return;
    const ir::NodeId id(static_cast<size_t>(found - nodes.begin()));
    notes_.push_back("a CUDA graph would run " + source_.graph.describeNode(id) +
                     " also when no update is pending");
  }

  void report(const std::string& where, const std::string& what) {
    notes_.push_back(where + ": " + what);
  }

  void checkResidency(ResidencyId id) {
    const ir::Residency& residency = source_.schedule.residency(id);
    const std::string where = "r" + std::to_string(id.raw());
    if (!residency.storage.isValid() ||
        residency.storage.index() >= source_.graph.storages().size()) {
      return report(where, "found no such storage");
    }
    const int64_t arena = source_.schedule.arenaBytes(residency.space).value();
    const int64_t bytes = residencyBytes(source_, id).value();
    if (residency.offset < 0 || bytes > arena || residency.offset > arena - bytes) {
      report(where, "found bytes [" + std::to_string(residency.offset) + ", +" +
                        std::to_string(bytes) + ") outside the " + spaceName(residency.space) +
                        " arena of " + std::to_string(arena));
    }
    const int64_t unit =
        residency.space == Space::kDisk ? ir::kDiskBlock : source_.target.alignBytes;
    if (residency.offset % unit != 0) report(where, "found an offset that is not aligned");
  }

  bool isResidency(ResidencyId id) const {
    return id.isValid() && id.index() < source_.schedule.residencies.size();
  }

  void checkBoundary(const ir::BoundaryEntry& entry) {
    const std::string where = "boundary of storage " + std::to_string(entry.storage.raw());
    if (!entry.storage.isValid() || entry.storage.index() >= source_.graph.storages().size()) {
      return report("boundary", "found no such storage");
    }
    const bool isInput = source_.graph.storage(entry.storage).role == ir::Role::kInput;
    if (isInput && entry.at.size() != 1) report(where, "found no one residency for an input");
    for (const ResidencyId id : entry.at) {
      if (!isResidency(id)) {
        report(where, "found no residency r" + std::to_string(id.raw()));
      } else if (source_.schedule.residency(id).storage != entry.storage) {
        report(where, "found a residency of another storage");
      }
    }
  }

  void checkCommand(CommandId id) {
    const Command& command = source_.schedule.command(id);
    const std::string where = "c" + std::to_string(id.raw());
    if (static_cast<int>(command.stream) >= ir::kStreamCount) {
      return report(where, "found no such stream");
    }
    for (const CommandId earlier : command.wait) {
      if (!earlier.isValid() || earlier >= id) report(where, "waits for a later command");
    }
    for (const CommandId earlier : command.prev) {
      if (!earlier.isValid() || earlier.index() >= source_.schedule.commands.size()) {
        report(where, "waits for no command of the step before");
      }
    }
    command.kind == CommandKind::kRun ? checkRun(where, command) : checkCopy(where, command);
  }

  void checkRun(const std::string& where, const Command& command) {
    const ir::Graph& graph = source_.graph;
    if (command.stream != Stream::kCompute && command.stream != Stream::kHostCompute &&
        command.stream != Stream::kCollective) {
      report(where, std::string("runs a node on ") + streamName(command.stream));
    }
    if (!command.node.isValid() || command.node.index() >= graph.nodes().size()) {
      return report(where, "found no such node");
    }
    checkOperands(where, command, command.in, false);
    checkOperands(where, command, command.out, true);
    const int64_t arena = source_.schedule.arenaBytes(Space::kDevice).value();
    const int64_t bytes = command.temp.bytes.value();
    if (bytes < 0 || (bytes > 0 && (command.temp.offset < 0 || bytes > arena ||
                                    command.temp.offset > arena - bytes))) {
      report(where, "found a temp region outside the arena");
    }
  }

  void checkOperands(const std::string& where, const Command& command,
                     llvm::ArrayRef<ResidencyId> found, bool written) {
    const char* which = written ? "out" : "in";
    const int expected = countResidencies(source_.graph, command, written);
    if (static_cast<int>(found.size()) != expected) {
      return report(where, std::string("found ") + std::to_string(found.size()) + " '" + which +
                               "' residencies, expected " + std::to_string(expected));
    }
    size_t next = 0;
    for (const ir::Access& access : accessesOf(source_.graph, command)) {
      if (!(written ? access.writes() : access.reads())) continue;
      const ResidencyId id = found[next++];
      if (!isResidency(id) || source_.schedule.residency(id).storage != access.storage) {
        report(where, std::string("'") + which + "' has r" + std::to_string(id.raw()) +
                          ", expected a residency of " +
                          quoted(source_.graph.storage(access.storage).name));
      } else if (source_.schedule.residency(id).space != runSpace(command, access.storage)) {
        report(where, "uses r" + std::to_string(id.raw()) + " in another space");
      }
    }
  }

  Space runSpace(const Command& command, ir::StorageId storage) const {
    return command.stream == Stream::kHostCompute ? Space::kHost
                                                  : source_.graph.storage(storage).home;
  }

  void checkCopy(const std::string& where, const Command& command) {
    if (!isResidency(command.from) || !isResidency(command.to)) {
      return report(where, "copies from or to no residency");
    }
    const ir::Residency& from = source_.schedule.residency(command.from);
    const ir::Residency& to = source_.schedule.residency(command.to);
    if (from.storage != to.storage) report(where, "copies one storage into another");
    if (!isStreamOfCopy(command.stream, from.space, to.space)) {
      report(where, std::string("copies ") + spaceName(from.space) + " to " + spaceName(to.space) +
                        " on " + streamName(command.stream));
    }
  }

  ProgramSource source_;
  std::vector<std::string> notes_;
};

ir::Error checkIdentities(const ir::Graph& graph, const ir::Schedule& schedule,
                          const ir::Target& target) {
  const auto mismatch = [](const char* what, const std::string& found,
                           const std::string& expected) {
    return ir::makeError(ir::ErrorCode::kPlanMismatch, std::string("the plan is for ") + what +
                                                           " " + quoted(found) + ", expected " +
                                                           quoted(expected));
  };
  if (schedule.level != ir::Level::kSynced) {
    return ir::makeError(ir::ErrorCode::kInvalidIr, std::string("found a schedule at level '") +
                                                        levelName(schedule.level) +
                                                        "', expected 'synced'");
  }
  if (const std::string own = fingerprint(graph); schedule.graphFingerprint != own) {
    return mismatch("graph", schedule.graphFingerprint, own);
  }
  if (const std::string own = fingerprint(target); schedule.targetFingerprint != own) {
    return mismatch("target", schedule.targetFingerprint, own);
  }
  return ir::success();
}

}  // namespace

ir::Error checkExecutable(const ir::Graph& graph, const ir::Schedule& schedule,
                          const ir::Target& target) {
  if (ir::Error error = checkIdentities(graph, schedule, target)) return error;
  return Checker(graph, schedule, target).run();
}

}  // namespace stowage::runtime
