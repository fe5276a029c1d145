// SPDX-License-Identifier: Apache-2.0
//
// Plays a schedule for a few steps with random durations and delays, keeping only to streams, waits
// and prevs, and watches every 64 bytes: does each launch find the version that the graph asks for,
// complete, and does nobody write what another still reads or writes? A dynamic check that shares
// nothing with planner or verifier; what it misses by luck, other seeds find.
#ifndef STOWAGE_TESTS_SUPPORT_SCHEDULE_PLAYER_H_
#define STOWAGE_TESTS_SUPPORT_SCHEDULE_PLAYER_H_

#include <cstdint>
#include <string>

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"

namespace stowage::tests {

/// The first thing that went wrong; "" if nothing did.
std::string playSchedule(const ir::Graph& graph, const ir::Target& target,
                         const ir::Schedule& schedule, uint64_t seed);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_SCHEDULE_PLAYER_H_
