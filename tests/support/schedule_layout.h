// SPDX-License-Identifier: Apache-2.0
//
// The last stages of making a schedule for tests: who uses which residency when, offsets by first
// fit, waits for exactly what each command needs. Written plainly and apart from the planner, the
// passes and the verifier.
#ifndef STOWAGE_TESTS_SUPPORT_SCHEDULE_LAYOUT_H_
#define STOWAGE_TESTS_SUPPORT_SCHEDULE_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"

namespace stowage::tests {

struct Touch {
  int64_t command = 0;
  bool reads = false;
  bool writes = false;
};

/// When a residency's bytes are taken, in command positions of one step, both ends included.
struct Busy {
  int64_t begin = 0;
  int64_t end = -1;
  /// Taken from the begin of the step up to here too; -2: not held between the steps.
  int64_t headEnd = -2;
  bool overlaps(const Busy& other) const;
};

/// Per residency, in enqueue order. A launch that reads and writes a residency touches it once.
std::vector<std::vector<Touch>> findTouches(const ir::Schedule& schedule);

/// Per residency. `exclusive`: residencies whose bytes are never shared.
std::vector<Busy> findBusy(const ir::Schedule& schedule,
                           const std::vector<std::vector<Touch>>& touches,
                           const std::vector<bool>& exclusive);

/// Sets offsets of residencies, temp regions (whose bytes are set), reserved regions, and arenas.
void placeFirstFit(ir::Schedule& schedule, const ir::Graph& graph, const ir::Target& target,
                   const std::vector<bool>& exclusive);

/// Sets waits, and waits on the step before unless the schedule is joined.
void insertNeededWaits(ir::Schedule& schedule, const ir::Graph& graph, const ir::Target& target,
                       const std::vector<bool>& exclusive);
/// Drops every wait that the others and the streams imply. Quadratic: for small schedules.
void thinWaits(ir::Schedule& schedule);
void insertSerialWaits(ir::Schedule& schedule);

int64_t sizeOf(const ir::Schedule& schedule, const ir::Graph& graph, const ir::Target& target,
               size_t residency);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_SCHEDULE_LAYOUT_H_
