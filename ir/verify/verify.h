// SPDX-License-Identifier: Apache-2.0
//
// Proves a schedule against its graph: whatever order the waits allow, every read of every step
// gets the bytes that the graph asks for, and no byte outside of the arenas is touched. Sees only
// graph.h, collectives.h, schedule.h, op_table.h, target.h, cost_table.h, fingerprint.h: no
// planner, no liveness. The graph must satisfy checkGraph; the schedule may be anything that its
// types can hold. Reports every violation, not only the first. Cost: O(commands * streams + uses *
// log).
//
// What is assumed of execution. One thread enqueues commands by index. A stream is first in,
// first out, from step to step. `wait` names commands of the same step, `prev` of the step before.
// A command starts when its stream's predecessor and everything that it waits for have finished.
// In a joined schedule a step begins when all of the step before has finished. Nothing else orders
// commands. On the first step every `prev` counts as satisfied, and the boundary's residencies hold
// version 0. Before each step the caller's data is put into an input's boundary residency, when
// every command of the step before that uses that residency has finished and none of this step
// that does has started. An output is delivered from the host residency that the step writes last
// for it (if none, from its boundary), after that write and before the next step's.
// Two steps are unrolled; as the boundary repeats (V23), that is an induction over all steps.
//
//      rule                                                        from level
//   V1  ids in range, lists in order, operands match the node       ordered
//       (schema and version of a file: its reader)
//   V2  graph fingerprint; V3 target fingerprint; V28 op table      ordered, if set; synced
//       (V3 against the machine: the runtime)
//   V4  every node runs once as original                            ordered
//   V5  recomputes: op is recomputable and repeats its bits; after   ordered
//       the original, numbered 1, 2, ..., no persistent storage written
//   V6  random originals in the graph's order;                      ordered
//       every output's last version is where it is delivered from   copied
//   V7  a read finds the version that the graph asks for            ordered: versions exist;
//       (a recompute: the version that the original read)           copied: exactly
//   V8  no launch reads a residency that holds nothing              copied
//   V9  copies: one storage, neighbouring spaces, right engine,      copied
//       source holds something, storage does not live on the host
//   V10 read after write, V11 write after read, V12 write after      placed: in enqueue order;
//       write of one residency are ordered                          synced: by streams and waits
//   V13 residencies that share device bytes: all uses of the one     as V10
//       before all of the other (a live range may span the step boundary); the
//       bytes of inputs' and outputs' host residencies are theirs
//   V14 waits point backwards                                       ordered
//   V15 commands on streams of their kind, collectives on theirs;    ordered
//       an op on the host uses host residencies, any other each
//       storage's home
//   V16 device residencies aligned and inside their arena           placed
//   V17 temp regions: inside, aligned, as large as costs say,        placed
//       shared as V13
//   V18 reserved regions: the target's, untouched                   placed
//   V19 V16 and V13 on host and disk (disk in blocks of 4096); the   placed
//       host arena is at most its limit, and no arena there far
//       larger than what is put into it
//   V20 peaks and bytes moved as claimed, arena = budget            placed
//   V21 in-place reuse: the op table allows it, one type, one place,      ordered; order as V10
//       the operand's last use, dies with the step
//   V22 in place: one residency                                     ordered
//   V23 boundary: one entry per persistent storage and input, right  copied
//       kind and flag, holds the last version at the end
//   V24 V10 to V13 across the step boundary                                  as V10
//   V25 joined: no prev; one graph of the step: joined, no disk,     ordered
//       no host runs; nothing that is recorded uses bytes of the
//       host that change
//   V26 draws on compute; a recompute restores its original's slot  ordered
//   V27 step scalars have a name of their own, by which they are fed ordered
//   V29 (ranks) has no counterpart in a single schedule
//   V30 bound and every stream's work fit in the claimed step time  placed
//   V31 decision rows and commands say the same                     ordered: recomputes;
//                                                                   copied: all
#ifndef STOWAGE_IR_VERIFY_VERIFY_H_
#define STOWAGE_IR_VERIFY_VERIFY_H_

#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"

namespace stowage::ir {

struct Violation {
  int rule = 0;         // 7 for V7
  std::string message;  // names command, storage, what was found and what was expected
  CommandId command;    // invalid when the rule is not about one
};

struct VerifyInput {
  const Graph& graph;
  const Schedule& schedule;
  const Target& target;
  const NodeCosts* costs =
      nullptr;   // for V17 (need of temporaries) and V30; null: those parts are skipped
  Bytes budget;  // V20: the device arena is exactly this; 0: not checked
  std::optional<Bytes> hostLimit = std::nullopt;  // V19: the host arena is at most this
  std::optional<Bytes> diskLimit = std::nullopt;  // V19: the disk arena likewise
};

/// All violations, ordered by rule, then command. Empty: the schedule is proven.
std::vector<Violation> verify(const VerifyInput& input);
/// The same as an error: kViolation with a note "V10: ..." each.
Error verifyOrError(const VerifyInput& input);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_VERIFY_VERIFY_H_
