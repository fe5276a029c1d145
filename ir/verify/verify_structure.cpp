// SPDX-License-Identifier: Apache-2.0
//
// V1 on objects: ids in range, enumerators that exist, lists in their one order, operands that
// match the node's accesses in number, numbers that cannot overflow. (Version and schema of a file
// are the reader's.) Nothing here says that a schedule is right, only that the other rules can read
// it.
#include <tuple>

#include "ir/verify/verify_internal.h"

namespace stowage::ir::verifier {

namespace {

/// Offsets and sizes stay below this, so that their sums cannot overflow.
constexpr int64_t kLargestOffset = int64_t{1} << 60;

template <typename Tag>
bool isIn(Id<Tag> id, size_t count) {
  return id.isValid() && id.index() < count;
}

template <typename Tag>
bool areAscendingIn(llvm::ArrayRef<Id<Tag>> ids, size_t count) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!isIn(ids[i], count) || (i > 0 && !(ids[i - 1] < ids[i]))) return false;
  }
  return true;
}

bool isPlausible(Bytes bytes) { return bytes.value() >= 0 && bytes.value() <= kLargestOffset; }
bool isPlausible(int64_t offset) { return offset >= -kLargestOffset && offset <= kLargestOffset; }
bool isSpace(Space space) { return space <= Space::kDisk; }

class StructureCheck {
 public:
  StructureCheck(const VerifyInput& input, Report& report)
      : graph_(input.graph), schedule_(input.schedule), target_(input.target), report_(report) {}

  void run() {
    checkTarget();
    checkArenas();
    for (size_t i = 0; i < schedule_.residencies.size(); ++i) checkResidency(i);
    for (size_t i = 0; i < schedule_.boundary.size(); ++i) checkEntry(i);
    for (size_t i = 0; i < schedule_.decisions.size(); ++i) checkRow(i);
    for (size_t i = 0; i < schedule_.commands.size(); ++i) checkCommand(CommandId(i));
  }

 private:
  void expect(bool holds, const std::string& message, CommandId command = {}) {
    if (!holds) report_.add(1, command, message);
  }

  void checkTarget() {
    const int64_t align = target_.alignBytes;
    expect(align > 0 && (align & (align - 1)) == 0 && align <= kLargestOffset,
           "alignment " + std::to_string(align) + " of the target, expected a power of two");
    for (const Storage& storage : graph_.storages()) {
      expect(isPlausible(storage.bytes), "storage '" + storage.name + "' has impossible bytes");
    }
    expect(schedule_.level <= Level::kSynced, "unknown level");
    expect(schedule_.graphMode <= GraphMode::kWhole, "unknown graph mode");
  }

  void checkArenas() {
    const std::vector<Arena>& arenas = schedule_.arenas;
    for (size_t i = 0; i < arenas.size(); ++i) {
      expect(isSpace(arenas[i].space) && isPlausible(arenas[i].bytes),
             "arena " + std::to_string(i) + " has an unknown space or impossible bytes");
      expect(i == 0 || arenas[i - 1].space < arenas[i].space,
             "arenas out of order, expected device, host, disk, each at most once");
    }
    for (const ReservedRegion& region : schedule_.reserved) {
      expect(isPlausible(region.offset) && isPlausible(region.bytes),
             "reserved region '" + region.what + "' has an impossible offset or size");
    }
  }

  void checkResidency(size_t index) {
    const Residency& residency = schedule_.residencies[index];
    const std::string name = "r" + std::to_string(index);
    expect(isIn(residency.storage, graph_.storages().size()), name + " names no storage");
    expect(isSpace(residency.space), name + " is in an unknown space");
    expect(isPlausible(residency.offset), name + " has an impossible offset");
  }

  void checkEntry(size_t index) {
    const BoundaryEntry& entry = schedule_.boundary[index];
    const std::string name = "boundary entry " + std::to_string(index);
    expect(isIn(entry.storage, graph_.storages().size()), name + " names no storage");
    expect(index == 0 || schedule_.boundary[index - 1].storage < entry.storage,
           name + " is out of order, expected one entry per storage, ascending");
    expect(areAscendingIn<ResidencyTag>(entry.at, schedule_.residencies.size()),
           name + " does not list residencies in ascending order");
  }

  void checkRow(size_t index) {
    const DecisionRow& row = schedule_.decisions[index];
    const std::string name = "decision " + std::to_string(index);
    expect(isIn(row.storage, graph_.storages().size()), name + " names no storage");
    expect(row.action <= GapAction::kRecompute, name + " has an unknown action");
    if (index == 0) return;
    const DecisionRow& before = schedule_.decisions[index - 1];
    expect(std::tie(before.storage, before.gapBegin) < std::tie(row.storage, row.gapBegin),
           name + " is out of order, expected one row per storage and gap, ascending");
  }

  void checkCommand(CommandId id) {
    const Command& command = schedule_.command(id);
    const size_t count = schedule_.commands.size();
    expect(static_cast<int>(command.stream) < kStreamCount, "unknown stream", id);
    expect(areAscendingIn<CommandTag>(command.wait, count),
           "waits that are not commands in ascending order", id);
    expect(areAscendingIn<CommandTag>(command.prev, count),
           "waits on the step before that are not commands in ascending order", id);
    if (command.kind == CommandKind::kRun) {
      checkRun(id, command);
    } else {
      checkCopy(id, command);
    }
  }

  void checkRun(CommandId id, const Command& run) {
    expect(!run.from.isValid() && !run.to.isValid(), "a run command with the fields of a copy", id);
    // Slots are places in memory: no more of them than commands.
    const auto slots = static_cast<int64_t>(schedule_.commands.size());
    expect(run.recompute >= 0 && run.rngSlot >= -1 && run.rngSlot < slots,
           "impossible recompute or rng slot", id);
    expect(isPlausible(run.temp.offset) && isPlausible(run.temp.bytes), "impossible temp region",
           id);
    const size_t residencies = schedule_.residencies.size();
    for (const ResidencyId in : run.in) expect(isIn(in, residencies), "reads no residency", id);
    for (const ResidencyId out : run.out) expect(isIn(out, residencies), "writes no residency", id);
    expect(!run.takes.isValid() || isIn(run.takes, residencies), "takes no residency", id);
    if (!isIn(run.node, graph_.nodes().size())) {
      report_.add(1, id, "runs no node");
      return;
    }
    size_t reads = 0;
    size_t writes = 0;
    for (const Access& access : accessesOf(graph_, run)) {
      reads += access.reads() ? 1 : 0;
      writes += access.writes() ? 1 : 0;
    }
    expect(run.in.size() == reads && run.out.size() == writes,
           "has " + std::to_string(run.in.size()) + " in and " + std::to_string(run.out.size()) +
               " out, expected " + std::to_string(reads) + " and " + std::to_string(writes),
           id);
  }

  void checkCopy(CommandId id, const Command& copy) {
    expect(copy.kind == CommandKind::kCopy, "unknown kind of command", id);
    const size_t residencies = schedule_.residencies.size();
    expect(isIn(copy.from, residencies) && isIn(copy.to, residencies),
           "copies from or to no residency", id);
    const bool isPlain = !copy.node.isValid() && copy.recompute == 0 && copy.in.empty() &&
                         copy.out.empty() && copy.temp == TempRegion{} && copy.rngSlot == -1 &&
                         !copy.takes.isValid();
    expect(isPlain, "a copy command with the fields of a run", id);
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const Target& target_;
  Report& report_;
};

}  // namespace

void checkStructure(const VerifyInput& input, Report& report) {
  StructureCheck(input, report).run();
}

}  // namespace stowage::ir::verifier
