// SPDX-License-Identifier: Apache-2.0
//
// A second opinion on a schedule, by brute force and byte by byte (in units of the alignment): what
// touches which unit, which commands are ordered (transitive closure over two whole steps), and who
// wrote a unit last. Slow and simple; shares no code and no method with ir/verify. It knows nothing
// of versions: it judges order and sharing (V10 to V13, V17, V19, V21's order, V24), which is where
// a change of a wait or an offset can be harmless.
#ifndef STOWAGE_TESTS_SUPPORT_BYTE_ORACLE_H_
#define STOWAGE_TESTS_SUPPORT_BYTE_ORACLE_H_

#include <set>

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"

namespace stowage::tests {

/// Rules that the schedule breaks in those respects; empty if every order that the waits allow
/// gives the same bytes. Waits must point backwards and offsets must be multiples of the alignment.
std::set<int> judgeBytes(const ir::Schedule& schedule, const ir::Graph& graph,
                         const ir::Target& target);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_BYTE_ORACLE_H_
