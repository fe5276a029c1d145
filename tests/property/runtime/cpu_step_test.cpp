// SPDX-License-Identifier: Apache-2.0
//
// Random steps of real ops: measured, scheduled, run on the CPU device inside an arena of exactly
// the bytes that the schedule names, compared with op-by-op replay byte for byte.
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <string>

#include "ir/costs/cost_table.h"
#include "runtime/calibrate/calibrate.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/torch/deterministic_mode.h"
#include "tests/support/cpu_training.h"
#include "tests/support/keep_all_schedule.h"
#include "tests/support/random_graph.h"

namespace stowage::tests {
namespace {

std::string runOne(const ir::Graph& graph, const ir::Target& target, ir::CostTable& table) {
  runtime::CalibrateOptions calibration;
  calibration.intraOpThreads = target.intraOpThreads;
  calibration.runs = 1;
  calibration.known = table;
  auto measured = runtime::calibrate(graph, calibration);
  if (!measured) return ir::describe(measured.takeError());
  table = *measured;
  auto costs = resolveCosts(graph, table);
  if (!costs) return ir::describe(costs.takeError());
  const ir::Schedule schedule = makeKeepAllSchedule(graph, target, &*costs);
  runtime::CpuDeviceOptions options;
  options.deviceBytes = schedule.arenaBytes(ir::Space::kDevice);
  options.hostBytes = schedule.arenaBytes(ir::Space::kHost);
  options.intraOpThreads = target.intraOpThreads;
  auto device = runtime::CpuDevice::open(options);
  if (!device) return ir::describe(device.takeError());
  return compareWithReplay(**device, {graph, schedule, target, &*costs, nullptr});
}

TEST(CpuStep, RandomStepsEqualTheReplay) {
  runtime::setDeterministicMode(true);
  ir::Target target = makeTestTarget();
  target.intraOpThreads = 2;
  ir::CostTable table;
  for (uint64_t seed = 0; seed < 25; ++seed) {
    RandomStepOptions options;
    options.maxWidth = 128;
    const ir::Graph graph = makeRandomStep(seed, options);
    EXPECT_EQ(runOne(graph, target, table), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace stowage::tests
