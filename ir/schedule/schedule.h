// SPDX-License-Identifier: Apache-2.0
//
// A schedule is everything the executor does in one step, in enqueue order. It is complete: the
// executor decides nothing, and the verifier (ir/verify/verify.h) proves it against the graph
// without knowing how it was made.
//   - A Residency is one storage in one space at one offset. Its size is the storage's bytes,
//     rounded up to the target's alignment (disk: to the block). Its live range is not stored: it
//     follows from the first write and the last access, so it cannot be wrong.
//   - A Command runs a node (the original, or a recompute) or copies a residency to another space.
//     A command's id is its position in the enqueue order: one thread enqueues all commands.
//     Order within a stream is the subsequence; across streams only `wait` (this step) and `prev`
//     (the step before) order.
//   - The Boundary says where each persistent storage and each input is valid when a step begins,
//     and so when it ends: the schedule is a cycle. On the first step every `prev` counts as
//     satisfied.
// Semantics of a run command: `in` are the residencies it reads, one per storage the node reads (in
// order of the node's accesses); `out` the residencies it writes, one per storage it writes (same
// order). A storage that is read and written in place has the same residency in both. Levels:
// passes raise a schedule
//   kOrdered (originals and recomputes in order; residencies without offsets) -> kCopied (copies
//   inserted) -> kPlaced (offsets, temp regions, arenas set) -> kSynced (waits set: ready to
//   execute).
#ifndef STOWAGE_IR_SCHEDULE_SCHEDULE_H_
#define STOWAGE_IR_SCHEDULE_SCHEDULE_H_

#include <llvm/ADT/SmallVector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/ids.h"
#include "ir/base/units.h"
#include "ir/graph/type.h"
#include "ir/schedule/target.h"

namespace stowage::ir {

struct Node;

enum class Level : uint8_t { kOrdered, kCopied, kPlaced, kSynced };
const char* levelName(Level level);
std::optional<Level> findLevel(llvm::StringRef name);

/// The numbers are the file format's.
enum class Stream : uint8_t {
  kCompute = 0,
  kDeviceToHost = 1,
  kHostToDevice = 2,
  kDiskRead = 3,
  kDiskWrite = 4,
  kHostCompute = 5,
  kCollective = 6
};
inline constexpr int kStreamCount = 7;
/// "compute", "d2h", "h2d", "disk_read", "disk_write", "host", "collective"
const char* streamName(Stream stream);
std::optional<Stream> findStream(llvm::StringRef name);

/// Offset of a residency before placement.
inline constexpr int64_t kUnplaced = -1;

struct Residency {
  StorageId storage;
  Space space = Space::kDevice;
  int64_t offset = kUnplaced;  // bytes from the base of the space's arena
  friend bool operator==(const Residency&, const Residency&) = default;
};

/// The part of the device arena that serves a launch's temporaries: [offset, offset + bytes).
struct TempRegion {
  int64_t offset = kUnplaced;
  Bytes bytes;  // 0: the launch needs none
  friend bool operator==(const TempRegion&, const TempRegion&) = default;
};

enum class CommandKind : uint8_t { kRun, kCopy };

struct Command {
  CommandKind kind = CommandKind::kRun;
  Stream stream = Stream::kCompute;
  // run
  NodeId node;
  int recompute = 0;  // 0: the original; k: its k-th recompute
  llvm::SmallVector<ResidencyId, 4> in;
  llvm::SmallVector<ResidencyId, 2> out;
  TempRegion temp;
  /// Original that draws: the slot that keeps the RNG state before it. Recompute: the slot to
  /// restore.
  int rngSlot = -1;
  ResidencyId takes;  // operand residency whose bytes result 0's residency reuses
  // copy
  ResidencyId from;
  ResidencyId to;
  // both
  llvm::SmallVector<CommandId, 2> wait;  // commands of this step, ascending
  llvm::SmallVector<CommandId, 1> prev;  // commands of the step before, ascending
  friend bool operator==(const Command&, const Command&) = default;
};

/// Where a persistent storage or an input is valid when a step begins and ends. Inputs: the host
/// residency into which the caller's data is put before the step.
struct BoundaryEntry {
  StorageId storage;
  llvm::SmallVector<ResidencyId, 2> at;  // ascending; all hold the same bytes
  bool dirty = false;  // persistent and on the device, and no host or disk residency among `at`
  friend bool operator==(const BoundaryEntry&, const BoundaryEntry&) = default;
};

struct Arena {
  Space space = Space::kDevice;
  Bytes bytes;
  friend bool operator==(const Arena&, const Arena&) = default;
};

/// What happened to a storage while it was not needed: the planner's decision, repeated in the file
/// so that people read and edit it. `gap` are node positions in the graph's order: [last access
/// before, next access), where the end may lie beyond the number of nodes for a gap that spans the
/// boundary (position + number of nodes).
enum class GapAction : uint8_t {
  kKeep,      // stays where it is
  kHost,      // copied to the host when dirty, dropped, copied back before the next access
  kDisk,      // the same through the host to disk
  kRecompute  // dropped; recomputed before the next access
};
const char* gapActionName(GapAction action);
std::optional<GapAction> findGapAction(llvm::StringRef name);

struct DecisionRow {
  StorageId storage;
  int64_t gapBegin = 0;
  int64_t gapEnd = 0;
  GapAction action = GapAction::kKeep;
  bool pinned = false;  // set by a person or a --pin: a constraint for the next planning
  std::string why;      // short reason code: "hidden", "cheap", "pinned", ...
  friend bool operator==(const DecisionRow&, const DecisionRow&) = default;
};

enum class GraphMode : uint8_t {
  kNone,
  kNoUpdate,
  kWhole
};  // how much of a step is one CUDA graph
const char* graphModeName(GraphMode mode);
std::optional<GraphMode> findGraphMode(llvm::StringRef name);
/// Does a graph of mode kNoUpdate end before it?
bool endsGraph(const Node& node);

/// What the planner claims. Zero where it claims nothing.
struct Prediction {
  Bytes peakBytes;  // highest byte of the device arena that is ever used
  Bytes hostPeakBytes;
  Nanoseconds stepTime;
  Nanoseconds bound;        // no schedule of these orders and kernel times is faster
  Nanoseconds computeTime;  // sum of the original nodes
  Bytes bytesOut;           // device to host per step
  Bytes bytesIn;
  friend bool operator==(const Prediction&, const Prediction&) = default;
};

struct Schedule {
  Level level = Level::kOrdered;
  std::string graphFingerprint;
  std::string targetFingerprint;
  int opTableVersion = 0;
  std::vector<Arena> arenas;  // device first, then host, then disk when used
  std::vector<ReservedRegion> reserved;
  GraphMode graphMode = GraphMode::kNone;
  bool joined = false;  // no command of a step runs on after it: no `prev` anywhere
  std::vector<DecisionRow>
      decisions;  // ordered by storage, then gapBegin; kKeep rows only when pinned
  std::vector<Residency> residencies;
  std::vector<BoundaryEntry>
      boundary;  // ordered by storage; every persistent storage and every input, once
  std::vector<Command> commands;
  Prediction predicted;

  const Residency& residency(ResidencyId id) const { return residencies[id.index()]; }
  const Command& command(CommandId id) const { return commands[id.index()]; }
  /// Bytes of the space's arena; 0 if the schedule has none.
  Bytes arenaBytes(Space space) const;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

}  // namespace stowage::ir

#endif  // STOWAGE_IR_SCHEDULE_SCHEDULE_H_
