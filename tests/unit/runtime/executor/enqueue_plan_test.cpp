// SPDX-License-Identifier: Apache-2.0
//
// What the executor is told about a schedule's inputs: when their bytes may be replaced, and
// whether they may follow on a stream.
#include "runtime/executor/enqueue_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/text/parser.h"
#include "tests/support/or_fail.h"

namespace stowage::tests {
namespace {

constexpr const char* kStep = R"IR(
graph @step version=1 device="cpu" target="cpu" {
  input %x : f32[16]
  input %lr host : f32[]
  parameter %w : f32[16]
forward "":
  %g : f32[16] = aten.mul.Tensor(%w, %x)
optimizer "":
  aten.mul_.Tensor(inout %g, %lr)
  aten.add_.Tensor(inout %w, %g, 1)
}
schedule @step level=synced graph="" target="" ops=0 mode=no_update flowing {
  arena device 256
  arena host 128
  residency r0 %x host 0
  residency r1 %lr host 64
  residency r2 %w device 0
  residency r3 %x device 64
  residency r4 %g device 128
  boundary %x at [r0]
  boundary %lr at [r1]
  boundary %w at [r2] dirty
  c0 = copy r0 -> r3 on h2d prev [c1]
  c1 = run n0 on compute in [r2, r3] out [r4] wait [c0]
  c2 = run n1 on compute in [r4, r1] out [r4]
  c3 = run n2 on compute in [r2, r4] out [r2]
}
)IR";

runtime::EnqueuePlan planOf(const std::string& text) {
  const ir::Module module = orFail(ir::parseModule(text));
  return orFail(runtime::makeEnqueuePlan(module.graph, *module.schedule));
}

runtime::InputPort inputOf(const std::string& text, size_t index) {
  return planOf(text).inputs.at(index);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(EnqueuePlan, AnInputThatIsCopiedFollowsOnTheStreamOfItsCopy) {
  const runtime::InputPort x = inputOf(kStep, 0);
  EXPECT_EQ(x.copiedOn, ir::Stream::kHostToDevice);
  EXPECT_EQ(x.users.size(), 1U);
}

// An op reads a number on the host at its launch: bytes that come later come too late.
TEST(EnqueuePlan, AnInputThatALaunchReadsOnTheHostIsThereBefore) {
  const runtime::InputPort lr = inputOf(kStep, 1);
  EXPECT_EQ(lr.copiedOn, std::nullopt);
  EXPECT_EQ(lr.users.size(), 1U);
}

TEST(EnqueuePlan, BytesAreNotReplacedBeforeACopyIntoTheirPlaceIsDone) {
  const runtime::InputPort x = inputOf(
      replaced(
          kStep, "  c3 = run n2 on compute in [r2, r4] out [r2]\n",
          "  c3 = run n2 on compute in [r2, r4] out [r2]\n  c4 = copy r3 -> r0 on d2h wait [c1]\n"),
      0);
  EXPECT_EQ(x.users.size(), 2U);
  EXPECT_EQ(x.copiedOn, std::nullopt);
}

// An update overwrites %m whole, on the device; between steps its bytes are on the host.
constexpr const char* kReplaces = R"IR(
graph @step version=1 device="cpu" target="cpu" {
  input %x : f32[16]
  parameter %w : f32[16]
  buffer %m : f32[16]
  buffer %g : f32[16]
forward "":
  aten.add_.Tensor(inout %g, %x, 1)
optimizer "":
  aten.copy_.default(out %m, %g)
  aten.zero_.default(out %g)
}
schedule @step level=synced graph="" target="" ops=0 mode=none flowing {
  arena device 256
  arena host 128
  residency r0 %x host 0
  residency r1 %m host 64
  residency r2 %g device 0
  residency r3 %x device 64
  residency r4 %m device 128
  boundary %x at [r0]
  boundary %m at [r1]
  boundary %g at [r2] dirty
  c0 = copy r0 -> r3 on h2d prev [c1]
  c1 = run n0 on compute in [r2, r3] out [r2] wait [c0]
  c2 = run n1 on compute in [r2] out [r4]
  c3 = copy r4 -> r1 on d2h wait [c2]
  c4 = run n2 on compute out [r2]
}
)IR";

TEST(EnqueuePlan, AStepWithoutUpdatesLeavesOutCopiesOfWhatTheyMake) {
  const runtime::EnqueuePlan plan = planOf(kReplaces);
  EXPECT_TRUE(plan.canEndWithoutUpdates);
  std::vector<bool> leftOut;
  for (const runtime::EnqueueRecord& record : plan.records) leftOut.push_back(record.updates);
  // What is set to zero in each step is so without the updates, too.
  EXPECT_EQ(leftOut, (std::vector<bool>{false, false, true, true, false}));
  EXPECT_EQ(plan.firstUpdate, 2U);
  EXPECT_TRUE(plan.emptiesState);
  EXPECT_TRUE(plan.writtenByLoss.empty());
}

TEST(EnqueuePlan, StateWhoseOldBytesOthersMayHaveIsNotThereWithoutTheUpdates) {
  const std::string shared = replaced(kReplaces, "residency r4 %m device 128\n",
                                      "residency r4 %m device 128\n  residency r5 %g host 64\n");
  EXPECT_FALSE(planOf(shared).canEndWithoutUpdates);
}

}  // namespace
}  // namespace stowage::tests
