// SPDX-License-Identifier: Apache-2.0
//
// Abstract interpretation of one step in enqueue order: for every residency the version of its
// storage that it holds, or nothing. At the begin the boundary residencies hold version 0 and all
// others nothing; at the end (V23) the boundary residencies of persistent storages hold the last
// version, which is version 0 of the next step: so one step stands for all.
// Enqueue order is one order that the waits allow (V14); that every allowed order gives the same is
// what V10 to V13 and V24 add. Sharing of bytes does not appear here: V13 makes sure that a
// residency's bytes are its own from its first write to its last use.
// A schedule at level kOrdered has no copies yet: there, a residency that no launch has written yet
// counts as filled in time, with any version that exists by then; so does one of the boundary when
// it is read: its live range may begin late in a step and cross the step boundary.
#include <llvm/ADT/STLExtras.h>

#include "ir/verify/verify_internal.h"

namespace stowage::ir::verifier {

namespace {

constexpr int32_t kNothing = -1;
constexpr int32_t kToBeCopied = -2;

class DataCheck {
 public:
  DataCheck(const Facts& facts, Report& report)
      : facts_(facts),
        report_(report),
        hasCopies_(facts.isAtLeast(Level::kCopied)),
        holds_(facts.schedule.residencies.size(), hasCopies_ ? kNothing : kToBeCopied),
        made_(facts.graph.storages().size(), 0) {}

  void run() {
    if (hasCopies_) checkEntries();
    for (size_t i = 0; i < facts_.schedule.commands.size(); ++i) {
      const CommandId id(i);
      const Command& command = facts_.schedule.command(id);
      if (command.kind == CommandKind::kCopy) {
        runCopy(id, command);
      } else {
        runNode(id, command);
      }
    }
    if (!hasCopies_) return;
    checkEnd();
    checkOutputs();
  }

 private:
  int32_t& holds(ResidencyId id) { return holds_[id.index()]; }

  void violate(int rule, CommandId id, const std::string& what) {
    report_.add(rule, id, facts_.describe(id) + " " + what);
  }

  // The boundary on its own, and what the step begins with.
  void checkEntries() {
    for (size_t i = 0; i < facts_.graph.storages().size(); ++i) {
      const StorageId id(i);
      const Storage& storage = facts_.graph.storage(id);
      const BoundaryEntry* entry = facts_.boundary(id);
      const bool needsEntry = storage.persistent || storage.role == Role::kInput;
      if (needsEntry != (entry != nullptr)) {
        report_.add(23, facts_.describe(id) +
                            (needsEntry ? " has no boundary entry, expected one"
                                        : " has a boundary entry but does not outlive the step"));
      }
      if (entry == nullptr) continue;
      checkEntry(id, *entry);
      for (const ResidencyId at : entry->at) holds(at) = 0;
    }
  }

  void checkEntry(StorageId id, const BoundaryEntry& entry) {
    const Storage& storage = facts_.graph.storage(id);
    bool onDevice = false;
    bool below = false;
    for (const ResidencyId at : entry.at) {
      const Residency& residency = facts_.schedule.residency(at);
      (residency.space == Space::kDevice ? onDevice : below) = true;
      if (residency.storage != id) {
        report_.add(23, "boundary of " + facts_.describe(id) + " names " + facts_.describe(at));
      }
    }
    const bool isDirty = storage.persistent && onDevice && !below;
    if (entry.dirty != isDirty) {
      report_.add(23, "boundary of " + facts_.describe(id) + " is " +
                          (entry.dirty ? "dirty" : "clean") + ", expected " +
                          (isDirty ? "dirty" : "clean"));
    }
    if (!storage.persistent) {
      if (entry.at.size() == 1 && !onDevice) return;
      report_.add(23, "input " + facts_.describe(id) + " is not in one host residency");
    } else if (entry.at.empty() && !isDeadAtBoundary(id)) {
      report_.add(23, facts_.describe(id) + " is nowhere between the steps");
    }
  }

  /// Overwritten whole before any node reads what the step before left.
  bool isDeadAtBoundary(StorageId id) {
    if (firstAccess_.empty()) {
      firstAccess_.resize(facts_.graph.storages().size(), nullptr);
      for (size_t i = facts_.graph.nodes().size(); i-- > 0;) {
        for (const Access& access : facts_.graph.accesses(NodeId(i))) {
          firstAccess_[access.storage.index()] = &access;
        }
      }
    }
    const Access* first = firstAccess_[id.index()];
    return first != nullptr && !first->reads();
  }

  void runCopy(CommandId id, const Command& copy) {
    const Residency& from = facts_.schedule.residency(copy.from);
    const Residency& to = facts_.schedule.residency(copy.to);
    if (from.storage != to.storage) {
      violate(9, id, "copies " + facts_.describe(copy.from) + " to " + facts_.describe(copy.to));
    } else if (facts_.storage(copy.from).home == Space::kHost) {
      violate(9, id, "moves " + facts_.describe(from.storage) + ", which lives on the host");
    }
    // On no copy engine at all: V15.
    const bool isOnEngine =
        copy.stream >= Stream::kDeviceToHost && copy.stream <= Stream::kDiskWrite;
    if (isOnEngine) checkEngine(id, copy.stream, from.space, to.space);
    if (holds(copy.from) == kNothing) {
      violate(9, id, "copies " + facts_.describe(copy.from) + ", which holds nothing");
    }
    holds(copy.to) = from.storage == to.storage ? holds(copy.from) : kNothing;
  }

