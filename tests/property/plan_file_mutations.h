// SPDX-License-Identifier: Apache-2.0
//
// Ways to change what a plan file says, each of which leaves a file that is well-formed and for the
// same graph and target: commands in another order, waits, places, operands, temporaries, what is
// in place, boundary, arenas, decisions, claims. Many change nothing that matters; which, is the
// verifier's to say. On the JSON, as somebody who edits the file would.
#ifndef STOWAGE_TESTS_PROPERTY_PLAN_FILE_MUTATIONS_H_
#define STOWAGE_TESTS_PROPERTY_PLAN_FILE_MUTATIONS_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/support/random.h"

namespace stowage::tests {

using PlanJson = nlohmann::ordered_json;

struct PlanFileMutation {
  const char* name;
  /// At a random place; false when the plan has none.
  std::function<bool(PlanJson& plan, Random& random)> change;
};

std::vector<PlanFileMutation> planFileMutations();

// --- the parts ---
std::vector<PlanFileMutation> commandMutations();  // order, waits, operands, streams
std::vector<PlanFileMutation> placeMutations();    // residencies, temporaries, in place, arenas
std::vector<PlanFileMutation> claimMutations();    // boundary, decisions, modes, predictions

/// The items of `array` that `holds`, at random; null if there is none.
PlanJson* pickItem(PlanJson& array, Random& random,
                   const std::function<bool(const PlanJson&)>& holds);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_PROPERTY_PLAN_FILE_MUTATIONS_H_
