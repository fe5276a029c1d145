// SPDX-License-Identifier: Apache-2.0
//
// The executor on the fake device: a schedule alone decides what happens, and what happens is what
// the graph says.
#include "runtime/executor/executor.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/schedule/fingerprint.h"
#include "ir/text/parser.h"
#include "runtime/executor/boundary_state.h"
#include "runtime/fake/fake_device.h"
#include "runtime/fake/fake_kernels.h"
#include "tests/support/fake_training.h"
#include "tests/support/keep_all_schedule.h"
#include "tests/support/or_fail.h"
#include "tests/support/recording_device.h"

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
  runtime::PlanSource plan(runtime::ScalarFeed* feed = nullptr) const {
    return {graph, schedule, target, nullptr, feed};
  }
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

std::vector<uint8_t> tokens(const Fixture& f, int64_t step) {
  return runtime::makeFakeBytes(f.graph, ir::StorageId(size_t{0}), step);
}

ir::Error fillState(Executor& executor) {
  return runtime::loadState(executor, [&](ir::StorageId id, llvm::MutableArrayRef<uint8_t> bytes) {
    const auto made = runtime::makeFakeBytes(executor.source().graph, id, -1);
    std::copy(made.begin(), made.end(), bytes.begin());
    return ir::success();
  });
}

std::vector<uint8_t> drainWeights(Executor& executor) {
  std::vector<uint8_t> weights;
  EXPECT_EQ(ir::describe(runtime::drainState(executor,
                                             [&](ir::StorageId, llvm::ArrayRef<uint8_t> bytes) {
                                               weights = bytes.vec();
                                               return ir::success();
                                             })),
            "");
  return weights;
}

// --- what is refused before anything runs

std::string createError(const Fixture& f) {
  FakeDevice device = f.makeDevice();
  CountingFeed feed(f.graph);
  auto executor = Executor::create(device, f.plan(&feed));
  return executor ? "" : ir::describe(executor.takeError());
}

TEST(Executor, RefusesAScheduleThatIsNotSynced) {
  Fixture f;
  f.schedule.level = ir::Level::kPlaced;
  EXPECT_EQ(createError(f), "found a schedule at level 'placed', expected 'synced'");
}

TEST(Executor, RefusesAnotherGraphOrTarget) {
  Fixture other;
  other.schedule.graphFingerprint = "xxh3:0000000000000000";
  EXPECT_NE(createError(other).find("the plan is for graph"), std::string::npos);
  Fixture moved;
  moved.target.intraOpThreads = 3;
  EXPECT_NE(createError(moved).find("the plan is for target"), std::string::npos);
}

TEST(Executor, RefusesADeviceThatIsTooSmall) {
  const Fixture f;
  std::vector<ir::Arena> arenas = f.schedule.arenas;
  arenas[0].bytes -= Bytes(1);
  FakeDevice device(arenas);
  CountingFeed feed(f.graph);
  auto executor = Executor::create(device, f.plan(&feed));
  ASSERT_FALSE(static_cast<bool>(executor));
  EXPECT_NE(ir::describe(executor.takeError()).find("bytes of device memory, the device has"),
            std::string::npos);
}

TEST(Executor, RefusesScalarsWithoutAFeed) {
  const Fixture f;
  FakeDevice device = f.makeDevice();
  auto executor = Executor::create(device, f.plan());
  ASSERT_FALSE(static_cast<bool>(executor));
  EXPECT_EQ(ir::describe(executor.takeError()), "the step has 1 step scalars and no feed for them");
}

struct BrokenCase {
  const char* says;
  std::function<void(ir::Schedule&)> change;
};