  void checkEngine(CommandId id, Stream stream, Space from, Space to) {
    struct Route {
      Space from, to;
      Stream engine;
    };
    static constexpr Route kRoutes[] = {{Space::kDevice, Space::kHost, Stream::kDeviceToHost},
                                        {Space::kHost, Space::kDevice, Stream::kHostToDevice},
                                        {Space::kDisk, Space::kHost, Stream::kDiskRead},
                                        {Space::kHost, Space::kDisk, Stream::kDiskWrite}};
    const std::string route = std::string(spaceName(from)) + " to " + spaceName(to);
    for (const Route& known : kRoutes) {
      if (known.from != from || known.to != to) continue;
      if (known.engine == stream) return;
      violate(9, id,
              "goes from " + route + " on " + streamName(stream) + ", expected " +
                  streamName(known.engine));
      return;
    }
    violate(9, id, "goes from " + route + ", which no engine does");
  }

  void runNode(CommandId id, const Command& run) {
    const llvm::ArrayRef<Use> uses = facts_.usesOf(id);
    for (const Use& use : uses) {
      if (use.reads) checkRead(id, use);
    }
    for (size_t i = 0; i < uses.size(); ++i) {
      const Use& use = uses[i];
      const bool isSplit = i > 0 && uses[i - 1].storage == use.storage;
      if (isSplit) {
        violate(22, id,
                "changes " + facts_.describe(use.storage) + " in place but reads r" +
                    std::to_string(uses[i - 1].residency.raw()) + " and writes r" +
                    std::to_string(use.residency.raw()) + ", expected one residency");
      }
      if (use.writes) write(id, use);
      if (use.writes && run.recompute == 0) made_[use.storage.index()] = use.writtenVersion;
    }
  }

  void checkRead(CommandId id, const Use& use) {
    const std::string wanted = ", expected version " + std::to_string(use.readVersion) + " of " +
                               facts_.describe(use.storage);
    const std::string reads = "reads " + facts_.describe(use.residency) + ", ";
    const int32_t held = holds(use.residency);
    if (facts_.schedule.residency(use.residency).storage != use.storage) {
      violate(7, id, reads + "another storage" + wanted);
    } else if (held == kNothing) {
      violate(8, id, reads + "which holds nothing" + wanted);
    } else if (held == kToBeCopied || (held != use.readVersion && mayBeFilledAgain(use))) {
      if (use.readVersion <= made_[use.storage.index()]) return;
      violate(7, id, reads + "before the version is made" + wanted);
    } else if (held != use.readVersion) {
      violate(7, id, reads + "which holds version " + std::to_string(held) + wanted);
    }
  }

  bool mayBeFilledAgain(const Use& use) const {
    if (hasCopies_) return false;
    const BoundaryEntry* entry = facts_.boundary(use.storage);
    return entry != nullptr && llvm::is_contained(entry->at, use.residency);
  }

  void write(CommandId id, const Use& use) {
    const bool isOwn = facts_.schedule.residency(use.residency).storage == use.storage;
    if (!isOwn) {
      violate(7, id,
              "writes " + facts_.describe(use.residency) + ", expected a residency of " +
                  facts_.describe(use.storage));
    }
    holds(use.residency) = isOwn ? use.writtenVersion : kNothing;
  }

  void checkEnd() {
    for (const BoundaryEntry& entry : facts_.schedule.boundary) {
      const Storage& storage = facts_.graph.storage(entry.storage);
      if (!storage.persistent) continue;
      const int32_t last = facts_.graph.lastVersion(entry.storage);
      for (const ResidencyId at : entry.at) {
        if (holds(at) == last) continue;
        const std::string held =
            holds(at) == kNothing ? "nothing" : "version " + std::to_string(holds(at));
        report_.add(23, facts_.describe(at) + " holds " + held +
                            " at the end of the step, expected version " + std::to_string(last));
      }
    }
  }

  void checkOutputs() {
    for (size_t i = 0; i < facts_.graph.storages().size(); ++i) {
      const StorageId id(i);
      if (!facts_.graph.storage(id).output) continue;
      const ResidencyId delivered = facts_.delivered(id);
      if (delivered.isValid() && holds(delivered) == facts_.graph.lastVersion(id)) continue;
      report_.add(6, "output " + facts_.describe(id) + " is not delivered: expected version " +
                         std::to_string(facts_.graph.lastVersion(id)) +
                         " in the last host residency that the step writes");
    }
  }

  const Facts& facts_;
  Report& report_;
  const bool hasCopies_;
  std::vector<int32_t> holds_;              // by residency: a version, kNothing or kToBeCopied
  std::vector<int32_t> made_;               // by storage: last version that an original has made
  std::vector<const Access*> firstAccess_;  // by storage, in the graph's order; made when asked for
};

}  // namespace

void checkData(const Facts& facts, Report& report) { DataCheck(facts, report).run(); }

}  // namespace stowage::ir::verifier
