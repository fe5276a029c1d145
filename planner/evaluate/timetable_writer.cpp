// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/timetable_writer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/graph/collectives.h"
#include "planner/evaluate/copy_schedule.h"
#include "planner/evaluate/dependencies.h"
#include "planner/evaluate/stalls.h"
#include "planner/evaluate/timing.h"

namespace stowage::planner {

namespace {

class Writer {
 public:
  explicit Writer(const EvaluationParts& parts)
      : p_(parts), x_(parts.expansion), problem_(parts.table.problem()) {}

  Timetable write() {
    result_.joined = problem_.graphMode == ir::GraphMode::kWhole;
    result_.devicePeak = Bytes(p_.addresses.devicePeak);
    result_.hostPeak = Bytes(p_.disk.hostPeak);
    result_.diskPeak = Bytes(p_.disk.diskPeak);
    writeReserved();
    writeDecisions();
    writeResidencies();
    writeBoundary();
    writeCommands();
    writeTimes();
    return std::move(result_);
  }

 private:
  void writeReserved() {
    Bytes offset;
    for (ir::ReservedRegion region : problem_.target.reserved) {
      region.offset = offset;
      offset += roundUp(region.bytes, problem_.target.alignBytes);
      result_.reserved.push_back(std::move(region));
    }
  }

  void writeDecisions() {
    for (size_t g = 0; g < p_.actions.size(); ++g) {
      const Gap& gap = p_.table.gaps()[g];
      if (p_.actions[g] == ir::GapAction::kKeep || gap.mustHost || !x_.ended[g]) continue;
      result_.decisions.rows.push_back({.storage = gap.storage,
                                        .gapBegin = gap.begin,
                                        .gapEnd = gap.end,
                                        .action = actionOf(g)});
      gapOfRow_.push_back(g);
    }
  }

  // What goes to disk in one gap does so in all.
  ir::GapAction actionOf(size_t gap) const {
    const bool isOnDisk = x_.onDisk[p_.table.gaps()[gap].storage.index()];
    const bool isHost = p_.actions[gap] == ir::GapAction::kHost;
    return isOnDisk && isHost ? ir::GapAction::kDisk : p_.actions[gap];
  }

  // Why each action is what it is, as the timetable shows it (words: planner/README.md).
  void writeReasons() {
    for (size_t i = 0; i < gapOfRow_.size(); ++i) {
      ir::DecisionRow& row = result_.decisions.rows[i];
      const bool isMoved = row.action != ir::GapAction::kRecompute;
      row.why = isMoved ? whyMoved(gapOfRow_[i]) : whyAgain(gapOfRow_[i]);
    }
  }
  const char* whyMoved(size_t gap) const {
    const int32_t prefetch = x_.endingPrefetch[gap];
    if (prefetch < 0) return "hidden";
    const int32_t source = x_.prefetches[static_cast<size_t>(prefetch)].source;
    const bool isWaitedFor = isBlamed_[prefetchActions_[static_cast<size_t>(prefetch)]] ||
                             (source >= 0 && isBlamed_[outActions_[static_cast<size_t>(source)]]);
    return isWaitedFor ? "waits" : "hidden";
  }
  const char* whyAgain(size_t gapIndex) const {
    const Gap& gap = p_.table.gaps()[gapIndex];
    if (!gap.mayHost) return "only";
    const size_t touch = gapIndex - p_.table.gapIndex(gap.storage, 0);
    const ir::LinkModel& links = problem_.costs.links;
    const int64_t bytes = p_.table.bytes(gap.storage);
    const int64_t copies =
        copyTime(links.deviceToHost, bytes) + copyTime(links.hostToDevice, bytes);
    return p_.table.chainTime(gap.storage, touch) <= copies ? "cheap" : "busy";
  }

  ir::ResidencyId addResidency(ir::StorageId storage, ir::Space space, int64_t offset) {
    result_.residencies.push_back({.storage = storage, .space = space, .offset = offset});
    return ir::ResidencyId(result_.residencies.size() - 1);
  }

