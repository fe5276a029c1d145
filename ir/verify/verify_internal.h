// SPDX-License-Identifier: Apache-2.0
//
// What the files of the verifier share: the facts that every rule starts from, derived from graph
// and schedule alone, and the report they write to. Private to ir/verify*.
//   Use       one command's access to one residency. The uses of a residency, in enqueue order,
//             are its history in a step.
//   Live range
//             the part of that history in which nothing else may write its bytes: from the write
//             that defines it (a write that does not read) to the last use. A residency that
//             crosses the step boundary has a head (uses before its first defining write) and a
//             tail. The tail of a step and the head of the next are one live range. Without a
//             defining write the live range never ends.
//   Boundary  inputs: the caller's data is put into the boundary residency once every command of
//             the step before that uses it has finished, and before any command of this step that
//             uses it. Outputs: the executor takes the bytes out of the delivered residency after
//             the step's last write to it, before the next step writes it again. Neither is a
//             command, so those residencies share their bytes with nothing.
#ifndef STOWAGE_IR_VERIFY_VERIFY_INTERNAL_H_
#define STOWAGE_IR_VERIFY_VERIFY_INTERNAL_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>

#include <optional>
#include <string>
#include <vector>

#include "ir/graph/op_table.h"
#include "ir/schedule/disk_block.h"
#include "ir/verify/verify.h"
#include "ir/verify/verify_order.h"

namespace stowage::ir::verifier {

class Report {
 public:
  void add(int rule, CommandId command, std::string message);
  /// For violations that are not about one command.
  void add(int rule, std::string message) { add(rule, CommandId(), std::move(message)); }
  bool isEmpty() const { return violations_.empty(); }
  /// Ordered by rule, then command, then message.
  std::vector<Violation> take() &&;

 private:
  std::vector<Violation> violations_;
};

struct Use {
  CommandId command;
  ResidencyId residency;
  StorageId storage;            // the node accesses; for copies the residency's
  int32_t readVersion = -1;     // that the node reads; -1 for copies
  int32_t writtenVersion = -1;  // that the node writes; -1 for copies
  bool reads = false;
  bool writes = false;
  bool defines() const { return writes && !reads; }
};

/// What a launch of a node reads and writes: the graph's accesses, or for a recompute in an op's
/// replay form those without the storages that the op writes in place.
llvm::SmallVector<Access, 4> accessesOf(const Graph& graph, const Command& run);

/// Facts about a schedule that satisfies V1.
class Facts {
 public:
  explicit Facts(const VerifyInput& input);

  const Graph& graph;
  const Schedule& schedule;
  const Target& target;
  const NodeCosts* costs;
  Bytes budget;
  std::optional<Bytes> hostLimit;
  std::optional<Bytes> diskLimit;

  bool isAtLeast(Level level) const { return schedule.level >= level; }
  llvm::ArrayRef<Use> usesOf(CommandId command) const;
  /// In enqueue order; positions in `allUses`.
  llvm::ArrayRef<uint32_t> usesOf(ResidencyId residency) const;
  llvm::ArrayRef<Use> allUses() const { return uses_; }

  const OpInfo& op(NodeId node) const { return *ops_[node.index()]; }
  const Node& node(const Command& run) const { return graph.node(run.node); }
  /// First command that runs the node as original; invalid if none does.
  CommandId original(NodeId node) const { return originals_[node.index()]; }
  /// Null if the storage has no entry.
  const BoundaryEntry* boundary(StorageId storage) const;

  const Storage& storage(ResidencyId id) const {
    return graph.storage(schedule.residency(id).storage);
  }
  /// Bytes of a residency: its storage's, rounded up as its space asks.
  Bytes size(ResidencyId id) const;
  /// True if some boundary entry names the residency.
  bool isHeld(ResidencyId id) const { return held_[id.index()] != 0; }
  /// Boundary residency of an input: filled by the caller before each step.
  bool isInputSlot(ResidencyId id) const;
  /// Host residency from which an output is delivered: the last that the step writes, or else where
  /// the boundary has it. Invalid if there is none.
  ResidencyId delivered(StorageId output) const { return delivered_[output.index()]; }

  /// Where a launch writes the storage that its result 0 makes; invalid if it makes none.
  ResidencyId freshResult(CommandId run) const;

  std::string describe(CommandId id) const;
  std::string describe(ResidencyId id) const;
  std::string describe(StorageId id) const { return "'" + graph.storage(id).name + "'"; }

 private:
  void addUses(CommandId id);
  void addRunUses(CommandId id);
  void indexUsesByResidency();
  void findDelivered();

  std::vector<Use> uses_;
  std::vector<uint32_t> firstUse_;             // commands + 1 entries
  std::vector<uint32_t> useByResidency_;       // positions in uses_, grouped
  std::vector<uint32_t> firstUseOfResidency_;  // residencies + 1 entries
  std::vector<const OpInfo*> ops_;
  std::vector<CommandId> originals_;
  std::vector<int32_t> boundary_;  // by storage; -1: none
  std::vector<char> held_;
  std::vector<ResidencyId> delivered_;
};

/// V1: everything that the other rules take for granted. They run only if this finds nothing.
void checkStructure(const VerifyInput& input, Report& report);
/// V2, V3, V28: what the schedule was made for.
void checkIdentity(const Facts& facts, Report& report);
/// V4, V14, V15, V25, V27: which commands there are, where they run, what they wait for.
void checkShape(const Facts& facts, Report& report);
/// V5, V6 (draws), V26: recomputes and random draws.
void checkRecomputes(const Facts& facts, Report& report);
/// V6 (outputs), V7, V8, V9, V22, V23: what every residency holds when it is read.
void checkData(const Facts& facts, Report& report);
/// V10, V11, V12 and across the step boundary V24: order of the uses of each residency.
void checkHazards(const Facts& facts, const HappensBefore& order, Report& report);
/// V16, V17, V18, V19: each residency, temp region and reserved region on its own.
void checkPlaces(const Facts& facts, Report& report);
/// V13, V17, V19, V21 and across the step boundary V24: who shares bytes, and in which order.
void checkSharing(const Facts& facts, const HappensBefore& order, Report& report);
/// V21, without the order of the uses (checkSharing checks that).
void checkInPlaceReuse(const Facts& facts, Report& report);
/// V20, V30.
void checkClaims(const Facts& facts, Report& report);
/// V31.
void checkDecisions(const Facts& facts, Report& report);

}  // namespace stowage::ir::verifier

#endif  // STOWAGE_IR_VERIFY_VERIFY_INTERNAL_H_
