// SPDX-License-Identifier: Apache-2.0
//
// Random steps under keep-all schedules on the fake device.
#include <gtest/gtest.h>

#include <string>

#include "runtime/fake_device.h"
#include "tests/support/fake_training.h"
#include "tests/support/keep_all_schedule.h"
#include "tests/support/random_graph.h"

namespace stowage::tests {
namespace {

TEST(FakeStep, RandomStepsEqualThePlainExecution) {
  const ir::Target target = makeTestTarget();
  for (uint64_t seed = 0; seed < 40; ++seed) {
    RandomStepOptions options;
    options.maxWidth = 64;
    const ir::Graph graph = makeRandomStep(seed, options);
    const ir::Schedule schedule = makeKeepAllSchedule(graph, target);
    runtime::FakeDevice device(schedule.arenas, {seed, Nanoseconds(5000), {}});
    EXPECT_EQ(compareWithReference(device, {graph, schedule, target, nullptr, nullptr}, 3), "")
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace stowage::tests