  void writeResidencies() {
    hosts_.resize(x_.hostAtBoundary.size());
    for (size_t i = 0; i < hosts_.size(); ++i) {
      if (!x_.hostAtBoundary[i].needed || x_.onDisk[i]) continue;
      hosts_[i] = addResidency(ir::StorageId(i), ir::Space::kHost, p_.addresses.hosts[i]);
    }
    residencies_.resize(x_.liveRanges.size());
    for (size_t i = 0; i < residencies_.size(); ++i) {
      const LiveRange& range = x_.liveRanges[i];
      if (range.isHost) {
        residencies_[i] = hosts_[range.storage.index()];
      } else if (range.always || range.begin >= 0) {
        residencies_[i] = addResidency(range.storage, ir::Space::kDevice, p_.addresses.offsets[i]);
      }
    }
    writeDiskResidencies();
  }

  void writeDiskResidencies() {
    extents_.resize(p_.disk.extents.size());
    for (size_t i = 0; i < extents_.size(); ++i) {
      if (p_.disk.extents[i] < 0) continue;
      extents_[i] = addResidency(ir::StorageId(i), ir::Space::kDisk, p_.disk.extents[i]);
    }
    written_.resize(x_.offloads.size());
    for (size_t i = 0; i < written_.size(); ++i) {
      if (p_.disk.writes[i] < 0) continue;
      const ir::StorageId storage = storageOf(x_.offloads[i].liveRange);
      written_[i] = addResidency(storage, ir::Space::kHost, p_.disk.writes[i]);
    }
    read_.resize(x_.prefetches.size());
    for (size_t i = 0; i < read_.size(); ++i) {
      if (p_.disk.reads[i] < 0) continue;
      const ir::StorageId storage = storageOf(x_.prefetches[i].liveRange);
      read_[i] = addResidency(storage, ir::Space::kHost, p_.disk.reads[i]);
    }
  }

  void writeBoundary() {
    const auto& storages = problem_.graph.storages();
    for (size_t i = 0; i < storages.size(); ++i) {
      const bool isInput = storages[i].role == ir::Role::kInput;
      if (!storages[i].persistent && !isInput) continue;
      ir::BoundaryEntry entry{.storage = ir::StorageId(i)};
      const bool isBelow = isHostValid(i);
      if (isBelow) entry.at.push_back(x_.onDisk[i] ? extents_[i] : hosts_[i]);
      addReadEarly(entry);
      bool onDevice = false;
      if (!isInput && !p_.table.isHostOnly(entry.storage)) {
        for (const int32_t liveRange : boundaryLiveRanges(i)) {
          entry.at.push_back(residencies_[static_cast<size_t>(liveRange)]);
          onDevice = true;
        }
      }
      entry.dirty = storages[i].persistent && onDevice && !isBelow;
      std::sort(entry.at.begin(), entry.at.end());
      result_.boundary.push_back(std::move(entry));
    }
  }

  // What was read from disk for this step in the step before.
  void addReadEarly(ir::BoundaryEntry& entry) const {
    if (!x_.onDisk[entry.storage.index()]) return;
    for (size_t i = 0; i < x_.prefetches.size(); ++i) {
      if (p_.disk.readsEarly[i] && storageOf(x_.prefetches[i].liveRange) == entry.storage) {
        entry.at.push_back(read_[i]);
      }
    }
  }

  // The copy that brings the last version to the host may be enqueued in the step after.
  bool isHostValid(size_t storage) const {
    const HostSource& host = x_.hostAtBoundary[storage];
    if (!host.needed) return false;
    if (host.always || p_.table.isHostOnly(ir::StorageId(storage))) return true;
    if (host.offload < 0) return false;
    const auto job = static_cast<size_t>(host.offload);
    const int64_t launches = x_.launchCount();
    const int64_t boundary = (x_.offloads[job].after / launches + 1) * launches;
    return p_.copies.out[job].start.launch < boundary;
  }

