// SPDX-License-Identifier: Apache-2.0
//
// Random training steps, the same for one seed on every machine. Two kinds:
//   - makeRandomStep: real ATen calls through StepBuilder (tests/support/step_builder.h), with
//     whatever makes planning hard drawn at random: frozen and tied parameters, in-place ops, views
//     and concatenations, residual sums, dropout, batch norm, several micro-batches, gradients that
//     persist, clipping, and five optimizers. Widths are uneven, so a few storages hold most of the
//     memory.
//   - makeTinyGraph: up to a dozen nodes without any meaning, for comparisons with exhaustive
//   search:
//     every pattern of reading, writing, overwriting and persisting turns up early. Shapes fit no
//     op.
// Both pass checkGraph. makeRandomCosts gives every node a time and temporaries.
#ifndef STOWAGE_TESTS_SUPPORT_RANDOM_GRAPH_H_
#define STOWAGE_TESTS_SUPPORT_RANDOM_GRAPH_H_

#include <cstdint>

#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"

namespace stowage::tests {

struct RandomStepOptions {
  int maxLayers = 6;       // drawn between 1 and this
  int64_t maxWidth = 512;  // columns of an activation
  int64_t maxRows = 64;    // samples in a micro-batch
  int maxMicroBatches = 2;
  bool allowHost = true;  // step counters that stay on the host
};
ir::Graph makeRandomStep(uint64_t seed, const RandomStepOptions& options = {});

struct TinyGraphOptions {
  int maxNodes = 9;
  int maxPersistent = 3;     // parameters and the like; frozen ones included
  int64_t maxBytes = 16384;  // of one storage
};
ir::Graph makeTinyGraph(uint64_t seed, const TinyGraphOptions& options = {});

/// A row for every signature of the graph, so equal calls cost the same, and links slow enough to
/// matter. Times and temporaries follow the bytes of the operands, unevenly.
ir::CostTable makeRandomCosts(const ir::Graph& graph, uint64_t seed);

/// A small CPU target: 512-byte alignment, no reserved regions.
ir::Target makeTestTarget();

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_RANDOM_GRAPH_H_
