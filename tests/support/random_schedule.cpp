// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_schedule.h"

#include <algorithm>
#include <random>
#include <vector>

#include "ir/graph/op_table.h"
#include "ir/schedule/fingerprint.h"
#include "tests/support/schedule_layout.h"

namespace stowage::tests {

namespace {

using ir::GapAction;
using ir::NodeId;
using ir::ResidencyId;
using ir::Space;
using ir::StorageId;
using ir::Stream;

/// Where a persistent storage is between the steps.
enum class Boundary : uint8_t {
  kNone,      // it does not outlive the step
  kDevice,    // on the device, for ever
  kMirrored,  // on the device for ever, and a copy on the host
  kHost,      // on the host; prefetched anew each step
  kTail,      // on the host, and prefetched for the next step at the end of this one
  kDisk,
  kNowhere  // overwritten whole before it is read
};

struct StorageState {
  std::vector<int64_t> nodes;   // that access it, in order
  std::vector<ir::Access> how;  // what they do
  size_t next = 0;              // position in `nodes` of the next access
  Boundary boundary = Boundary::kNone;
  int32_t version = 0;       // current
  ResidencyId device;        // holds the current version; invalid: it is not there
  ResidencyId host;          // holds hostVersion
  int32_t hostVersion = -1;  // -1: the host has nothing
  ResidencyId disk;
  int32_t diskVersion = -1;
  ResidencyId heldDevice, heldHost, heldDisk;  // boundary residencies
  bool isRecomputed = false;                   // it left to be recomputed before its next access
};

class ScheduleMaker {
 public:
  ScheduleMaker(const ir::Graph& graph, const ir::Target& target, const ScheduleStyle& style)
      : graph_(graph),
        target_(target),
        style_(style),
        dice_(style.seed),
        states_(graph.storages().size()),
        recomputes_(graph.nodes().size(), 0),
        slots_(graph.nodes().size(), -1) {}

  ir::Schedule make() {
    schedule_.level = ir::Level::kSynced;
    schedule_.graphFingerprint = ir::fingerprint(graph_);
    schedule_.targetFingerprint = ir::fingerprint(target_);
    schedule_.opTableVersion = ir::opTableVersion();
    schedule_.joined = style_.joined;
    collectAccesses();
    for (size_t i = 0; i < states_.size(); ++i) beginStorage(StorageId(i));
    for (size_t i = 0; i < graph_.nodes().size(); ++i) runNode(static_cast<int64_t>(i));
    for (size_t i = 0; i < states_.size(); ++i) endStorage(StorageId(i));
    std::sort(schedule_.decisions.begin(), schedule_.decisions.end(),
              [](const ir::DecisionRow& a, const ir::DecisionRow& b) {
                return std::tie(a.storage, a.gapBegin) < std::tie(b.storage, b.gapBegin);
              });
    finish();
    return std::move(schedule_);
  }

 private:
  bool chance(int permille) { return static_cast<int>(dice_() % 1000) < permille; }
  StorageState& state(StorageId id) { return states_[id.index()]; }
  bool isOnHost(StorageId id) const { return graph_.storage(id).home == Space::kHost; }
  bool isPinnedDown(StorageId id) {
    const Boundary boundary = state(id).boundary;
    return graph_.storage(id).output || isOnHost(id) || boundary == Boundary::kDevice ||
           boundary == Boundary::kMirrored;
  }

  void collectAccesses() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      for (const ir::Access& access : graph_.accesses(NodeId(i))) {
        state(access.storage).nodes.push_back(static_cast<int64_t>(i));
        state(access.storage).how.push_back(access);
      }
    }
  }

  ResidencyId addResidency(StorageId storage, Space space) {
    schedule_.residencies.push_back({storage, space, ir::kUnplaced});
    exclusive_.push_back(false);
    return ResidencyId(schedule_.residencies.size() - 1);
  }

  void copy(ResidencyId from, ResidencyId to, Stream stream) {
    ir::Command command;
    command.kind = ir::CommandKind::kCopy;
    command.stream = stream;
    command.from = from;
    command.to = to;
    schedule_.commands.push_back(command);
  }

  // --- the boundary ---

