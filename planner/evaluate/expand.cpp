// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/expand.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/evaluate/action_checks.h"
#include "planner/evaluate/host_copies.h"
#include "planner/evaluate/in_place_reuse.h"

namespace stowage::planner {

namespace {

using ir::GapAction;

// Where a storage's current version is while the step unfolds.
struct Holding {
  int32_t liveRange = -1;
  int32_t version = 0;
  size_t touches = 0;  // touches of the original order so far
  bool present = false;
  GapAction absentBy = GapAction::kKeep;  // kKeep: dead
};

class Expander {
 public:
  Expander(const GapTable& table, llvm::ArrayRef<GapAction> actions)
      : table_(table), graph_(table.problem().graph), actions_(actions) {}

  ir::Expected<Expansion> run(const LaunchOrder& order) {
    if (ir::Error error = checkActions(table_, actions_)) return error;
    begin();
    for (const OrderedLaunch& next : order) {
      if (ir::Error error =
              next.made.isValid() ? recomputeEarly(next.made) : add(next.node.index())) {
        return error;
      }
    }
    for (size_t i = 0; order.empty() && i < graph_.nodes().size(); ++i) {
      if (ir::Error error = add(i)) return error;
    }
    finish();
    return std::move(out_);
  }

 private:
  ir::Error add(size_t node) {
    privates_.clear();
    if (graph_.nodes()[node].onHost) {
      addHostRun(node);
      return ir::success();
    }
    if (ir::Error error = provideOperands(node)) return error;
    launchOriginal(node);
    return ir::success();
  }

  ir::Error recomputeEarly(ir::StorageId storage) {
    const Holding& holding = holdings_[storage.index()];
    if (holding.present || holding.absentBy != GapAction::kRecompute) return ir::success();
    privates_.clear();
    return provide(storage, holding.version, {}).takeError();
  }

  const std::vector<ir::Touch>& touches(ir::StorageId storage) const {
    return table_.problem().lives[storage.index()].touches;
  }
  ir::Error refuse(ir::StorageId storage, const std::string& what) const {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "storage '" + graph_.storage(storage).name + "': " + what);
  }

  // What must be on the host is, whatever was asked for.
  GapAction actionAt(size_t gap) const {
    return table_.gaps()[gap].mustHost ? GapAction::kHost : actions_[gap];
  }

  void begin() {
    const size_t storages = graph_.storages().size();
    out_.onDisk.assign(storages, false);
    for (size_t g = 0; g < actions_.size(); ++g) {
      if (actions_[g] == GapAction::kDisk) out_.onDisk[table_.gaps()[g].storage.index()] = true;
    }
    holdings_.resize(storages);
    recomputes_.assign(graph_.nodes().size(), 0);
    original_.assign(graph_.nodes().size(), -1);
    out_.history.resize(storages);
    out_.ended.assign(table_.gaps().size(), false);
    out_.endingPrefetch.assign(table_.gaps().size(), -1);
    out_.launches.reserve(graph_.nodes().size() + 1);
    out_.launches.emplace_back();
    for (size_t i = 0; i < storages; ++i) beginStorage(ir::StorageId(i));
  }

  void beginStorage(ir::StorageId id) {
    const ir::Storage& storage = graph_.storage(id);
    Holding& holding = holdings_[id.index()];
    if (table_.isHostOnly(id)) {
      if (touches(id).empty()) return;
      holding.present = true;
      holding.liveRange = addLiveRange(id);
      out_.liveRanges.back().isHost = out_.liveRanges.back().always = true;
      return;
    }
    if (storage.persistent) {
      holding.absentBy = wrapAction(id);
      holding.present = holding.absentBy == GapAction::kKeep;
      if (touches(id).empty()) {
        holding.liveRange = addLiveRange(id);
        out_.liveRanges.back().always = true;
      }
    } else if (storage.role == ir::Role::kInput) {
      holding.absentBy = GapAction::kHost;
    }
  }

  GapAction wrapAction(ir::StorageId id) const {
    const size_t count = table_.gapCount(id);
    return count == 0 ? GapAction::kKeep : actionAt(table_.gapIndex(id, count - 1));
  }

