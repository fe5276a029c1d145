// SPDX-License-Identifier: Apache-2.0
//
// Rules that need no account of bytes or versions: what the schedule was made for (V2, V3, V28),
// each node once (V4), waits backwards (V14), commands on their streams (V15), CUDA graph mode
// (V25), step scalars (V27).
#include <set>

#include "ir/graph/collectives.h"
#include "ir/schedule/fingerprint.h"
#include "ir/verify/verify_internal.h"

namespace stowage::ir::verifier {

namespace {

/// At a lower level a schedule may not be stamped yet; what it carries must fit all the same.
void checkFingerprint(const Facts& facts, int rule, const std::string& found,
                      const std::string& expected, Report& report) {
  const bool mayBeAbsent = !facts.isAtLeast(Level::kSynced);
  if (found == expected || (mayBeAbsent && found.empty())) return;
  report.add(rule, std::string(rule == 2 ? "graph" : "target") + " fingerprint '" + found +
                       "', expected '" + expected + "'");
}

void checkOriginals(const Facts& facts, Report& report) {
  std::vector<int> launches(facts.graph.nodes().size(), 0);
  for (size_t i = 0; i < facts.schedule.commands.size(); ++i) {
    const Command& command = facts.schedule.commands[i];
    if (command.kind != CommandKind::kRun || command.recompute != 0) continue;
    if (++launches[command.node.index()] > 1) {
      report.add(4, CommandId(i),
                 facts.describe(CommandId(i)) + " runs as original again, first in " +
                     facts.describe(facts.original(command.node)));
    }
  }
  for (size_t i = 0; i < launches.size(); ++i) {
    if (launches[i] > 0) continue;
    report.add(4, "n" + std::to_string(i) + " (" + facts.graph.describeNode(NodeId(i)) +
                      ") never runs as original, expected once");
  }
}

void checkWaits(const Facts& facts, Report& report) {
  for (size_t i = 0; i < facts.schedule.commands.size(); ++i) {
    const CommandId id(i);
    for (const CommandId wait : facts.schedule.command(id).wait) {
      if (wait < id) continue;
      report.add(14, id,
                 facts.describe(id) + " waits for c" + std::to_string(wait.raw()) +
                     ", expected an earlier command");
    }
  }
}

/// The space in which an op on `stream` finds a storage.
Space spaceFor(Stream stream, const Storage& storage) {
  return stream == Stream::kHostCompute ? Space::kHost : storage.home;
}

Stream streamOf(const Node& node) {
  if (node.onHost) return Stream::kHostCompute;
  return isCollective(node) ? Stream::kCollective : Stream::kCompute;
}

void checkStream(const Facts& facts, CommandId id, Report& report) {
  const Command& command = facts.schedule.command(id);
  const bool isRun = command.kind == CommandKind::kRun;
  const bool isCopyEngine =
      command.stream >= Stream::kDeviceToHost && command.stream <= Stream::kDiskWrite;
  const Stream own = isRun ? streamOf(facts.node(command)) : Stream::kCompute;
  if (isRun ? command.stream != own : !isCopyEngine) {
    report.add(15, id,
               facts.describe(id) + " is on stream " + streamName(command.stream) + ", expected " +
                   (isRun ? streamName(own) : "a copy engine"));
    return;
  }
  if (!isRun) return;
  for (const Use& use : facts.usesOf(id)) {
    const Space space = spaceFor(command.stream, facts.graph.storage(use.storage));
    if (facts.schedule.residency(use.residency).space == space) continue;
    report.add(15, id,
               facts.describe(id) + " on stream " + streamName(command.stream) + " uses " +
                   facts.describe(use.residency) + ", expected a residency on " + spaceName(space));
  }
}

/// Calls `visit(ScalarId)` for every step scalar among the arguments.
template <typename Visitor>
void forEachScalar(const Node& node, Visitor visit) {
  for (const Argument& argument : node.args) {
    if (const auto* single = std::get_if<ScalarArg>(&argument)) {
      visit(single->scalar);
    } else if (const auto* wrapped = std::get_if<WrappedNumberArg>(&argument)) {
      if (const auto* scalar = std::get_if<ScalarId>(&wrapped->value)) visit(*scalar);
    } else if (const auto* list = std::get_if<NumberList>(&argument)) {
      for (const auto& element : *list) {
        if (const auto* scalar = std::get_if<ScalarArg>(&element)) visit(scalar->scalar);
      }
    }
  }
}

/// How many commands are recorded as one CUDA graph: all of a whole step, otherwise those before
/// the first that updates or takes a step scalar.
size_t recordedCommands(const Facts& facts) {
  const Schedule& schedule = facts.schedule;
  if (schedule.graphMode == GraphMode::kNone) return 0;
  if (schedule.graphMode == GraphMode::kWhole) return schedule.commands.size();
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    const Command& command = schedule.commands[i];
    if (command.kind != CommandKind::kRun) continue;
    bool takesScalar = false;
    forEachScalar(facts.node(command), [&](ScalarId) { takesScalar = true; });
    if (takesScalar || updatesModel(facts.node(command).phase)) return i;
  }
  return schedule.commands.size();
}

/// By storage: it lives on the host, and holds other bytes in other steps.
std::vector<bool> findChangingOnHost(const Graph& graph) {
  std::vector<bool> changes;
  for (const Storage& storage : graph.storages()) {
    changes.push_back(storage.home == Space::kHost && storage.role == Role::kInput);
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    for (const Access& access : graph.accesses(NodeId(i))) {
      const bool isOnHost = graph.storage(access.storage).home == Space::kHost;
      if (isOnHost && access.writes()) changes[access.storage.index()] = true;
    }
  }
  return changes;
}

/// Kernels and copies are in a graph; what an op reads and writes on the host it reads and writes
/// only while it is recorded.
void checkHostBytes(const Facts& facts, const std::vector<bool>& changes, CommandId id,
                    Report& report) {
  for (const Access& access : facts.graph.accesses(facts.schedule.command(id).node)) {
    if (!changes[access.storage.index()]) continue;
    report.add(25, id,
               facts.describe(id) + (access.writes() ? " leaves '" : " reads '") +
                   facts.graph.storage(access.storage).name +
                   "' on the host, which a graph would not do again");
  }
}

void checkGraphMode(const Facts& facts, Report& report) {
  const Schedule& schedule = facts.schedule;
  const bool isWhole = schedule.graphMode == GraphMode::kWhole;
  const size_t recorded = recordedCommands(facts);
  const auto changes = recorded > 0 ? findChangingOnHost(facts.graph) : std::vector<bool>();
  if (isWhole && !schedule.joined) report.add(25, "one graph of the whole step is not joined");
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    const CommandId id(i);
    const Command& command = schedule.command(id);
    if (schedule.joined && !command.prev.empty()) {
      report.add(25, id, facts.describe(id) + " waits for the step before in a joined schedule");
    }
    if (i < recorded && command.kind == CommandKind::kRun) {
      checkHostBytes(facts, changes, id, report);
    }
    if (!isWhole) continue;
    if (command.stream >= Stream::kDiskRead && command.stream <= Stream::kHostCompute) {
      report.add(25, id,
                 facts.describe(id) + " is on stream " + streamName(command.stream) +
                     ", which one graph of the whole step cannot hold");
    }
  }
}