// Whatever is in a schedule, executing it never leaves the arenas and never waits for ever.
TEST(Executor, RefusesSchedulesThatCannotBeExecuted) {
  const BrokenCase cases[] = {
      {"outside the host arena", [](auto& s) { s.residencies[1].offset = 1 << 20; }},
      {"outside the host arena", [](auto& s) { s.residencies[1].offset = -512; }},
      {"not aligned", [](auto& s) { s.residencies[1].offset += 16; }},
      {"no such storage", [](auto& s) { s.residencies[1].storage = ir::StorageId(99); }},
      {"waits for a later command", [](auto& s) { s.commands[1].wait = {ir::CommandId(1)}; }},
      {"no command of the step before", [](auto& s) { s.commands[1].prev = {ir::CommandId(99)}; }},
      {"runs a node on h2d", [](auto& s) { s.commands[1].stream = ir::Stream::kHostToDevice; }},
      {"on d2h", [](auto& s) { s.commands[0].stream = ir::Stream::kDeviceToHost; }},
      {"no such node", [](auto& s) { s.commands[1].node = ir::NodeId(99); }},
      {"'in' residencies, expected 2", [](auto& s) { s.commands[1].in.pop_back(); }},
      {"expected a residency of", [](auto& s) { s.commands[1].in[0] = s.commands[1].in[1]; }},
      {"one storage into another", [](auto& s) { s.commands[0].to = s.commands[1].in[1]; }},
      {"copies from or to no residency", [](auto& s) { s.commands[0].to = ir::ResidencyId(); }},
      {"temp region outside",
       [](auto& s) {
         s.commands[1].temp = {0, Bytes(1 << 20)};
       }},
      {"no one residency for an input", [](auto& s) { s.boundary[0].at.clear(); }},
      {"'loss' never reaches the host",
       [](auto& s) {
         s.commands.pop_back();
         s.commands[1].prev = {};
       }},
  };
  for (const BrokenCase& c : cases) {
    Fixture f;
    c.change(f.schedule);
    EXPECT_NE(createError(f).find(c.says), std::string::npos) << c.says << "\n" << createError(f);
  }
}

// --- running

TEST(Executor, WrongInputsStopNothing) {
  const Fixture f;
  FakeDevice device = f.makeDevice();
  CountingFeed feed(f.graph);
  auto executor = Executor::create(device, f.plan(&feed));
  ASSERT_TRUE(static_cast<bool>(executor));
  ASSERT_EQ(ir::describe(fillState(**executor)), "");
  const auto bytes = tokens(f, 0);
  const ir::StorageId x(size_t{0});
  EXPECT_EQ(ir::describe((*executor)->enqueueStep({}).takeError()), "found 0 inputs, expected 1");
  const llvm::ArrayRef<uint8_t> all(bytes);
  EXPECT_EQ(ir::describe((*executor)->enqueueStep({{x, all.drop_back()}}).takeError()),
            "input 'tokens' has 127 bytes, expected 128");
  EXPECT_EQ(ir::describe((*executor)->enqueueStep({{ir::StorageId(1), all}}).takeError()),
            "input 'tokens' is missing");
  auto step = (*executor)->enqueueStep({{x, all}});
  ASSERT_TRUE(static_cast<bool>(step));
  EXPECT_EQ(*step, 0);
}

TEST(Executor, KeepsOutputsOfTwoSteps) {
  const Fixture f;
  FakeDevice device = f.makeDevice();
  CountingFeed feed(f.graph);
  auto executor = Executor::create(device, f.plan(&feed));
  ASSERT_TRUE(static_cast<bool>(executor));
  ASSERT_EQ(ir::describe(fillState(**executor)), "");
  const auto bytes = tokens(f, 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(static_cast<bool>((*executor)->enqueueStep({{ir::StorageId(size_t{0}), bytes}})));
  }
  const ir::StorageId loss(3);
  ASSERT_EQ(f.graph.storage(loss).name, "loss");
  EXPECT_TRUE(static_cast<bool>((*executor)->output(2, loss)));
  EXPECT_TRUE(static_cast<bool>((*executor)->output(1, loss)));
  EXPECT_FALSE(ir::describe((*executor)->output(0, loss).takeError()).empty());
  EXPECT_FALSE(ir::describe((*executor)->output(3, loss).takeError()).empty());
  EXPECT_FALSE(ir::describe((*executor)->output(2, ir::StorageId(1)).takeError()).empty());
}