  int32_t addLiveRange(ir::StorageId storage, bool isByProduct = false) {
    const auto index = static_cast<int32_t>(out_.liveRanges.size());
    out_.liveRanges.push_back({.storage = storage});
    if (!isByProduct) out_.history[storage.index()].push_back(index);
    return index;
  }

  // Operands first: all versions that the node reads are brought to the device.
  ir::Error provideOperands(size_t node) {
    for (const ir::Access& access : graph_.accesses(ir::NodeId(node))) {
      if (!access.reads()) continue;
      ir::Expected<int32_t> liveRange = provide(access.storage, access.readVersion, {});
      if (!liveRange) return liveRange.takeError();
    }
    return ir::success();
  }

  // The live range that holds `version` of `storage` from here on. `result`: what the recompute
  // that asks for it makes; invalid for an original.
  ir::Expected<int32_t> provide(ir::StorageId storage, int32_t version, ir::StorageId result) {
    Holding& holding = holdings_[storage.index()];
    if (holding.version != version) return providePrivately(storage, version);
    if (holding.present) return presentLiveRange(storage, version);
    if (holding.absentBy == GapAction::kKeep) return provideDead(storage, version, result);
    markEnded(storage);
    if (holding.absentBy == GapAction::kRecompute) {
      return recomputeWriters(storage, version, /*isPrivate=*/false);
    }
    holding.liveRange = addLiveRange(storage);
    out_.liveRanges.back().prefetch = static_cast<int32_t>(out_.prefetches.size());
    out_.liveRanges.back().version = version;
    if (table_.gapCount(storage) > 0) {
      out_.endingPrefetch[openGap(storage)] = static_cast<int32_t>(out_.prefetches.size());
    }
    out_.prefetches.push_back({.liveRange = holding.liveRange});
    holding.present = true;
    return holding.liveRange;
  }

  int32_t presentLiveRange(ir::StorageId storage, int32_t version) {
    Holding& holding = holdings_[storage.index()];
    if (holding.liveRange < 0) {  // kept over the step boundary, first use in this step
      holding.liveRange = addLiveRange(storage);
      out_.liveRanges.back().version = version;
    }
    return holding.liveRange;
  }

  ir::Expected<int32_t> provideDead(ir::StorageId storage, int32_t version, ir::StorageId result) {
    Holding& holding = holdings_[storage.index()];
    if (table_.recomputesDeadInput(storage, holding.touches - 1, result)) {
      return recomputeWriters(storage, version, /*isPrivate=*/false);
    }
    holding.present = true;  // has stayed until now
    return holding.liveRange;
  }

  // The gap that the storage is in now: the one after its latest touch.
  size_t openGap(ir::StorageId storage) const {
    const size_t count = table_.gapCount(storage);
    return table_.gapIndex(storage, (holdings_[storage.index()].touches + count - 1) % count);
  }
  void markEnded(ir::StorageId storage) { out_.ended[openGap(storage)] = true; }

  // A version that was overwritten since: recomputed beside the current one, for this node alone.
  ir::Expected<int32_t> providePrivately(ir::StorageId storage, int32_t version) {
    for (const auto& [key, liveRange] : privates_) {
      if (key == std::pair(storage, version)) return liveRange;
    }
    return recomputeWriters(storage, version, /*isPrivate=*/true);
  }

  ir::Expected<int32_t> recomputeWriters(ir::StorageId storage, int32_t version, bool isPrivate) {
    size_t last = touches(storage).size();
    while (last > 0 &&
           !(touches(storage)[last - 1].writes && touches(storage)[last - 1].version == version)) {
      --last;
    }
    const int32_t first = last == 0 ? -1 : table_.chainBegin(storage, last - 1);
    if (first < 0) {
      return refuse(storage, "version " + std::to_string(version) +
                                 " is needed again after it is gone, and may not be recomputed");
    }
    for (auto k = static_cast<size_t>(first); k < last; ++k) {
      if (!touches(storage)[k].writes) continue;
      const auto node = static_cast<size_t>(touches(storage)[k].position);
      if (ir::Error error = recompute(node, storage, isPrivate)) return error;
    }
    const int32_t liveRange = chainLiveRanges_.back().second;
    chainLiveRanges_.pop_back();
    if (isPrivate) privates_.push_back({{storage, version}, liveRange});
    return liveRange;
  }

