// SPDX-License-Identifier: Apache-2.0
//
// A training that gives its device memory back between two steps: the memory is gone, comes back
// when it can, and the steps go on with the bits of plain libtorch.
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/process_memory.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/session_training.h"

namespace stowage::tests {
namespace {

constexpr Bytes kRoom(int64_t{64} << 20);      // much more than the step needs
constexpr int64_t kOther = int64_t{16} << 20;  // of the process, meanwhile

Runner makeRunnerIn(const Step& step, Bytes budget) {
  return Runner::create(orThrow(plan(step, {.budget = budget})), step);
}

Bytes tightBudget(const Step& step) {
  const Plan all = orThrow(plan(step, {.budget = 1_MiB}));
  return Bytes(all.keepAll().value() * 8 / 10);
}

TEST(SessionRelease, BetweenStepsLeavesTheBits) {
  for (const bool isTight : {false, true}) {
    Training eager, planned;
    trainEagerly(eager, 0, 6);
    const Step step = capture(planned.describe());
    Runner runner = makeRunnerIn(step, isTight ? tightBudget(step) : Bytes(1_MiB));
    torch::manual_seed(4);
    for (int i = 0; i < 6; ++i) {
      train(runner, planned, i, i + 1);
      const runtime::ArenaCopy out = runner.release();
      const runtime::ArenaCopy back = runner.restore();
      EXPECT_EQ(out.bytes, back.bytes);
      EXPECT_LT(out.bytes, runner.internals().arenaBytes());
      if (!isTight) {
        EXPECT_GT(out.bytes, Bytes(0)) << "nothing was on the device";
      }
    }
    runner.storeTo(planned.model);
    expectSame(eager, planned);
  }
}

TEST(SessionRelease, WaitsForTheStepsEnqueuedAndKeepsTheirLosses) {
  Training eager, planned;
  trainEagerly(eager, 0, 4);
  const Step step = capture(planned.describe());
  Runner runner = makeRunnerIn(step, tightBudget(step));
  torch::manual_seed(4);
  for (int i = 0; i < 4; ++i) {
    const auto [x, y] = makeBatch(i);
    const int64_t number = runner.enqueue(x, y);
    runner.release();
    planned.losses.push_back(runner.loss(number).item<float>());
    runner.restore();
  }
  runner.storeTo(planned.model);
  expectSame(eager, planned);
}

TEST(SessionRelease, BeforeTheFirstStepAndAfterACheckpoint) {
  const ScratchFolder folder("session_release");
  Training eager, first, second;
  trainEagerly(eager, 0, 4);
  {
    const Step step = capture(first.describe());
    Runner runner = makeRunnerIn(step, tightBudget(step));
    runner.release();
    runner.restore();
    torch::manual_seed(4);
    train(runner, first, 0, 2);
    runner.release();
    runner.restore();
    runner.save(folder.at("checkpoint"));
  }
  const Step step = capture(second.describe());
  Runner runner = makeRunnerIn(step, tightBudget(step));
  EXPECT_EQ(runner.load(folder.at("checkpoint")).steps, 2);
  runner.release();
  runner.restore();
  train(runner, second, 2, 4);
  runner.storeTo(second.model);
  second.losses.insert(second.losses.begin(), first.losses.begin(), first.losses.end());
  expectSame(eager, second);
}

TEST(SessionRelease, TakesTheArenaOutOfMemory) {
  Training training;
  const Step step = capture(training.describe());
  Runner runner = makeRunnerIn(step, kRoom);
  train(runner, training, 0, 2);
  const int64_t before = processMemory("VmRSS");
  runner.release();
  EXPECT_LT(processMemory("VmRSS"), before - kRoom.value() + kOther);
  runner.restore();
  EXPECT_GT(processMemory("VmRSS"), before - kOther);
}

TEST(SessionRelease, KeepsWhatIsMeasuredOfTheArena) {
  Training training;
  const Step step = capture(training.describe());
  Runner runner = makeRunnerIn(step, tightBudget(step));
  train(runner, training, 0, 2);
  const Bytes mark = orThrow(runner.internals().highWaterMark());
  runner.release();
  runner.restore();
  orThrow(runner.internals().checkCanaries());
  train(runner, training, 2, 3);
  orThrow(runner.internals().checkCanaries());
  EXPECT_EQ(orThrow(runner.internals().highWaterMark()), mark);
}

TEST(SessionRelease, ThatCannotBeUndoneYetIsUndoneLater) {
  Training eager, planned;
  trainEagerly(eager, 0, 4);
  const Step step = capture(planned.describe());
  Runner runner = makeRunnerIn(step, kRoom);
  torch::manual_seed(4);
  train(runner, planned, 0, 2);
  runner.release();
  for (int i = 0; i < 2; ++i) {
    Failed failed;
    {
      const MemoryLimit limit(kOther);
      failed = failureOf([&] { runner.restore(); });
    }
    EXPECT_EQ(failed.code, ir::ErrorCode::kOutOfDeviceMemory) << failed.text;
    expectSays(failed.text, {"could not restore", "the device arena"});
    EXPECT_TRUE(runner.internals().isReleased());
  }
  runner.restore();
  train(runner, planned, 2, 4);
  runner.storeTo(planned.model);
  expectSame(eager, planned);
}

TEST(SessionRelease, ForWhichTheHostHasNoRoomReleasesNothing) {
  Training eager, planned;
  trainEagerly(eager, 0, 3);
  const Step step = capture(planned.describe());
  Runner runner = makeRunnerIn(step, 1_MiB);
  torch::manual_seed(4);
  train(runner, planned, 0, 2);
  Failed failed;
  {
    const MemoryLimit limit(-kOther);  // nothing more at all
    failed = failureOf([&] { runner.release(); });
  }
  EXPECT_EQ(failed.code, ir::ErrorCode::kOutOfDeviceMemory) << failed.text;
  expectSays(failed.text, {"the state of a released device arena"});
  EXPECT_FALSE(runner.internals().isReleased());
  train(runner, planned, 2, 3);
  runner.storeTo(planned.model);
  expectSame(eager, planned);
}

TEST(SessionRelease, RefusesEverythingElseUntilItIsRestored) {
  const ScratchFolder folder("session_released");
  Training eager, planned;
  trainEagerly(eager, 0, 3);
  const Step step = capture(planned.describe());
  Runner runner = makeRunnerIn(step, tightBudget(step));
  torch::manual_seed(4);
  train(runner, planned, 0, 2);
  runner.release();
  const std::vector<std::function<void()>> uses = {
      [&] { train(runner, planned, 2, 3); },
      [&] { runner.save(folder.at("checkpoint")); },
      [&] { runner.load(folder.at("checkpoint")); },
      [&] { runner.read([] {}); },
      [&] { runner.storeTo(planned.model); },
      [&] { runner.release(); },
      [&] { orThrow(runner.internals().takeTurn()); },
      [&] { orThrow(runner.internals().value(ir::StorageId(0))); },
      [&] { orThrow(runner.internals().checkCanaries()); },
      [&] { orThrow(runner.internals().highWaterMark()); },
      [&] {
        orThrow(runner.internals().visitState(
            [](const ir::Storage&, llvm::ArrayRef<uint8_t>) { return ir::success(); }));
      }};
  for (size_t i = 0; i < uses.size(); ++i) {
    const Failed failed = failureOf(uses[i]);
    EXPECT_EQ(failed.code, ir::ErrorCode::kInvalidArgument) << i << ": " << failed.text;
    if (i != 2) expectSays(failed.text, {"restore()"});  // load: steps are done
  }
  runner.finish();
  EXPECT_EQ(runner.stepsDone(), 2);
  EXPECT_FALSE(runner.internals().isStopped());
  EXPECT_FALSE(runner.internals().isLost());
  runner.restore();
  expectSays(failureOf([&] { runner.restore(); }).text, {"release()"});
  train(runner, planned, 2, 3);
  runner.storeTo(planned.model);
  expectSame(eager, planned);
}

TEST(SessionRelease, MayEndTheTraining) {
  Training training;
  const Step step = capture(training.describe());
  Runner runner = makeRunnerIn(step, tightBudget(step));
  train(runner, training, 0, 1);
  runner.release();
}

TEST(SessionRelease, IsRefusedInsideOfReadAndAfterStoreTo) {
  Training training;
  const Step step = capture(training.describe());
  Runner runner = makeRunnerIn(step, 1_MiB);
  train(runner, training, 0, 1);
  runner.read([&] {
    EXPECT_EQ(failureOf([&] { runner.release(); }).code, ir::ErrorCode::kInvalidArgument);
  });
  runner.storeTo(training.model);
  EXPECT_EQ(failureOf([&] { runner.release(); }).code, ir::ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace stowage::tests
