// SPDX-License-Identifier: Apache-2.0
//
// Random schedules on real threads. Under the thread sanitizer this also shows that the executor,
// the streams and the events order everything that the schedule orders.
#include "runtime/fake/threaded_fake_device.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/fake_training.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_schedule.h"

namespace stowage::tests {
namespace {

struct Case {
  ir::Graph graph;
  ir::Target target = makeTestTarget();
  ir::Schedule schedule;

  std::string run(uint64_t seed, Nanoseconds pause) const {
    runtime::ThreadedFakeDevice device(schedule.arenas, seed, pause);
    return compareWithReference(device, {graph, schedule, target, nullptr, nullptr}, 4);
  }
};

Case makeCase(uint64_t seed) {
  RandomStepOptions options;
  options.maxWidth = 48;
  options.maxLayers = 2;
  Case made{makeRandomStep(seed, options)};
  made.schedule = makeRandomSchedule(made.graph, made.target, randomStyle(seed));
  return made;
}

TEST(ThreadedFakeDevice, RandomSchedulesEqualThePlainExecution) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Case c = makeCase(seed);
    EXPECT_EQ(c.run(seed, Nanoseconds(20'000)), "") << "seed " << seed;
    EXPECT_EQ(c.run(seed, Nanoseconds(0)), "") << "seed " << seed;
  }
}

// Without any waits a schedule with copies cannot come out right on threads that pause.
TEST(ThreadedFakeDevice, MissingWaitsShow) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "these are the races that the sanitizer is there to find";
#endif
  int failed = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Case c = makeCase(seed);
    ScheduleStyle style;
    style.seed = seed;
    style.host = 700;
    c.schedule = makeRandomSchedule(c.graph, c.target, style);
    for (ir::Command& command : c.schedule.commands) {
      command.wait.clear();
      command.prev.clear();
    }
    failed += c.run(seed, Nanoseconds(200'000)).empty() ? 0 : 1;
  }
  EXPECT_EQ(failed, 6);
}

}  // namespace
}  // namespace stowage::tests
