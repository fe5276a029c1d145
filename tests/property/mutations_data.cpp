// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/property/mutations.h"

namespace stowage::tests {

namespace {

using ir::Command;
using ir::CommandId;
using ir::CommandKind;
using ir::GapAction;
using ir::ResidencyId;
using ir::Space;
using ir::Stream;

bool isRun(const Command& command) { return command.kind == CommandKind::kRun; }
bool isCopy(const Command& command, Stream stream) {
  return !isRun(command) && command.stream == stream;
}

bool reads(const Command& command, ResidencyId id) {
  return command.from == id || std::count(command.in.begin(), command.in.end(), id) > 0;
}
bool writes(const Command& command, ResidencyId id) {
  return command.to == id || std::count(command.out.begin(), command.out.end(), id) > 0;
}

MutationKind atCommand(const char* name, int rule,
                       const std::function<Change(Case&, size_t)>& change) {
  return {name, rule, [=](const Case& original, const Visit& visit) {
            forEachPosition(original, original.schedule.commands.size(), visit,
                            [&](Case& changed, size_t i) {
                              Change made = change(changed, i);
                              if (made.expected.empty()) made.expected = {rule};
                              made.site = "c" + std::to_string(i);
                              return made;
                            });
          }};
}

MutationKind atEntry(const char* name, int rule,
                     const std::function<Change(Case&, ir::BoundaryEntry&, size_t)>& change) {
  return {name, rule, [=](const Case& original, const Visit& visit) {
            forEachPosition(original, original.schedule.boundary.size(), visit,
                            [&](Case& changed, size_t i) {
                              Change made = change(changed, changed.schedule.boundary[i], i);
                              if (made.expected.empty()) made.expected = {rule};
                              return made;
                            });
          }};
}

MutationKind atRow(const char* name, const std::function<bool(ir::Schedule&, size_t)>& change) {
  return {name, 31, [=](const Case& original, const Visit& visit) {
            forEachPosition(original, original.schedule.decisions.size(), visit,
                            [&](Case& changed, size_t i) -> Change {
                              return {change(changed.schedule, i), "", {31}};
                            });
          }};
}

/// An in-place original moved to before an original that reads the version it replaces.
Change moveUpdateUp(Case& changed, size_t i) {
  ir::Schedule& schedule = changed.schedule;
  const Command& update = schedule.commands[i];
  if (!isRun(update) || update.recompute > 0) return {};
  for (const ResidencyId out : update.out) {
    if (!reads(update, out)) continue;
    for (size_t j = i; j-- > 0;) {
      const Command& reader = schedule.commands[j];
      if (writes(reader, out)) break;
      if (!isRun(reader) || !reads(reader, out)) continue;
      moveCommandUp(schedule, i, j);
      return {.applies = true};
    }
  }
  return {};
}

/// What the copy or recompute at `index` fills is not filled.
Change dropFill(Case& changed, size_t index) {
  ir::Schedule& schedule = changed.schedule;
  const Command fill = schedule.commands[index];
  const ResidencyId target = fill.to;
  bool wasFilled = isHeld(schedule, target);
  for (size_t i = 0; i < index; ++i) wasFilled |= writes(schedule.commands[i], target);
  std::set<int> expected;
  bool isRead = false;
  for (size_t i = index + 1; i < schedule.commands.size() && !isRead; ++i) {
    const Command& command = schedule.commands[i];
    if (writes(command, target) && !reads(command, target)) break;
    if (!reads(command, target)) continue;
    isRead = true;
    // An earlier fill now has to last, and what used its bytes meanwhile is in the way (V13, and
    // V17 where that was a temporary region).
    expected = wasFilled ? std::set<int>{6, 7, 13, 17, 23} : std::set<int>{isRun(command) ? 8 : 9};
  }
  if (!isRead) expected = {6, 23, 31};
  eraseCommand(schedule, index);
  return {.applies = true, .expected = expected};
}

std::vector<MutationKind> versionMutations() {
  return {
      atCommand("update before the last reader", 7, moveUpdateUp),
      atCommand("operand of another storage", 7,
                [](Case& changed, size_t i) -> Change {
                  Command& run = changed.schedule.commands[i];
                  if (!isRun(run) || run.in.empty()) return {};
                  const ir::Residency old = changed.schedule.residency(run.in[0]);
                  for (size_t r = 0; r < changed.schedule.residencies.size(); ++r) {
                    const ir::Residency& other = changed.schedule.residencies[r];
                    if (other.storage == old.storage || other.space != old.space) continue;
                    run.in[0] = ResidencyId(r);
                    return {.applies = true};
                  }
                  return {};
                }),
      atCommand("offload of a dirty storage dropped", 7,
                [](Case& changed, size_t i) -> Change {
                  const Command& copy = changed.schedule.commands[i];
                  return isCopy(copy, Stream::kDeviceToHost) ? dropFill(changed, i) : Change{};
                }),
      atCommand("copy to disk dropped", 7,
                [](Case& changed, size_t i) -> Change {
                  const Command& copy = changed.schedule.commands[i];
                  return isCopy(copy, Stream::kDiskWrite) ? dropFill(changed, i) : Change{};
                }),
      atCommand("copy in dropped", 8,
                [](Case& changed, size_t i) -> Change {
                  const Command& copy = changed.schedule.commands[i];
                  return isCopy(copy, Stream::kHostToDevice) ? dropFill(changed, i) : Change{};
                }),
      atCommand("copy from disk dropped", 9,
                [](Case& changed, size_t i) -> Change {
                  const Command& copy = changed.schedule.commands[i];
                  return isCopy(copy, Stream::kDiskRead) ? dropFill(changed, i) : Change{};
                }),
      atCommand(
          "recompute dropped", 8,
          [](Case& changed, size_t i) -> Change {
            const Command run = changed.schedule.commands[i];
            if (!isRun(run) || run.recompute == 0) return {};
            const bool inPlace = reads(run, run.out.front());
            eraseCommand(changed.schedule, i);
            return {.applies = true, .expected = inPlace ? std::set<int>{7} : std::set<int>{8, 9}};
          }),
      atCommand("in place on two residencies", 22,
                [](Case& changed, size_t i) -> Change {
                  Command& run = changed.schedule.commands[i];
                  for (ResidencyId& out : run.out) {
                    if (!reads(run, out)) continue;
                    const ir::Residency old = changed.schedule.residency(out);
                    out = addResidency(changed.schedule, old.storage, old.space, old.offset);
                    return {.applies = true};
                  }
                  return {};
                }),
  };
}

std::vector<MutationKind> copyMutations() {
  std::vector<MutationKind> kinds = {
      atCommand("copy to another storage", 9,
                [](Case& changed, size_t i) -> Change {
                  Command& copy = changed.schedule.commands[i];
                  if (isRun(copy)) return {};
                  const ir::Residency old = changed.schedule.residency(copy.to);
                  for (size_t r = 0; r < changed.schedule.residencies.size(); ++r) {
                    const ir::Residency& other = changed.schedule.residencies[r];
                    if (other.storage == old.storage || other.space != old.space) continue;
                    copy.to = ResidencyId(r);
                    return {.applies = true};
                  }
                  return {};
                }),
      atCommand("copy from the device to disk", 9,
                [](Case& changed, size_t i) -> Change {
                  Command& copy = changed.schedule.commands[i];
                  if (!isCopy(copy, Stream::kDeviceToHost)) return {};
                  const ir::StorageId storage = changed.schedule.residency(copy.to).storage;
                  copy.to = addResidency(changed.schedule, storage, Space::kDisk, 0);
                  return {.applies = true};
                }),
      atCommand("copy within its space", 9,
                [](Case& changed, size_t i) -> Change {
                  Command& copy = changed.schedule.commands[i];
                  if (isRun(copy)) return {};
                  const ir::Residency from = changed.schedule.residency(copy.from);
                  copy.to = addResidency(changed.schedule, from.storage, from.space, 0);
                  return {.applies = true};
                }),
  };
  for (const Stream engine :
       {Stream::kDeviceToHost, Stream::kHostToDevice, Stream::kDiskRead, Stream::kDiskWrite}) {
    kinds.push_back(
        atCommand("copy on another engine", 9, [engine](Case& changed, size_t i) -> Change {
          Command& copy = changed.schedule.commands[i];
          if (isRun(copy) || copy.stream == engine) return {};
          copy.stream = engine;
          return {.applies = true};
        }));
  }
  return kinds;
}

std::vector<MutationKind> inPlaceReuseMutations() {
  return {
      atCommand("reader after a in-place reuse", 21,
                [](Case& changed, size_t i) -> Change {
                  ir::Schedule& schedule = changed.schedule;
                  const ResidencyId taken = schedule.commands[i].takes;
                  if (!taken.isValid()) return {};
                  Command copy;
                  copy.kind = CommandKind::kCopy;
                  copy.stream = Stream::kDeviceToHost;
                  copy.from = taken;
                  copy.to = addResidency(schedule, schedule.residency(taken).storage, Space::kHost,
                                         schedule.arenaBytes(Space::kHost).value());
                  copy.wait = {CommandId(i)};
                  insertCommand(schedule, i + 1, copy);
                  return {.applies = true};
                }),
      atCommand("in-place reuse during an offload", 21,
                [](Case& changed, size_t i) -> Change {
                  ir::Schedule& schedule = changed.schedule;
                  const ResidencyId taken = schedule.commands[i].takes;
                  if (!taken.isValid()) return {};
                  Command copy;
                  copy.kind = CommandKind::kCopy;
                  copy.stream = Stream::kDeviceToHost;
                  copy.from = taken;
                  copy.to = addResidency(schedule, schedule.residency(taken).storage, Space::kHost,
                                         schedule.arenaBytes(Space::kHost).value());
                  for (size_t j = i; j-- > 0;) {
                    if (!writes(schedule.commands[j], taken)) continue;
                    copy.wait = {CommandId(j)};
                    break;
                  }
                  insertCommand(schedule, i, copy);
                  return {.applies = true};
                }),
      atCommand("overlap with an operand without a in-place reuse", 13,
                [](Case& changed, size_t i) -> Change {
                  ResidencyId& takes = changed.schedule.commands[i].takes;
                  if (!takes.isValid()) return {};
                  takes = {};
                  return {.applies = true};
                }),
      atCommand("in-place reuse of an operand that lies elsewhere", 21,
                [](Case& changed, size_t i) -> Change {
                  Command& run = changed.schedule.commands[i];
                  if (!isRun(run) || run.takes.isValid() || run.in.empty()) return {};
                  run.takes = run.in.front();
                  return {.applies = true};
                }),
      atCommand("in-place reuse of no operand", 21,
                [](Case& changed, size_t i) -> Change {
                  Command& run = changed.schedule.commands[i];
                  if (!isRun(run)) return {};
                  for (size_t r = 0; r < changed.schedule.residencies.size(); ++r) {
                    if (reads(run, ResidencyId(r))) continue;
                    run.takes = ResidencyId(r);
                    return {.applies = true};
                  }
                  return {};
                }),
  };
}

bool isOverwrittenFirst(const ir::Graph& graph, ir::StorageId storage) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      if (access.storage == storage) return !access.reads();
    }
  }
  return false;
}