  void beginStorage(StorageId id) {
    const ir::Storage& storage = graph_.storage(id);
    StorageState& s = state(id);
    const bool isInput = storage.role == ir::Role::kInput;
    if (!storage.persistent && !isInput) return;
    ir::BoundaryEntry entry{.storage = id};
    if (isInput || storage.home == Space::kHost) {
      s.heldHost = addResidency(id, Space::kHost);
      if (isInput) exclusive_[s.heldHost.index()] = true;
    } else {
      s.boundary = chooseBoundary(id);
      addHeld(id, s);
    }
    for (const ResidencyId held : {s.heldDevice, s.heldHost, s.heldDisk}) {
      if (held.isValid()) entry.at.push_back(held);
    }
    std::sort(entry.at.begin(), entry.at.end());
    entry.dirty = s.heldDevice.isValid() && !s.heldHost.isValid();
    schedule_.boundary.push_back(entry);
    s.device = s.heldDevice;
    if (s.heldHost.isValid()) {
      s.host = s.heldHost;
      s.hostVersion = 0;
    }
    if (s.heldDisk.isValid()) {
      s.disk = s.heldDisk;
      s.diskVersion = 0;
    }
  }

  Boundary chooseBoundary(StorageId id) {
    const StorageState& s = state(id);
    if (s.nodes.empty() || graph_.storage(id).output) return Boundary::kDevice;
    if (!s.how.front().reads() && chance(500)) return Boundary::kNowhere;
    if (chance(style_.host)) return chance(style_.tail) ? Boundary::kTail : Boundary::kHost;
    if (chance(style_.disk)) return Boundary::kDisk;
    return chance(style_.host) ? Boundary::kMirrored : Boundary::kDevice;
  }

  void addHeld(StorageId id, StorageState& s) {
    if (s.boundary == Boundary::kDevice || s.boundary == Boundary::kMirrored ||
        s.boundary == Boundary::kTail) {
      s.heldDevice = addResidency(id, Space::kDevice);
    }
    if (s.boundary == Boundary::kHost || s.boundary == Boundary::kTail ||
        s.boundary == Boundary::kMirrored) {
      s.heldHost = addResidency(id, Space::kHost);
    }
    if (s.boundary == Boundary::kDisk) s.heldDisk = addResidency(id, Space::kDisk);
  }

  /// After the last access, and for a storage that was prefetched for recomputes since.
  void leaveAtBoundary(StorageId id) {
    StorageState& s = state(id);
    if (s.boundary == Boundary::kNowhere) {
      s.device = {};
    } else if (s.boundary == Boundary::kHost || s.boundary == Boundary::kTail) {
      offload(id);
      s.device = {};
    } else if (s.boundary == Boundary::kMirrored) {
      offload(id);
    } else if (s.boundary == Boundary::kDisk) {
      copyToDisk(id);
      s.device = {};
    }
  }

  void endStorage(StorageId id) {
    StorageState& s = state(id);
    if (s.boundary == Boundary::kTail) copy(s.heldHost, s.heldDevice, Stream::kHostToDevice);
    const bool needsDelivery = graph_.storage(id).output && !isOnHost(id) && s.version == 0 &&
                               graph_.storage(id).persistent;
    if (needsDelivery) deliver(id);
  }

  void deliver(StorageId id) {
    const ResidencyId out = addResidency(id, Space::kHost);
    exclusive_[out.index()] = true;
    copy(state(id).device, out, Stream::kDeviceToHost);
  }

  // --- leaving and coming back ---

  void offload(StorageId id) {
    StorageState& s = state(id);
    if (s.hostVersion == s.version) return;
    s.host = s.heldHost.isValid() ? s.heldHost : addResidency(id, Space::kHost);
    copy(s.device, s.host, Stream::kDeviceToHost);
    s.hostVersion = s.version;
  }

  void copyToDisk(StorageId id) {
    StorageState& s = state(id);
    if (s.diskVersion != s.version) {
      if (s.hostVersion != s.version) offload(id);
      s.disk = s.heldDisk.isValid() ? s.heldDisk : addResidency(id, Space::kDisk);
      copy(s.host, s.disk, Stream::kDiskWrite);
      s.diskVersion = s.version;
    }
    s.hostVersion = -1;
  }

  void prefetch(StorageId id) {
    StorageState& s = state(id);
    if (s.device.isValid() || isOnHost(id)) return;
    if (s.isRecomputed) {
      runRecomputes(id);
      return;
    }
    if (s.hostVersion != s.version) {
      s.host = addResidency(id, Space::kHost);
      copy(s.disk, s.host, Stream::kDiskRead);
      s.hostVersion = s.version;
    }
    s.device = addResidency(id, Space::kDevice);
    copy(s.host, s.device, Stream::kHostToDevice);
  }

  void addRow(StorageId id, int64_t begin, int64_t end, GapAction action) {
    schedule_.decisions.push_back(
        {.storage = id, .gapBegin = begin, .gapEnd = end, .action = action, .why = "hidden"});
  }

