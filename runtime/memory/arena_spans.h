// SPDX-License-Identifier: Apache-2.0
//
// Which bytes of an arena a schedule uses: all that its steps may write, and the part of them that
// holds state between two steps.
#ifndef STOWAGE_RUNTIME_MEMORY_ARENA_SPANS_H_
#define STOWAGE_RUNTIME_MEMORY_ARENA_SPANS_H_

#include <vector>

#include "ir/base/interval.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"

namespace stowage::runtime {

/// Ascending and disjoint, touching ones as one.
std::vector<ir::ByteRange> mergeSpans(std::vector<ir::ByteRange> spans);

/// What the schedule may write in `space`: residencies (in whole alignment units), temporaries,
/// reserved regions. Ascending, disjoint.
std::vector<ir::ByteRange> plannedSpans(const ir::Graph& graph, const ir::Schedule& schedule,
                                        const ir::Target& target, ir::Space space);

/// What holds state in `space` between two steps, when no update is pending: in whole alignment
/// units. Ascending, disjoint.
std::vector<ir::ByteRange> stateSpans(const ir::Graph& graph, const ir::Schedule& schedule,
                                      const ir::Target& target, ir::Space space);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_MEMORY_ARENA_SPANS_H_
