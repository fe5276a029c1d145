// SPDX-License-Identifier: Apache-2.0
//
// Runs a graph on hashes instead of numbers: what a node writes is a hash of the op, its arguments
// and what it reads. Two graphs that give the same hashes compute the same thing, whatever the
// order of their nodes; a draw of random numbers counts the draws before it. List ops work on each
// element by itself, as the real ones do. Shares no code with the passes.
#ifndef STOWAGE_TESTS_SUPPORT_ABSTRACT_RUN_H_
#define STOWAGE_TESTS_SUPPORT_ABSTRACT_RUN_H_

#include <cstdint>
#include <map>
#include <string>

#include "ir/graph/graph.h"

namespace stowage::tests {

/// By name: what all state holds after the last step, and every output after each. Deferred updates
/// run with the step scalars of the step before, those of the last step at the end.
std::map<std::string, uint64_t> runAbstractly(const ir::Graph& graph, int steps = 1);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_ABSTRACT_RUN_H_