  void leave(StorageId id, int64_t now) {
    StorageState& s = state(id);
    const int64_t end = s.nodes[s.next];
    if (!s.how[s.next].reads()) {
      s.device = {};  // overwritten whole next
    } else if (chance(style_.recompute) && canRecompute(id, end)) {
      s.device = {};
      s.isRecomputed = true;
      addRow(id, now, end, GapAction::kRecompute);
    } else if (chance(style_.host)) {
      offload(id);
      s.device = {};
      addRow(id, now, end, GapAction::kHost);
    } else if (chance(style_.disk) && !s.heldHost.isValid()) {
      copyToDisk(id);
      s.device = {};
      addRow(id, now, end, GapAction::kDisk);
    }
  }

  // --- recompute ---

  /// The nodes that rebuild a storage at its current version, from its last whole write on.
  std::vector<NodeId> writersOf(StorageId id) {
    const StorageState& s = state(id);
    std::vector<NodeId> writers;
    for (size_t i = 0; i < s.how.size(); ++i) {
      if (!s.how[i].writes() || s.how[i].writtenVersion > s.version) continue;
      if (s.how[i].whole) writers.clear();
      writers.push_back(NodeId(static_cast<size_t>(s.nodes[i])));
    }
    return writers;
  }

  /// What a recompute of the node accesses. The replay form of an op leaves out what it writes in
  /// place.
  llvm::SmallVector<ir::Access, 4> recomputeAccesses(NodeId id) const {
    const ir::Node& node = graph_.node(id);
    const bool inReplayForm = *ir::lookUpOp(node.op).replayForm != '\0';
    llvm::SmallVector<ir::Access, 4> accesses;
    for (const ir::Access& access : graph_.accesses(id)) {
      bool isLeftAlone = false;
      for (const ir::Node::Write& write : node.writes) {
        const bool isWritten = graph_.value(write.value).storage == access.storage;
        isLeftAlone = isLeftAlone || (inReplayForm && isWritten);
      }
      if (!isLeftAlone) accesses.push_back(access);
    }
    return accesses;
  }

  bool canRecompute(StorageId id, int64_t before) {
    const std::vector<NodeId> writers = writersOf(id);
    if (writers.empty() || graph_.storage(id).persistent) return false;
    if (graph_.storage(id).role == ir::Role::kInput) return false;
    return std::all_of(writers.begin(), writers.end(),
                       [&](NodeId writer) { return canRecomputeWriter(writer, id, before); });
  }

  bool canRecomputeWriter(NodeId writer, StorageId rebuilt, int64_t before) {
    const ir::OpInfo& op = ir::lookUpOp(graph_.node(writer).op);
    const bool repeats =
        op.repeatable == ir::Repeatable::kYes ||
        (op.repeatable == ir::Repeatable::kInDeterministicMode && target_.deterministic);
    if (!op.recomputable || !repeats) return false;
    bool rebuilds = false;
    for (const ir::Access& access : recomputeAccesses(writer)) {
      rebuilds = rebuilds || (access.storage == rebuilt && access.writes());
      if (access.storage == rebuilt) continue;
      const ir::Storage& storage = graph_.storage(access.storage);
      const bool isScratch = !access.reads() && !storage.persistent && !isOnHost(access.storage);
      if (access.writes() && !isScratch) return false;
      if (access.reads() && !isThere(access.storage, access.readVersion, before)) return false;
    }
    return rebuilds;
  }

  /// The storage has that version up to node `before`, and somebody keeps it that long.
  bool isThere(StorageId id, int32_t version, int64_t before) {
    const StorageState& s = state(id);
    int32_t then = 0;
    for (size_t i = 0; i < s.how.size() && s.nodes[i] < before; ++i) {
      if (s.how[i].writes()) then = s.how[i].writtenVersion;
    }
    if (then != version) return false;
    const ir::Storage& storage = graph_.storage(id);
    if (s.boundary == Boundary::kNowhere) return false;
    if (storage.persistent || isOnHost(id)) return true;
    if (storage.role == ir::Role::kInput && version == 0) return true;
    for (size_t i = 0; i < s.nodes.size(); ++i) {
      if (s.nodes[i] >= before) return s.how[i].reads();
    }
    return false;
  }