  // Live ranges whose bytes the next step still uses.
  llvm::SmallVector<int32_t, 2> boundaryLiveRanges(size_t storage) const {
    llvm::SmallVector<int32_t, 2> found;
    for (const int32_t index : x_.history[storage]) {
      const LiveRange& range = x_.liveRanges[static_cast<size_t>(index)];
      const bool arrivesEarly =
          range.prefetch >= 0 && p_.copies.in[static_cast<size_t>(range.prefetch)].start.launch < 0;
      const bool leavesLate =
          range.offload >= 0 &&
          p_.copies.out[static_cast<size_t>(range.offload)].start.launch >= x_.launchCount();
      const bool crosses =
          range.always || range.end >= x_.launchCount() || arrivesEarly || leavesLate;
      if (crosses && !llvm::is_contained(found, index)) found.push_back(index);
    }
    return found;
  }

  void writeCommands() {
    prefetchActions_.resize(x_.prefetches.size());
    outActions_.resize(x_.offloads.size());
    for (const EnqueuedCommand& enqueued : p_.order.commands) {
      const auto index = static_cast<size_t>(enqueued.index);
      switch (enqueued.kind) {
        case EnqueuedCommand::Kind::kLaunch:
          addLaunch(x_.launches[index], p_.addresses.temps[index]);
          break;
        case EnqueuedCommand::Kind::kHostRun:
          addHostRun(x_.hostRuns[index].node);
          break;
        case EnqueuedCommand::Kind::kOffload: {
          const int32_t liveRange = x_.offloads[index].liveRange;
          outActions_[index] = result_.actions.size();
          addCopy(ir::Stream::kDeviceToHost, residencyId(liveRange), offloadedTo(index));
          result_.bytesOut += Bytes(bytesOf(liveRange));
          break;
        }
        case EnqueuedCommand::Kind::kPrefetch: {
          const int32_t liveRange = x_.prefetches[index].liveRange;
          prefetchActions_[index] = result_.actions.size();
          addCopy(ir::Stream::kHostToDevice, prefetchedFrom(index), residencyId(liveRange));
          result_.bytesIn += Bytes(bytesOf(liveRange));
          break;
        }
        case EnqueuedCommand::Kind::kDiskWrite:
          addCopy(ir::Stream::kDiskWrite, written_[index],
                  extents_[storageOf(x_.offloads[index].liveRange).index()]);
          break;
        case EnqueuedCommand::Kind::kDiskRead:
          addCopy(ir::Stream::kDiskRead,
                  extents_[storageOf(x_.prefetches[index].liveRange).index()], read_[index]);
          break;
      }
    }
  }

  ir::ResidencyId residencyId(int32_t liveRange) const {
    return residencies_[static_cast<size_t>(liveRange)];
  }
  ir::StorageId storageOf(int32_t liveRange) const {
    return x_.liveRanges[static_cast<size_t>(liveRange)].storage;
  }
  ir::ResidencyId offloadedTo(size_t offload) const {
    if (written_[offload].isValid()) return written_[offload];
    return hosts_[storageOf(x_.offloads[offload].liveRange).index()];
  }
  ir::ResidencyId prefetchedFrom(size_t prefetch) const {
    if (read_[prefetch].isValid()) return read_[prefetch];
    return hosts_[storageOf(x_.prefetches[prefetch].liveRange).index()];
  }
  int64_t bytesOf(int32_t liveRange) const { return p_.table.bytes(storageOf(liveRange)); }