std::vector<MutationKind> boundaryMutations() {
  return {
      atEntry("dirty flipped", 23,
              [](Case&, ir::BoundaryEntry& entry, size_t) -> Change {
                entry.dirty = !entry.dirty;
                return {.applies = true};
              }),
      atEntry("entry dropped", 23,
              [](Case& changed, ir::BoundaryEntry&, size_t i) -> Change {
                changed.schedule.boundary.erase(changed.schedule.boundary.begin() +
                                                static_cast<ptrdiff_t>(i));
                return {.applies = true};
              }),
      atEntry("only residency dropped", 23,
              [](Case& changed, ir::BoundaryEntry& entry, size_t) -> Change {
                if (entry.at.size() != 1) return {};
                // Nobody misses clean bytes that the next step overwrites before it reads them.
                if (isOverwrittenFirst(*changed.graph, entry.storage) && !entry.dirty) return {};
                entry.at.clear();
                return {.applies = true};
              }),
      atEntry("second residency dropped", 23,
              [](Case&, ir::BoundaryEntry& entry, size_t) -> Change {
                if (entry.at.size() < 2) return {};
                entry.at.pop_back();
                return {.applies = true, .expected = {8, 9, 23}};
              }),
      atEntry("residency that is filled too early or never", 23,
              [](Case& changed, ir::BoundaryEntry& entry, size_t) -> Change {
                const bool isInput = !changed.graph->storage(entry.storage).persistent;
                const int32_t last = changed.graph->lastVersion(entry.storage);
                if (isInput || last == 0) return {};
                // On the host, used by nobody: it holds version 0 for ever.
                entry.at.push_back(addResidency(changed.schedule, entry.storage, Space::kHost,
                                                changed.schedule.arenaBytes(Space::kHost).value()));
                entry.dirty = false;
                return {.applies = true};
              }),
  };
}