  void runRecomputes(StorageId id) {
    state(id).isRecomputed = false;
    const ResidencyId rebuilt = addResidency(id, Space::kDevice);
    for (const NodeId writer : writersOf(id)) {
      std::vector<StorageId> prefetched;
      for (const ir::Access& access : recomputeAccesses(writer)) {
        if (!access.reads() || access.storage == id || isOnHost(access.storage)) continue;
        if (state(access.storage).device.isValid()) continue;
        prefetch(access.storage);
        prefetched.push_back(access.storage);
      }
      ir::Command run = bind(writer, id, rebuilt);
      run.recompute = ++recomputes_[writer.index()];
      run.rngSlot = slots_[writer.index()];
      schedule_.commands.push_back(run);
      for (const StorageId storage : prefetched) {
        const StorageState& s = state(storage);
        if (s.next == s.nodes.size()) state(storage).device = {};
      }
    }
    state(id).device = rebuilt;
  }

  /// A launch with operands where they are; `own` (if valid) is read and written on `residency`,
  /// and other results of a recompute go where nobody looks.
  ir::Command bind(NodeId node, StorageId own, ResidencyId residency) {
    ir::Command run;
    run.node = node;
    const llvm::SmallVector<ir::Access, 4> accesses =
        own.isValid() ? recomputeAccesses(node)
                      : llvm::SmallVector<ir::Access, 4>(graph_.accesses(node).begin(),
                                                         graph_.accesses(node).end());
    for (const ir::Access& access : accesses) {
      const StorageId id = access.storage;
      StorageState& s = state(id);
      if (access.reads()) {
        run.in.push_back(id == own ? residency : isOnHost(id) ? s.host : s.device);
      }
      if (!access.writes()) continue;
      if (id == own) {
        run.out.push_back(residency);
      } else if (own.isValid()) {
        run.out.push_back(addResidency(id, Space::kDevice));
      } else {
        run.out.push_back(findTarget(id, access));
      }
    }
    if (chance(style_.temp)) run.temp.bytes = Bytes(target_.alignBytes * (1 + dice_() % 4));
    return run;
  }

  /// Where an original writes.
  ResidencyId findTarget(StorageId id, const ir::Access& access) {
    StorageState& s = state(id);
    if (isOnHost(id)) {
      if (!s.host.isValid()) s.host = addResidency(id, Space::kHost);
      if (graph_.storage(id).output) exclusive_[s.host.index()] = true;
      return s.host;
    }
    if (!access.reads() && !s.device.isValid()) s.device = addResidency(id, Space::kDevice);
    return s.device;
  }

  // --- the step ---

  void prefetch(int64_t now) {
    const auto nodes = static_cast<int64_t>(graph_.nodes().size());
    for (int64_t at = now + 1; at <= std::min(nodes - 1, now + style_.lookahead); ++at) {
      for (const ir::Access& access : graph_.accesses(NodeId(static_cast<size_t>(at)))) {
        const StorageState& s = state(access.storage);
        const bool isAway = access.reads() && !s.device.isValid() && !s.isRecomputed &&
                            (s.hostVersion == s.version || s.diskVersion == s.version);
        if (isAway && s.version == access.readVersion && chance(400)) prefetch(access.storage);
      }
    }
  }

  void runNode(int64_t now) {
    const NodeId node(static_cast<size_t>(now));
    prefetch(now);
    for (const ir::Access& access : graph_.accesses(node)) {
      if (access.reads()) prefetch(access.storage);
    }
    ir::Command run = bind(node, {}, {});
    if (ir::lookUpOp(graph_.node(node).op).random) {
      run.rngSlot = slots_[node.index()] = static_cast<int>(slotCount_++);
    }
    if (chance(style_.inPlaceReuse)) run.takes = findOperandToTake(run);
    schedule_.commands.push_back(run);
    for (const ir::Access& access : graph_.accesses(node)) afterAccess(now, access);
  }

  void afterAccess(int64_t now, const ir::Access& access) {
    const StorageId id = access.storage;
    StorageState& s = state(id);
    ++s.next;
    if (access.writes()) s.version = access.writtenVersion;
    const bool isLastWrite = access.writes() && s.version == graph_.lastVersion(id);
    if (isLastWrite && graph_.storage(id).output && !isOnHost(id)) deliver(id);
    if (s.next < s.nodes.size()) {
      if (!isPinnedDown(id)) leave(id, now);
      return;
    }
    if (!graph_.storage(id).persistent) {
      s.device = {};
      return;
    }
    leaveAtBoundary(id);
    const bool leaves = s.boundary == Boundary::kHost || s.boundary == Boundary::kTail ||
                        s.boundary == Boundary::kDisk;
    if (!leaves || !s.how.front().reads()) return;
    addRow(id, now, s.nodes.front() + static_cast<int64_t>(graph_.nodes().size()),
           s.boundary == Boundary::kDisk ? GapAction::kDisk : GapAction::kHost);
  }

