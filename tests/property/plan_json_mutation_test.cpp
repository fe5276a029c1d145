// SPDX-License-Identifier: Apache-2.0
//
// Ten thousand damaged plan files, from a printed seed: bytes changed, dropped and doubled, numbers
// made extreme, lines swapped, the end cut off. Each must be an error with a place or a plan.

#include <gtest/gtest.h>

#include <string>

#include "tests/support/sample_plan.h"
#include "tests/support/text_mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace stowage::tests {
namespace {

constexpr uint32_t kSeed = 20250611;
constexpr int kMutants = 10000;

TEST(PlanJsonMutation, EveryDamagedFileIsAnErrorOrAPlan) {
  RecordProperty("seed", static_cast<int>(kSeed));
  TextMutator mutator(writeToText(makeSamplePlan()), kSeed);
  for (int i = 0; i < kMutants; ++i) {
    const std::string mutant = mutator.mutate();
    // Aborts, with the mutant in the core, when a promise is broken.
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(mutant.data()), mutant.size());
  }
}

}  // namespace
}  // namespace stowage::tests
