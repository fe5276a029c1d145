// SPDX-License-Identifier: Apache-2.0
//
// The budget is all that a step takes: once the libraries are warm, the device's threads take
// nothing from the C library. The same count sees an op that does.
#include "tests/support/outside_memory.h"
#include "runtime/torch/deterministic_mode.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "ir/text/parser.h"
#include "tests/support/cpu_training.h"
#include "tests/support/keep_all_schedule.h"
#include "tests/support/test_ops.h"

namespace stowage::tests {
namespace {

/// What three more steps take from outside, after three that warm up. `op` reads %x: f32[256,256].
OutsideMemory takenBy(const std::string& op) {
  registerTestOps();
  runtime::setDeterministicMode(true);
  auto graph = ir::parseGraph(R"IR(
graph @g version=1 device="cpu" target="cpu" recipe="" producer="" steps=2 {
  input %x "x" : f32[256,256]
forward "":
  %y : f32[256,256] = )IR" + op +
                              R"IR(
  %z : f32[256,256] = aten.gelu.default(%y, "none")
  %l "loss" output output : f32[] = aten.sum.default(%z, none)
}
)IR");
  if (!graph) throw std::runtime_error(ir::describe(graph.takeError()));
  ir::Target target;
  target.profile = "cpu";
  target.intraOpThreads = 2;
  // Room for the workers' partial sums behind everything that has a place.
  ir::Schedule schedule = makeKeepAllSchedule(*graph, target);
  Bytes& arena = schedule.arenas.front().bytes;
  for (ir::Command& command : schedule.commands) {
    if (command.kind != ir::CommandKind::kRun) continue;
    command.temp = {.offset = arena.value(), .bytes = Bytes(4096)};
  }
  arena += Bytes(4096);
  runtime::CpuDeviceOptions options;
  options.deviceBytes = schedule.arenaBytes(ir::Space::kDevice);
  options.hostBytes = schedule.arenaBytes(ir::Space::kHost);
  options.intraOpThreads = target.intraOpThreads;
  auto device = runtime::CpuDevice::open(options);
  if (!device) throw std::runtime_error(ir::describe(device.takeError()));
  const runtime::PlanSource plan{*graph, schedule, target, nullptr, nullptr};
  EXPECT_EQ(compareWithReplay(**device, plan), "");
  const OutsideMemory before = countOutsideMemory();
  EXPECT_EQ(compareWithReplay(**device, plan), "");
  const OutsideMemory after = countOutsideMemory();
  return {after.calls - before.calls, after.bytes - before.bytes};
}

TEST(OutsideMemory, StepsTakeNothingOnceWarm) {
  for (const char* op : {"aten.mm.default(%x, %x)", "aten._softmax.default(%x, 1, false)",
                         "aten.mul.Tensor(%x, %x)"}) {
    const OutsideMemory taken = takenBy(op);
    EXPECT_EQ(taken.calls, 0) << op << " took " << taken.bytes << " bytes";
  }
}

TEST(OutsideMemory, AnOpThatTakesMemoryShows) {
  const OutsideMemory taken = takenBy("stowage_test.hoard.default(%x, 1048576)");
  EXPECT_EQ(taken.calls, 3);
  EXPECT_EQ(taken.bytes, 3 * 1048576);
}

}  // namespace
}  // namespace stowage::tests
