// SPDX-License-Identifier: Apache-2.0
//
// V31: the decision rows and the commands say the same. A gap is two consecutive accesses of a
// storage by nodes on the device, in the graph's order, the later one reading; a persistent
// storage's last gap ends with its first access in the next step. A gap in which a node on the host
// writes is no decision: its bytes come from the host. What happened in it follows from the write
// that defined what the later access reads: the same as for the earlier access (kept), a copy
// (host, or disk if the host's bytes came from there within the gap), a recompute (recomputed).
// Every gap that is not kept has its row and every row has its gap. An original reads every
// recompute, directly or through other recomputes; it is then the end of a recomputed gap. A gap
// that ends in a write of the whole storage keeps no bytes: no row is needed; one of host or disk
// only says that the bytes were free.
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/verify/verify_internal.h"

namespace stowage::ir::verifier {

namespace {

constexpr int32_t kHeld = -1;  // defined before the step

class DecisionCheck {
 public:
  DecisionCheck(const Facts& facts, Report& report)
      : facts_(facts),
        report_(report),
        count_(static_cast<int64_t>(facts.schedule.commands.size())),
        nodeCount_(static_cast<int64_t>(facts.graph.nodes().size())),
        definedBy_(facts.allUses().size(), kHeld),
        lastDefined_(facts.schedule.residencies.size(), kHeld) {}

  void run() {
    traceDefinitions();
    for (const DecisionRow& row : facts_.schedule.decisions) {
      rows_[{row.storage, row.gapBegin}] = &row;
      if (row.action == GapAction::kKeep && !row.pinned) violate(row, "is kept but not pinned");
    }
    visitGaps();
    for (const auto& [key, row] : rows_) violate(*row, "is no gap between two accesses");
    checkRecomputesAreRead();
  }

 private:
  struct End {
    int64_t position = 0;  // of the node; with the number of nodes added in the next step
    const Use* use = nullptr;
    bool reads = false;
  };

  void violate(const DecisionRow& row, const std::string& what) {
    violateGap(row.storage, row.gapBegin, row.gapEnd, what);
  }
  void violateGap(StorageId storage, int64_t begin, int64_t end, const std::string& what) {
    report_.add(31, "gap [" + std::to_string(begin) + ", " + std::to_string(end) + ") of " +
                        facts_.describe(storage) + " " + what);
  }

  /// For each use, the command whose write began its live range.
  void traceDefinitions() {
    for (size_t i = 0; i < facts_.schedule.residencies.size(); ++i) {
      for (const uint32_t use : facts_.usesOf(ResidencyId(i))) {
        if (facts_.allUses()[use].defines()) lastDefined_[i] = facts_.allUses()[use].command.raw();
        definedBy_[use] = lastDefined_[i];
      }
    }
  }

  void visitGaps() {
    std::vector<End> first(facts_.graph.storages().size());
    std::vector<End> last(facts_.graph.storages().size());
    for (int64_t position = 0; position < nodeCount_; ++position) {
      const NodeId node(static_cast<size_t>(position));
      if (!facts_.original(node).isValid()) continue;
      for (const Access& access : facts_.graph.accesses(node)) {
        const size_t storage = access.storage.index();
        if (facts_.graph.node(node).onHost) {
          if (access.writes()) hostWrites_.insert({access.storage, position});
          continue;
        }
        if (facts_.graph.storage(access.storage).home == Space::kHost) continue;
        const End now{position, findUse(facts_.original(node), access.storage), access.reads()};
        if (now.use == nullptr) continue;
        if (last[storage].use == nullptr) {
          first[storage] = now;
        } else if (!isWrittenOnHost(access.storage, last[storage].position, position)) {
          checkGap(access.storage, last[storage], now);
        }
        last[storage] = now;
      }
    }
    for (size_t i = 0; i < first.size(); ++i) {
      if (first[i].use == nullptr || !facts_.graph.storages()[i].persistent) continue;
      End next = first[i];
      next.position += nodeCount_;
      if (isWrittenOnHost(StorageId(i), last[i].position, next.position)) continue;
      checkGap(StorageId(i), last[i], next);
    }
  }

  bool isWrittenOnHost(StorageId storage, int64_t begin, int64_t end) const {
    const auto next = hostWrites_.upper_bound({storage, begin});
    if (next != hostWrites_.end() && next->first == storage) return next->second < end;
    const auto first = hostWrites_.lower_bound({storage, 0});
    return first != hostWrites_.end() && first->first == storage &&
           first->second + nodeCount_ < end;
  }

  const Use* findUse(CommandId command, StorageId storage) const {
    for (const Use& use : facts_.usesOf(command)) {
      if (use.storage == storage) return &use;
    }
    return nullptr;
  }

  void checkGap(StorageId storage, const End& begin, const End& end) {
    const DecisionRow* row = takeRow(storage, begin.position, end.position);
    const bool isOptional = !end.reads;
    const GapAction action = row == nullptr ? GapAction::kKeep : row->action;
    const GapAction found = findAction(begin, end);
    if (!facts_.isAtLeast(Level::kCopied)) {
      // No copies yet: only recomputes can be told.
      if ((action == GapAction::kRecompute) == (found == GapAction::kRecompute)) return;
    } else if (isOptional) {
      const bool isMoved = action == GapAction::kHost || action == GapAction::kDisk;
      if (row == nullptr || (isMoved && !isSameLiveRange(begin, end))) return;
      if (action == found) return;
    } else if (action == found) {
      return;
    }
    violateGap(storage, begin.position, end.position,
               std::string("is ") + gapActionName(found) + " in the commands, expected " +
                   gapActionName(action) + (row == nullptr ? ", as it has no decision" : ""));
  }