/// A feed is found by the scalar's name, so the name must exist and be the only one.
void checkScalars(const Facts& facts, Report& report) {
  std::set<std::string> names;
  for (const StepScalar& scalar : facts.graph.scalars()) {
    if (!names.insert(scalar.name).second || scalar.name.empty()) {
      report.add(27, "step scalar '" + scalar.name + "' cannot be fed: expected a name of its own");
    }
  }
  for (size_t i = 0; i < facts.schedule.commands.size(); ++i) {
    const Command& command = facts.schedule.commands[i];
    if (command.kind != CommandKind::kRun) continue;
    forEachScalar(facts.node(command), [&](ScalarId scalar) {
      if (scalar.isValid() && scalar.index() < facts.graph.scalars().size()) return;
      report.add(27, CommandId(i),
                 facts.describe(CommandId(i)) + " takes step scalar " +
                     std::to_string(scalar.raw()) + ", which nothing feeds");
    });
  }
}

}  // namespace

void checkIdentity(const Facts& facts, Report& report) {
  checkFingerprint(facts, 2, facts.schedule.graphFingerprint, fingerprint(facts.graph), report);
  checkFingerprint(facts, 3, facts.schedule.targetFingerprint, fingerprint(facts.target), report);
  const int version = facts.schedule.opTableVersion;
  const bool mayBeAbsent = !facts.isAtLeast(Level::kSynced);
  if (version == opTableVersion() || (mayBeAbsent && version == 0)) return;
  report.add(28, "made with op table " + std::to_string(version) + ", expected " +
                     std::to_string(opTableVersion()));
}

void checkShape(const Facts& facts, Report& report) {
  checkOriginals(facts, report);
  checkWaits(facts, report);
  for (size_t i = 0; i < facts.schedule.commands.size(); ++i) {
    checkStream(facts, CommandId(i), report);
  }
  checkGraphMode(facts, report);
  checkScalars(facts, report);
}

}  // namespace stowage::ir::verifier