TEST(Executor, CountsHowOftenAStepIsRecorded) {
  Fixture f;
  f.schedule.graphMode = ir::GraphMode::kWhole;
  FakeDevice device = f.makeDevice();
  RecordingDevice recording(device);
  CountingFeed feed(f.graph, /*stepsPerNumber=*/2);
  auto executor = Executor::create(recording, f.plan(&feed));
  ASSERT_TRUE(static_cast<bool>(executor)) << ir::describe(executor.takeError());
  ASSERT_EQ(ir::describe(fillState(**executor)), "");
  std::vector<int64_t> counts;
  for (int64_t step = 0; step < 6; ++step) {
    const auto bytes = tokens(f, step);
    ASSERT_TRUE(static_cast<bool>((*executor)->enqueueStep({{ir::StorageId(size_t{0}), bytes}})));
    counts.push_back((*executor)->recordings());
  }
  EXPECT_EQ(counts, (std::vector<int64_t>{0, 1, 2, 2, 3, 3}));
}

class FailingFeed : public CountingFeed {
 public:
  using CountingFeed::CountingFeed;
  ir::Expected<llvm::ArrayRef<runtime::ScalarValue>> join() override {
    return ir::makeError(ir::ErrorCode::kUnsupported, "the step changed at op 812; capture again");
  }
};

TEST(Executor, AFeedThatFailsLeavesTheModelAsItWas) {
  const Fixture f;
  FakeDevice device = f.makeDevice();
  FailingFeed feed(f.graph);
  auto executor = Executor::create(device, f.plan(&feed));
  ASSERT_TRUE(static_cast<bool>(executor));
  ASSERT_EQ(ir::describe(fillState(**executor)), "");
  const auto bytes = tokens(f, 0);
  auto step = (*executor)->enqueueStep({{ir::StorageId(size_t{0}), bytes}});
  ASSERT_FALSE(static_cast<bool>(step));
  const ir::PlanError error = ir::takePayload(step.takeError());
  EXPECT_EQ(error.code(), ir::ErrorCode::kUnsupported);
  EXPECT_EQ(error.text(), "the step changed at op 812; capture again");
  // It takes no more steps, with the same error; its state can be read.
  auto again = (*executor)->enqueueStep({{ir::StorageId(size_t{0}), bytes}});
  ASSERT_FALSE(static_cast<bool>(again));
  EXPECT_EQ(ir::takePayload(again.takeError()).text(), error.text());
  EXPECT_TRUE((*executor)->stateIsWhole());
  EXPECT_EQ(drainWeights(**executor), runtime::makeFakeBytes(f.graph, ir::StorageId(1), -1));
  const ir::StorageId weight(1);
  const auto expected = runtime::makeFakeBytes(f.graph, weight, -1);
  std::vector<uint8_t> found(expected.size());
  ASSERT_EQ(
      ir::describe(device.read(ir::Space::kDevice,
                               f.schedule.residency(f.schedule.boundary[1].at[0]).offset, found)),
      "");
  EXPECT_EQ(found, expected);
}

class FailsInStepOne : public CountingFeed {
 public:
  using CountingFeed::CountingFeed;
  void begin(int64_t step) override {
    step_ = step;
    CountingFeed::begin(step);
  }
  ir::Expected<llvm::ArrayRef<runtime::ScalarValue>> join() override {
    if (step_ == 1) return ir::makeError(ir::ErrorCode::kUnsupported, "the step changed");
    return CountingFeed::join();
  }

 private:
  int64_t step_ = 0;
};