  /// The row of a gap, which is then accounted for; null if it has none.
  const DecisionRow* takeRow(StorageId storage, int64_t begin, int64_t end) {
    const auto it = rows_.find({storage, begin});
    if (it == rows_.end() || it->second->gapEnd != end) return nullptr;
    const DecisionRow* row = it->second;
    rows_.erase(it);
    return row;
  }

  bool isOnHost(const Use& use) const {
    return facts_.schedule.residency(use.residency).space == Space::kHost;
  }

  /// A write, counted over two steps; none for bytes that are there for ever.
  std::optional<int64_t> timeOfDefinition(int64_t step, ResidencyId residency, int32_t definedBy) {
    if (definedBy != kHeld) return step * count_ + definedBy;
    const int32_t last = lastDefined_[residency.index()];
    if (last != kHeld) return (step - 1) * count_ + last;
    return std::nullopt;
  }

  std::optional<int64_t> timeOfDefinition(int64_t step, const Use& use) {
    const auto index = static_cast<size_t>(&use - facts_.allUses().data());
    return timeOfDefinition(step, use.residency, definedBy_[index]);
  }

  int64_t stepOf(const End& end) const { return end.position >= nodeCount_ ? 1 : 0; }

  bool isSameLiveRange(const End& begin, const End& end) {
    return begin.use->residency == end.use->residency &&
           timeOfDefinition(0, *begin.use) == timeOfDefinition(stepOf(end), *end.use);
  }

  GapAction findAction(const End& begin, const End& end) {
    if (isSameLiveRange(begin, end)) return GapAction::kKeep;
    const std::optional<int64_t> defined = timeOfDefinition(stepOf(end), *end.use);
    if (!defined) return isOnHost(*end.use) ? GapAction::kHost : GapAction::kKeep;
    const int64_t inStep = (*defined % count_ + count_) % count_;
    const CommandId definition(static_cast<size_t>(inStep));
    const Command& command = facts_.schedule.command(definition);
    if (command.kind == CommandKind::kRun) {
      return command.recompute > 0 ? GapAction::kRecompute : GapAction::kKeep;
    }
    return cameFromDisk(definition, (*defined - inStep) / count_, begin) ? GapAction::kDisk
                                                                         : GapAction::kHost;
  }

  /// The copy's source was filled from disk after the gap began.
  bool cameFromDisk(CommandId copy, int64_t step, const End& begin) {
    const Use& source = facts_.usesOf(copy).front();
    if (facts_.schedule.residency(source.residency).space == Space::kDisk) return true;
    const std::optional<int64_t> filled = timeOfDefinition(step, source);
    if (!filled || *filled < begin.use->command.raw()) return false;
    const CommandId filler(static_cast<size_t>((*filled % count_ + count_) % count_));
    const Command& command = facts_.schedule.command(filler);
    return command.kind == CommandKind::kCopy &&
           facts_.schedule.residency(command.from).space == Space::kDisk;
  }

  /// Backwards. A recompute is read when a copy, an original or a recompute that is itself read
  /// reads what it writes, before something else defines it.
  void checkRecomputesAreRead() {
    std::vector<char> isRead(static_cast<size_t>(count_), 0);
    for (size_t i = static_cast<size_t>(count_); i-- > 0;) {
      const CommandId id(i);
      const Command& command = facts_.schedule.command(id);
      if (command.kind == CommandKind::kCopy || command.recompute == 0) {
        isRead[i] = 1;
        continue;
      }
      for (const Use& use : facts_.usesOf(id)) {
        if (use.writes && isReadAfter(use, isRead)) isRead[i] = 1;
      }
      if (isRead[i] == 0) {
        report_.add(31, id,
                    facts_.describe(id) + " is a recompute, but nothing reads what it makes");
      }
    }
  }

  bool isReadAfter(const Use& write, const std::vector<char>& isRead) const {
    for (const uint32_t index : facts_.usesOf(write.residency)) {
      const Use& use = facts_.allUses()[index];
      if (use.command <= write.command) continue;
      if (use.defines()) return false;
      if (use.reads && isRead[use.command.index()] != 0) return true;
    }
    return false;
  }

  const Facts& facts_;
  Report& report_;
  const int64_t count_;  // commands
  const int64_t nodeCount_;
  std::vector<int32_t> definedBy_;    // by use: a command of this step, or kHeld
  std::vector<int32_t> lastDefined_;  // by residency: the last definition of the step, or kHeld
  std::set<std::pair<StorageId, int64_t>>
      hostWrites_;  // by nodes on the host, with their positions
  std::map<std::pair<StorageId, int64_t>, const DecisionRow*> rows_;  // not accounted for yet
};

}  // namespace

void checkDecisions(const Facts& facts, Report& report) { DecisionCheck(facts, report).run(); }

}  // namespace stowage::ir::verifier