  void addLaunch(const Launch& launch, int64_t tempOffset) {
    const bool isOnLink = ir::isCollective(problem_.graph.node(launch.node));
    ir::Command command{.kind = ir::CommandKind::kRun,
                        .stream = isOnLink ? ir::Stream::kCollective : ir::Stream::kCompute};
    command.node = launch.node;
    command.recompute = launch.recompute;
    for (const int32_t liveRange : launch.in) command.in.push_back(residencyId(liveRange));
    for (const int32_t liveRange : launch.out) command.out.push_back(residencyId(liveRange));
    const int64_t temporary = p_.table.temporary(launch.node.index());
    command.temp = {.offset = temporary > 0 ? tempOffset : 0, .bytes = Bytes(temporary)};
    command.rngSlot = launch.rngSlot;
    if (launch.takes >= 0) command.takes = residencyId(launch.takes);
    result_.actions.push_back({.command = std::move(command), .start = {}, .end = {}});
  }

  void addHostRun(ir::NodeId node) {
    ir::Command command{.kind = ir::CommandKind::kRun, .stream = ir::Stream::kHostCompute};
    command.node = node;
    command.temp = {.offset = 0, .bytes = Bytes()};
    for (const ir::Access& access : problem_.graph.accesses(node)) {
      const ir::ResidencyId residency = hosts_[access.storage.index()];
      if (access.reads()) command.in.push_back(residency);
      if (access.writes()) command.out.push_back(residency);
    }
    result_.actions.push_back({.command = std::move(command), .start = {}, .end = {}});
  }

  void addCopy(ir::Stream stream, ir::ResidencyId from, ir::ResidencyId to) {
    ir::Command command{.kind = ir::CommandKind::kCopy, .stream = stream};
    command.from = from;
    command.to = to;
    result_.actions.push_back({.command = std::move(command), .start = {}, .end = {}});
  }

  void writeTimes() {
    std::vector<ir::Command> commands;
    std::vector<ir::Stream> streams;
    std::vector<int64_t> durations;
    for (const TimedAction& action : result_.actions) {
      commands.push_back(action.command);
      streams.push_back(action.command.stream);
      durations.push_back(commandTime(problem_.graph, result_.residencies, action.command,
                                      problem_.costs, problem_.target.alignBytes)
                              .value());
    }
    Dependencies dependencies = computeDependencies(
        problem_.graph, problem_.target, result_.residencies, result_.boundary, commands);
    // Joined: the step before is over altogether.
    if (result_.joined) dependencies.prev.assign(commands.size(), {});
    const std::vector<size_t> meetings = findMeetings(problem_.graph, problem_.graphMode, commands);
    const std::vector<RateShare> shares = findRateShares(problem_.costs.links);
    const Timeline timeline =
        simulateTiming({.streams = streams,
                        .durations = durations,
                        .dependencies = dependencies,
                        .meetings = meetings,
                        .shares = shares,
                        .launchOverheads = findLaunchOverheads(problem_.graph, problem_.graphMode,
                                                               problem_.costs, commands)});
    result_.stepTime = timeline.stepTime;
    result_.computeTime = problem_.costs.totalTime();
    for (size_t i = 0; i < result_.actions.size(); ++i) {
      result_.actions[i].start = timeline.start[i];
      result_.actions[i].end = timeline.end[i];
    }
    isBlamed_ = attributeStalls(
        {.dependencies = dependencies, .meetings = meetings, .enqueued = timeline.enqueued},
        result_);
    writeReasons();
  }

  const EvaluationParts& p_;
  const Expansion& x_;
  const Problem& problem_;
  Timetable result_;
  std::vector<ir::ResidencyId> residencies_;  // by live range
  std::vector<ir::ResidencyId> hosts_;        // by storage
  std::vector<ir::ResidencyId> extents_;      // by storage: on disk
  std::vector<ir::ResidencyId> written_;      // by offload: on the host, on the way to disk
  std::vector<ir::ResidencyId> read_;         // by prefetch: on the host, on the way from disk
  std::vector<size_t> gapOfRow_;              // by decision row
  std::vector<size_t> prefetchActions_;       // by prefetch: its action
  std::vector<size_t> outActions_;            // by offload
  std::vector<bool> isBlamed_;                // by action: compute waited for its end
};

}  // namespace

Timetable writeTimetable(const EvaluationParts& parts) { return Writer(parts).write(); }

}  // namespace stowage::planner
