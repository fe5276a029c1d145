// SPDX-License-Identifier: Apache-2.0
//
// Which residencies of a schedule hold bytes on the device while a command runs. Read from the
// schedule alone, in enqueue order. Not for proofs: that is ir/verify/verify.h.
#ifndef STOWAGE_PLANNER_REPORT_RESIDENCY_SPANS_H_
#define STOWAGE_PLANNER_REPORT_RESIDENCY_SPANS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"

namespace stowage::planner {

/// What device bytes hold, for people.
enum class MemoryGroup : uint8_t {
  kParameters,  // and frozen tensors, buffers, constants
  kOptimizer,   // states, fp32 copies, step counters
  kGradients,
  kActivations,  // and inputs, outputs
  kTemporaries   // and workspaces of libraries
};
inline constexpr size_t kMemoryGroupCount = 5;
const char* memoryGroupName(MemoryGroup group);  // "parameters", "optimizer state", ...
MemoryGroup memoryGroupOf(ir::Role role);

/// Bytes by group, rounded up to the arena's units.
using GroupBytes = std::array<int64_t, kMemoryGroupCount>;
int64_t sumOf(const GroupBytes& bytes);

class ResidencySpans {
 public:
  /// Graph and schedule outlive this. `alignBytes`: the arena's unit.
  ResidencySpans(const ir::Graph& graph, const ir::Schedule& schedule, int64_t alignBytes);

  /// Whether a residency holds bytes on the device while command `command` runs.
  bool isThere(size_t residency, int64_t command) const;
  /// The operand whose bytes `run` reuses for its result: those are counted once.
  static bool isTaken(const ir::Command& run, size_t residency);
  /// By command, its temporaries included; without reserved regions.
  std::vector<GroupBytes> bytesByCommand() const;

 private:
  // From the command that defines a residency to its last use. A use before that reads bytes that
  // came over the step boundary.
  struct Span {
    int64_t define = -1;
    int64_t last = -1;
    int64_t lastBefore = -1;  // last use before it is defined in the step
    bool isCrossing = false;  // valid at the step boundary
    bool crosses() const { return isCrossing || lastBefore >= 0; }
  };

  void note(const ir::Command& command, int64_t at);
  void use(ir::ResidencyId id, int64_t at);
  void define(ir::ResidencyId id, int64_t at);
  int64_t roundedBytes(ir::StorageId storage) const;
  size_t groupOf(ir::StorageId storage) const;

  const ir::Graph& graph_;
  const ir::Schedule& schedule_;
  int64_t alignBytes_;
  std::vector<Span> spans_;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_REPORT_RESIDENCY_SPANS_H_