  // Recomputes `node` to advance the chain that makes `target`. The chain's own live range is in
  // chainLiveRanges_, whose last entry belongs to the innermost chain.
  ir::Error recompute(size_t node, ir::StorageId target, bool isPrivate) {
    llvm::SmallVector<std::pair<ir::StorageId, int32_t>, 4> operands;
    for (const ir::Access& access : table_.recomputeAccesses(node)) {
      if (!access.reads() || access.storage == target) continue;
      ir::Expected<int32_t> liveRange = provide(access.storage, access.readVersion, target);
      if (!liveRange) return liveRange.takeError();
      operands.push_back({access.storage, *liveRange});
    }
    launchRecompute(node, target, isPrivate, operands);
    return ir::success();
  }

  // Nothing of it is on the device. It may give new bytes to what the last launch that reads the
  // old ones is done with.
  void addHostRun(size_t node) {
    HostRun run{.node = ir::NodeId(node)};
    for (const ir::Access& access : graph_.accesses(run.node)) {
      Holding& holding = holdings_[access.storage.index()];
      if (!access.writes() || table_.isHostOnly(access.storage)) continue;
      run.after = std::max(run.after, out_.liveRanges[static_cast<size_t>(holding.liveRange)].end);
      holding.version = access.writtenVersion;
    }
    out_.hostRuns.push_back(std::move(run));
  }

  void launchOriginal(size_t node) {
    const auto launch = static_cast<int32_t>(out_.launches.size());
    original_[node] = launch;
    Launch launched{.node = ir::NodeId(node)};
    for (const ir::Access& access : graph_.accesses(ir::NodeId(node))) {
      Holding& holding = holdings_[access.storage.index()];
      if (access.reads()) {
        touch(holding.liveRange, launch);
        launched.in.push_back(holding.liveRange);
      }
      if (access.writes()) {
        if (!access.reads()) holding.liveRange = makeWritten(access.storage);
        write(holding.liveRange, launch, access.writtenVersion);
        launched.out.push_back(holding.liveRange);
        holding.version = access.writtenVersion;
      }
      afterTouch(access.storage);
    }
    out_.launches.push_back(std::move(launched));
  }

  // A write that does not read starts anew, but on the host there is one place only.
  int32_t makeWritten(ir::StorageId storage) {
    return table_.isHostOnly(storage) ? holdings_[storage.index()].liveRange
                                      : addLiveRange(storage);
  }

  void afterTouch(ir::StorageId storage) {
    if (table_.isHostOnly(storage)) return;
    Holding& holding = holdings_[storage.index()];
    const size_t gap = table_.gapIndex(storage, holding.touches++);
    holding.absentBy = actionAt(gap);
    holding.present = holding.absentBy == GapAction::kKeep && table_.gaps()[gap].live;
  }

  void launchRecompute(size_t node, ir::StorageId target, bool isPrivate,
                       llvm::ArrayRef<std::pair<ir::StorageId, int32_t>> operands) {
    const auto launch = static_cast<int32_t>(out_.launches.size());
    Launch launched{.node = ir::NodeId(node), .recompute = ++recomputes_[node]};
    size_t operand = 0;
    for (const ir::Access& access : table_.recomputeAccesses(node)) {
      int32_t liveRange = -1;
      if (access.reads()) {
        liveRange =
            access.storage == target ? chainLiveRanges_.back().second : operands[operand++].second;
        touch(liveRange, launch);
        launched.in.push_back(liveRange);
      }
      if (!access.writes()) continue;
      if (!access.reads()) liveRange = makeRecomputed(access, target, isPrivate);
      write(liveRange, launch, access.writtenVersion);
      launched.out.push_back(liveRange);
    }
    if (table_.isRandom(node)) launched.rngSlot = rngSlot(node);
    out_.launches.push_back(std::move(launched));
  }

