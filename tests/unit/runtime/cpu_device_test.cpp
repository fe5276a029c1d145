// SPDX-License-Identifier: Apache-2.0
//
// The CPU device: real ops at planned addresses give the bytes that they give anywhere.
#include "runtime/cpu_device.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "ir/parser.h"
#include "tests/support/cpu_training.h"
#include "tests/support/keep_all_schedule.h"

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
    at::globalContext().setDeterministicAlgorithms(true, false);
    target.profile = "cpu";
    target.intraOpThreads = 2;
    schedule = makeKeepAllSchedule(graph, target);
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

}  // namespace
}  // namespace stowage::tests