std::vector<MutationKind> decisionMutations() {
  std::vector<MutationKind> kinds = {
      atRow("decision dropped",
            [](ir::Schedule& schedule, size_t i) {
              schedule.decisions.erase(schedule.decisions.begin() + static_cast<ptrdiff_t>(i));
              return true;
            }),
      atRow("decision about another gap",
            [](ir::Schedule& schedule, size_t i) {
              ++schedule.decisions[i].gapEnd;
              return true;
            }),
      atRow("decision with another begin",
            [](ir::Schedule& schedule, size_t i) {
              --schedule.decisions[i].gapBegin;
              return schedule.decisions[i].gapBegin >= 0 &&
                     (i == 0 ||
                      std::tie(schedule.decisions[i - 1].storage,
                               schedule.decisions[i - 1].gapBegin) <
                          std::tie(schedule.decisions[i].storage, schedule.decisions[i].gapBegin));
            }),
      atRow("kept without a pin",
            [](ir::Schedule& schedule, size_t i) {
              schedule.decisions[i].action = GapAction::kKeep;
              return true;
            }),
  };
  for (const GapAction action :
       {GapAction::kKeep, GapAction::kHost, GapAction::kDisk, GapAction::kRecompute}) {
    kinds.push_back(
        atRow("action of a decision changed", [action](ir::Schedule& schedule, size_t i) {
          if (schedule.decisions[i].action == action) return false;
          schedule.decisions[i].action = action;
          schedule.decisions[i].pinned = true;
          return true;
        }));
  }
  return kinds;
}

}  // namespace

std::vector<MutationKind> dataMutations() {
  std::vector<MutationKind> kinds = versionMutations();
  for (const auto& more :
       {copyMutations(), inPlaceReuseMutations(), boundaryMutations(), decisionMutations()}) {
    kinds.insert(kinds.end(), more.begin(), more.end());
  }
  return kinds;
}

}  // namespace stowage::tests