  // --- taking bytes over ---

  ResidencyId findOperandToTake(const ir::Command& run) {
    const ir::Node& node = graph_.node(run.node);
    const ir::OpInfo& op = ir::lookUpOp(node.op);
    if (node.results.empty() || !node.results[0].isValid()) return {};
    const ir::StorageId result = graph_.value(node.results[0]).storage;
    const auto accesses = graph_.accesses(run.node);
    const bool isFresh = std::any_of(accesses.begin(), accesses.end(), [&](const ir::Access& a) {
      return a.storage == result && a.whole;
    });
    if (!isFresh || isOnHost(result) || isPinnedDown(result) || state(result).heldDevice.isValid())
      return {};
    for (const int index : {op.inPlaceOperand, op.inPlaceOperand2}) {
      if (index < 0 || static_cast<size_t>(index) >= node.args.size()) continue;
      const auto* argument = std::get_if<ir::ValueArg>(&node.args[static_cast<size_t>(index)]);
      if (argument == nullptr || !argument->value.isValid()) continue;
      if (mayTake(run, graph_.value(argument->value).storage, result)) {
        return state(graph_.value(argument->value).storage).device;
      }
    }
    return {};
  }

  bool mayTake(const ir::Command& run, StorageId operand, StorageId result) {
    const ir::Node& node = graph_.node(run.node);
    const ir::TensorType& type = graph_.value(node.results[0]).type;
    const StorageState& s = state(operand);
    const ir::Storage& storage = graph_.storage(operand);
    bool isSame = type.isContiguous();
    ir::forEachTensorArgument(node, [&](ir::ValueId value) {
      if (graph_.value(value).storage == operand)
        isSame = isSame && graph_.value(value).type == type;
    });
    const bool isRead = std::count(run.in.begin(), run.in.end(), s.device) == 1 &&
                        std::count(run.out.begin(), run.out.end(), s.device) == 0;
    const bool diesHere = s.next + 1 == s.nodes.size();
    return isSame && isRead && diesHere && !storage.persistent && !storage.output &&
           storage.home == Space::kDevice &&
           roundUp(storage.bytes, target_.alignBytes) ==
               roundUp(graph_.storage(result).bytes, target_.alignBytes);
  }

  // --- offsets, waits, claims ---

  void finish() {
    placeFirstFit(schedule_, graph_, target_, exclusive_);
    if (style_.serialWaits) {
      insertSerialWaits(schedule_);
    } else {
      insertNeededWaits(schedule_, graph_, target_, exclusive_);
      if (style_.thinWaits) thinWaits(schedule_);
    }
    ir::Prediction& predicted = schedule_.predicted;
    predicted.peakBytes = schedule_.arenaBytes(Space::kDevice);
    predicted.hostPeakBytes = schedule_.arenaBytes(Space::kHost);
    for (const ir::Command& command : schedule_.commands) {
      if (command.kind != ir::CommandKind::kCopy) continue;
      const StorageId storage = schedule_.residency(command.from).storage;
      const Bytes bytes = roundUp(graph_.storage(storage).bytes, target_.alignBytes);
      if (command.stream == Stream::kDeviceToHost) predicted.bytesOut += bytes;
      if (command.stream == Stream::kHostToDevice) predicted.bytesIn += bytes;
    }
  }

  const ir::Graph& graph_;
  const ir::Target& target_;
  const ScheduleStyle style_;
  std::mt19937_64 dice_;
  ir::Schedule schedule_;
  std::vector<bool> exclusive_;  // by residency: shares its bytes with nothing
  std::vector<StorageState> states_;
  std::vector<int> recomputes_;  // by node
  std::vector<int> slots_;       // by node
  size_t slotCount_ = 0;
};

}  // namespace

ScheduleStyle randomStyle(uint64_t seed) {
  std::mt19937_64 dice(seed * 2654435761u + 17);
  const auto permille = [&] { return dice() % 3 == 0 ? 0 : static_cast<int>(dice() % 1001); };
  return {.seed = seed,
          .host = permille(),
          .disk = permille() / 3,
          .recompute = permille(),
          .inPlaceReuse = permille(),
          .temp = permille(),
          .tail = permille(),
          .lookahead = static_cast<int>(dice() % 8),
          .joined = dice() % 4 == 0,
          .thinWaits = dice() % 2 == 0,
          .serialWaits = dice() % 8 == 0};
}

ir::Schedule makeRandomSchedule(const ir::Graph& graph, const ir::Target& target,
                                const ScheduleStyle& style) {
  return ScheduleMaker(graph, target, style).make();
}

}  // namespace stowage::tests
