// SPDX-License-Identifier: Apache-2.0
//
// Expects a planned step to be proven by the verifier and, on the fake device, at once and under
// random delays and with freed bytes poisoned, to give what the plain execution gives.
#ifndef STOWAGE_TESTS_SUPPORT_EXPECT_SOUND_H_
#define STOWAGE_TESTS_SUPPORT_EXPECT_SOUND_H_

#include <cstdint>

#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"

namespace stowage::tests {

struct SoundCase {
  const ir::Graph& graph;
  const ir::Schedule& schedule;
  const ir::Target& target;
  const ir::NodeCosts& costs;
  Bytes budget;
  uint64_t seed = 0;  // of the delays
};

/// Adds failures that name the seed and the budget.
void expectProven(const SoundCase& one);
/// Proven, and the same bits after `steps` steps.
void expectSound(const SoundCase& one, int steps);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_EXPECT_SOUND_H_
