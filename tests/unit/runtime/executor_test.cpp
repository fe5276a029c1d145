// SPDX-License-Identifier: Apache-2.0
//
// The executor on the fake device: a schedule alone decides what happens, and what happens is what
// the graph says.
#include "runtime/executor.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/error.h"
#include "ir/fingerprint.h"
#include "ir/parser.h"
#include "runtime/boundary_state.h"
#include "runtime/fake_device.h"
#include "tests/support/fake_training.h"
#include "tests/support/keep_all_schedule.h"

namespace stowage::tests {
namespace {

using runtime::Executor;
using runtime::FakeDevice;

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

struct Fixture {
  ir::Graph graph;
  ir::Target target;
  ir::Schedule schedule;

  explicit Fixture(const char* text = kMlp) : graph(parse(text)) {
    target.profile = "cpu";
    schedule = makeKeepAllSchedule(graph, target);
  }
  static ir::Graph parse(const char* text) {
    auto graph = ir::parseGraph(text);
    if (!graph) throw std::runtime_error(ir::describe(graph.takeError()));
    return std::move(*graph);
  }
  runtime::PlanSource plan() const { return {graph, schedule, target, nullptr, nullptr}; }
  FakeDevice makeDevice() const { return FakeDevice(schedule.arenas); }
};

TEST(Executor, RunsStepsThatEqualThePlainExecution) {
  const Fixture fixture;
  FakeDevice device = fixture.makeDevice();
  EXPECT_EQ(compareWithReference(device, fixture.plan(), 5), "");
}

TEST(Executor, EqualsThePlainExecutionUnderRandomDelays) {
  const Fixture fixture;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FakeDevice device(fixture.schedule.arenas, {seed, Nanoseconds(5000), {}});
    EXPECT_EQ(compareWithReference(device, fixture.plan(), 4), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace stowage::tests
