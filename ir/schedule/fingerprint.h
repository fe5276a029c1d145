// SPDX-License-Identifier: Apache-2.0
//
// Stable identities ("xxh3:0123456789abcdef"): a plan names the graph and the target it fits. A
// graph's fingerprint covers what the step computes (storages, values, nodes, phases, which
// arguments are step scalars) and the storages' names, not the captured values of step scalars, not
// names of values, not module paths, not provenance. A target's covers device kind and compute
// capability, alignment, threads, libraries, deterministic mode and reserved workspaces, not its
// rates.
#ifndef STOWAGE_IR_SCHEDULE_FINGERPRINT_H_
#define STOWAGE_IR_SCHEDULE_FINGERPRINT_H_

#include <string>

#include "ir/graph/graph.h"
#include "ir/schedule/target.h"

namespace stowage::ir {

std::string fingerprint(const Graph& graph);
std::string fingerprint(const Target& target);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_SCHEDULE_FINGERPRINT_H_
