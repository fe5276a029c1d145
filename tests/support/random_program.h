// SPDX-License-Identifier: Apache-2.0
//
// Training programs from a seed: modules, losses, optimizers, schedules, and what a step does
// outside of a plan's sight: host numbers that change at some step, generators that are set,
// branches on values, tensors from outside, layouts of inputs.
// Invariant: two programs of one seed do the same when they are run the same way.
#ifndef STOWAGE_TESTS_SUPPORT_RANDOM_PROGRAM_H_
#define STOWAGE_TESTS_SUPPORT_RANDOM_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/trained_twice.h"

namespace stowage::tests {

/// What a program does beside training, each at most once; as words for messages.
struct RandomProgram {
  MakeProgram make;
  std::vector<std::string> traits;
  std::string text() const;
};

/// Steps that a program is about: what changes late does so before.
inline constexpr int kProgramSteps = 12;

RandomProgram makeRandomProgram(uint64_t seed);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_RANDOM_PROGRAM_H_