TEST(Executor, ARefusedStepLeavesTheOutputsOfTheOneBefore) {
  const Fixture f;
  const ir::StorageId loss(3);
  const auto enqueue = [&](Executor& executor, int64_t step) {
    const auto bytes = tokens(f, step);
    return static_cast<bool>(executor.enqueueStep({{ir::StorageId(size_t{0}), bytes}}));
  };
  const auto lossOf = [&](Executor& executor, int64_t step) {
    return orFail(executor.output(step, loss)).vec();
  };
  const auto runFirstStep = [&](FakeDevice& device, runtime::ScalarFeed& feed) {
    std::unique_ptr<Executor> executor = orFail(Executor::create(device, f.plan(&feed)));
    EXPECT_EQ(ir::describe(fillState(*executor)), "");
    EXPECT_TRUE(enqueue(*executor, 0));
    return executor;
  };
  FakeDevice device = f.makeDevice();
  CountingFeed feed(f.graph);
  const auto right = runFirstStep(device, feed);
  const std::vector<uint8_t> expected = lossOf(*right, 0);

  FakeDevice other = f.makeDevice();
  FailsInStepOne failing(f.graph);
  const auto refused = runFirstStep(other, failing);
  EXPECT_FALSE(enqueue(*refused, 1));
  EXPECT_EQ(lossOf(*refused, 0), expected);
  EXPECT_FALSE(static_cast<bool>(refused->output(1, loss)));
}

// The first node starts before its input is there; the copy is slow.
TEST(Executor, AMissingWaitIsFoundAndStopsTheRun) {
  Fixture f;
  ASSERT_EQ(f.schedule.commands[1].wait.size(), 1U);
  f.schedule.commands[1].wait.clear();
  FakeDevice device(f.schedule.arenas, {0, Nanoseconds(0), {{0, Nanoseconds(1'000'000)}}});
  EXPECT_NE(compareWithReference(device, f.plan(), 2), "");
}

TEST(Executor, PlansTakeTurnsOnOneState) {
  const Fixture train;
  // Another graph with the same state at the same place: two updates in a step.
  std::string text = kMlp;
  text.insert(text.rfind("}"), "  aten.add_.Tensor(inout %w, %g, #lr)\n");
  const Fixture twice(text.c_str());
  ASSERT_EQ(train.schedule.boundary, twice.schedule.boundary);
  ASSERT_EQ(train.schedule.arenas, twice.schedule.arenas);
  FakeDevice device = train.makeDevice();
  CountingFeed feed(train.graph);
  auto first = Executor::create(device, train.plan(&feed));
  auto second = Executor::create(device, twice.plan(&feed));
  ASSERT_TRUE(first && second);
  ASSERT_EQ(ir::describe(fillState(**first)), "");

  const auto bytes = tokens(train, 0);
  const std::vector<runtime::InputBytes> inputs = {{ir::StorageId(size_t{0}), bytes}};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(static_cast<bool>((*first)->enqueueStep(inputs)));
    ASSERT_TRUE(static_cast<bool>((*second)->enqueueStep(inputs)));
  }
  const auto alternating = drainWeights(**second);
  EXPECT_EQ(alternating, drainWeights(**first));

  // The same six steps one after the other, each finished before the next.
  FakeDevice slow = train.makeDevice();
  auto one = Executor::create(slow, train.plan(&feed));
  auto two = Executor::create(slow, twice.plan(&feed));
  ASSERT_TRUE(one && two);
  ASSERT_EQ(ir::describe(fillState(**one)), "");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(static_cast<bool>((*one)->enqueueStep(inputs)));
    ASSERT_EQ(ir::describe((*one)->finish()), "");
    ASSERT_TRUE(static_cast<bool>((*two)->enqueueStep(inputs)));
    ASSERT_EQ(ir::describe((*two)->finish()), "");
  }
  EXPECT_EQ(alternating, drainWeights(**one));
}

}  // namespace
}  // namespace stowage::tests
