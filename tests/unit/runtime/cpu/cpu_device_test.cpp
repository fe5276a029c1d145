// SPDX-License-Identifier: Apache-2.0
//
// The CPU device: real ops at planned addresses give the bytes that they give anywhere.
#include "runtime/cpu/cpu_device.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "ir/text/parser.h"
#include "runtime/torch/deterministic_mode.h"
#include "tests/support/cpu_training.h"
#include "tests/support/keep_all_schedule.h"
#include "tests/support/test_ops.h"

namespace stowage::tests {
namespace {

using runtime::CpuDevice;

constexpr const char* kMlp = R"IR(
graph @mlp version=1 device="cpu" target="cpu" recipe="" producer="" steps=2 {
  scalar #lr : f64 = -0.125
  input %x "tokens" : f32[4,8]
  parameter %w "fc.weight" : f32[8,8]
  view %wt of %w : f32[8,8] strides=[1,8]
forward "fc":
  %h : f32[4,8] = aten.mm.default(%x, %wt)
  %h = aten.relu_.default(inout %h)
  %l "loss" output output : f32[] = aten.sum.default(%h, none)
backward "fc":
  view %xt of %x : f32[8,4] strides=[1,8]
  %g "grad(fc.weight)" gradient : f32[8,8] = aten.mm.default(%xt, %h)
optimizer "":
  aten.add_.Tensor(inout %w, %g, #lr)
}
)IR";

ir::Graph parse(const char* text) {
  auto graph = ir::parseGraph(text);
  if (!graph) throw std::runtime_error(ir::describe(graph.takeError()));
  return std::move(*graph);
}

struct Fixture {
  ir::Graph graph;
  ir::Target target;
  ir::Schedule schedule;

  explicit Fixture(const char* text = kMlp) : graph(parse(text)) {
    runtime::setDeterministicMode(true);
    target.profile = "cpu";
    target.intraOpThreads = 2;
    schedule = makeKeepAllSchedule(graph, target);
  }
  /// Every launch may use this much behind what is there.
  void giveTemporary(Bytes bytes) {
    Bytes& arena = schedule.arenas.front().bytes;
    for (ir::Command& command : schedule.commands) {
      if (command.kind != ir::CommandKind::kRun || bytes.value() == 0) continue;
      command.temp = {.offset = arena.value(), .bytes = bytes};
    }
    arena = arena + bytes;
  }
  runtime::PlanSource plan() const { return {graph, schedule, target, nullptr, nullptr}; }
  std::unique_ptr<CpuDevice> openDevice() const {
    runtime::CpuDeviceOptions options;
    options.deviceBytes = schedule.arenaBytes(ir::Space::kDevice);
    options.hostBytes = schedule.arenaBytes(ir::Space::kHost);
    options.intraOpThreads = target.intraOpThreads;
    auto device = CpuDevice::open(options);
    if (!device) throw std::runtime_error(ir::describe(device.takeError()));
    return std::move(*device);
  }
};

TEST(CpuDevice, TrainsAsTheReplayDoes) {
  const Fixture fixture;
  const auto device = fixture.openDevice();
  EXPECT_EQ(compareWithReplay(*device, fixture.plan()), "");
}

/// One op of tests/support/test_ops.h, with `temp` bytes for its temporaries. Its result is the
/// allocation of number `ordinal`.
std::string runMisbehaving(const std::string& op, const std::string& arguments, int64_t temp,
                           int32_t ordinal = 0) {
  registerTestOps();
  const std::string text = R"IR(
graph @g version=1 device="cpu" target="cpu" recipe="" producer="" steps=2 {
  input %x "x" : f32[64,8]
forward "":
  %y "made.here" : f32[64,8] = stowage_test.)IR" +
                           op + ".default(%x" + arguments + R"IR()
  %l "loss" output output : f32[] = aten.sum.default(%y, none)
}
)IR";
  Fixture fixture(text.c_str());
  fixture.giveTemporary(Bytes(temp));
  ir::NodeCosts costs;
  costs.nodes.resize(fixture.graph.nodes().size());
  costs.nodes.front().allocations = 2;
  costs.nodes.front().resultOrdinals = {ordinal};
  runtime::PlanSource plan = fixture.plan();
  plan.costs = &costs;
  const auto device = fixture.openDevice();
  return compareWithReplay(*device, plan);
}

TEST(CpuDevice, RunsAnOpWithinItsTemporaries) {
  EXPECT_EQ(runMisbehaving("scratch", ", 4096", 4096, 1), "");
}

TEST(CpuDevice, RefusesOneByteMoreThanPlanned) {
  const std::string error = runMisbehaving("scratch", ", 4097", 4096, 1);
  EXPECT_NE(error.find("stowage_test.scratch"), std::string::npos) << error;
  EXPECT_NE(error.find("4097 bytes"), std::string::npos) << error;
}

TEST(CpuDevice, RefusesAResultThatIsNotWhereThePlanSays) {
  const std::string error = runMisbehaving("elsewhere", "", 4096);
  EXPECT_NE(error.find("stowage_test.elsewhere"), std::string::npos) << error;
  EXPECT_NE(error.find("from its planned address"), std::string::npos) << error;
  EXPECT_NE(error.find("2048 bytes"), std::string::npos) << error;
}

TEST(CpuDevice, RefusesAnOpThatKeepsItsTemporary) {
  const std::string error = runMisbehaving("keep", ", 512", 4096);
  EXPECT_NE(error.find("stowage_test.keep"), std::string::npos) << error;
}

TEST(CpuDevice, SaysWhichOpFailed) {
  const std::string error = runMisbehaving("fail", "", 0);
  EXPECT_NE(error.find("stowage_test.fail"), std::string::npos) << error;
  EXPECT_NE(error.find("this op always fails"), std::string::npos) << error;
}

}  // namespace
}  // namespace stowage::tests
