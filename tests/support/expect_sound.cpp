// SPDX-License-Identifier: Apache-2.0
#include "tests/support/expect_sound.h"

#include <gtest/gtest.h>

#include "ir/verify/verify.h"
#include "runtime/fake/fake_device.h"
#include "tests/support/fake_training.h"

namespace stowage::tests {

void expectProven(const SoundCase& one) {
  for (const ir::Violation& violation : ir::verify({.graph = one.graph,
                                        .schedule = one.schedule,
                                        .target = one.target,
                                        .costs = &one.costs,
                                        .budget = one.budget})) {
    ADD_FAILURE() << "seed " << one.seed << ", " << one.budget.value() << " bytes: V"
                  << violation.rule << " " << violation.message;
  }
}

void expectSound(const SoundCase& one, int steps) {
  expectProven(one);
  for (const Nanoseconds most : {Nanoseconds(0), Nanoseconds(100'000)}) {
    runtime::FakeDevice device(one.schedule.arenas,
                               {.seed = one.seed, .most = most, .commands = {}});
    EXPECT_EQ(compareWithReference(
                  device, {one.graph, one.schedule, one.target, &one.costs, nullptr}, steps),
              "")
        << "seed " << one.seed << ", " << one.budget.value() << " bytes, delays " << most.value();
  }
}

}  // namespace stowage::tests