  // A new live range for a result of a recompute. The result is the target, or another one that is
  // missing too and complete with this write (so it is not recomputed later), or a by-product that
  // nobody reads.
  int32_t makeRecomputed(const ir::Access& access, ir::StorageId target, bool isPrivate) {
    Holding& holding = holdings_[access.storage.index()];
    const bool isTarget = access.storage == target;
    const bool isMissing = !holding.present && holding.absentBy == GapAction::kRecompute &&
                           holding.version == access.writtenVersion &&
                           holding.touches < touches(access.storage).size();
    const bool isKept = isTarget ? !isPrivate : isMissing;
    const int32_t liveRange = addLiveRange(access.storage, /*isByProduct=*/!isKept);
    if (isTarget) chainLiveRanges_.push_back({access.storage, liveRange});
    if (isKept) {
      if (!isTarget) markEnded(access.storage);
      holding.liveRange = liveRange;
      holding.present = true;
    }
    return liveRange;
  }

  int32_t rngSlot(size_t node) {
    Launch& original = out_.launches[static_cast<size_t>(original_[node])];
    if (original.rngSlot < 0) original.rngSlot = rngSlots_++;
    return original.rngSlot;
  }

  void touch(int32_t index, int32_t launch) {
    LiveRange& range = out_.liveRanges[static_cast<size_t>(index)];
    if (range.begin < 0) range.begin = launch;
    range.end = launch;
  }
  void write(int32_t index, int32_t launch, int32_t version) {
    touch(index, launch);
    LiveRange& range = out_.liveRanges[static_cast<size_t>(index)];
    range.lastWrite = launch;
    range.version = version;
  }

  void finish() {
    for (Prefetch& prefetch : out_.prefetches) {
      prefetch.deadline = out_.liveRanges[static_cast<size_t>(prefetch.liveRange)].begin;
    }
    goesOnAs_.resize(out_.liveRanges.size());
    std::iota(goesOnAs_.begin(), goesOnAs_.end(), 0);
    for (size_t i = 0; i < graph_.storages().size(); ++i) joinAtBoundary(ir::StorageId(i));
    for (Launch& launch : out_.launches) renameLiveRanges(launch);
    deriveHostCopies(table_, out_);
    if (table_.problem().allowed.inPlaceReuse) reuseOperandsInPlace(table_, out_);
  }

  // A storage that is kept over the step boundary keeps its bytes: its last live range goes on as
  // the first one of the next step.
  void joinAtBoundary(ir::StorageId id) {
    auto& history = out_.history[id.index()];
    if (!graph_.storage(id).persistent || table_.isHostOnly(id) || touches(id).empty()) return;
    if (wrapAction(id) != GapAction::kKeep || touches(id).front().whole) return;
    const int32_t first = history.front();
    const int32_t last = history.back();
    LiveRange& early = out_.liveRanges[static_cast<size_t>(first)];
    LiveRange& late = out_.liveRanges[static_cast<size_t>(last)];
    if (first == last) {
      late.always = true;
      return;
    }
    const int32_t period = out_.launchCount();
    late.end = early.end + period;
    if (early.lastWrite >= 0) late.lastWrite = early.lastWrite + period;
    if (early.lastWrite >= 0) late.version = early.version;
    goesOnAs_[static_cast<size_t>(first)] = last;
    history.front() = last;
    early = {.storage = id};  // unused: begin stays -1
  }

  void renameLiveRanges(Launch& launch) const {
    for (int32_t& liveRange : launch.in) liveRange = goesOnAs_[static_cast<size_t>(liveRange)];
    for (int32_t& liveRange : launch.out) liveRange = goesOnAs_[static_cast<size_t>(liveRange)];
  }

  const GapTable& table_;
  const ir::Graph& graph_;
  llvm::ArrayRef<GapAction> actions_;
  Expansion out_;
  std::vector<Holding> holdings_;
  std::vector<int32_t> recomputes_;
  std::vector<int32_t> original_;
  std::vector<int32_t> goesOnAs_;  // by live range
  llvm::SmallVector<std::pair<ir::StorageId, int32_t>, 4> chainLiveRanges_;
  llvm::SmallVector<std::pair<std::pair<ir::StorageId, int32_t>, int32_t>, 2> privates_;
  int32_t rngSlots_ = 0;
};

}  // namespace

ir::Expected<Expansion> expand(const GapTable& table, llvm::ArrayRef<ir::GapAction> actions,
                               const LaunchOrder& order) {
  return Expander(table, actions).run(order);
}

}  // namespace stowage::planner
