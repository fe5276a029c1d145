// SPDX-License-Identifier: Apache-2.0
//
// The one-call interface on several ranks. A launcher must start this program for most of it
// (tests/python/test_torchrun.py does).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/scratch_folder.h"
#include "tests/support/session_training.h"

namespace stowage::tests {
namespace {

constexpr int kSteps = 4;

/// A rank's own random numbers and batch.
std::pair<Tensor, Tensor> beginStep(int64_t rank, int step) {
  torch::manual_seed(static_cast<uint64_t>(100 * rank + step));
  return makeBatch(static_cast<int>(10 * rank) + step);
}

/// As many modules as there are ranks, with gradients averaged in rank order.
void trainPlainly(std::vector<Training>& ranks) {
  for (int step = 0; step < kSteps; ++step) {
    for (size_t i = 0; i < ranks.size(); ++i) {
      const auto [x, y] = beginStep(static_cast<int64_t>(i), step);
      ranks[i].losses.push_back(ranks[i].loss(x, y).item<float>());
    }
    const size_t parameters = ranks[0].model->parameters().size();
    for (size_t p = 0; p < parameters; ++p) {
      Tensor mean = ranks[0].model->parameters()[p].grad().clone();
      for (size_t i = 1; i < ranks.size(); ++i) mean.add_(ranks[i].model->parameters()[p].grad());
      mean.div_(static_cast<int64_t>(ranks.size()));
      for (Training& one : ranks) one.model->parameters()[p].grad().copy_(mean);
    }
    for (Training& one : ranks) one.update();
  }
}

TEST(SessionRanks, AProcessWithoutALauncherIsAlone) {
  const Ranks ranks = Ranks::join();
  if (ranks.count() > 1) GTEST_SKIP() << "started by a launcher";
  EXPECT_EQ(ranks.rank(), 0);
  Training planned;
  const Step step = capture(planned.describe());
  Runner runner = Runner::create(orThrow(plan(step, {.budget = 1_MiB})), step, {.ranks = &ranks});
  train(runner, planned, 0, 1);
}

TEST(SessionRanks, AStepForSeveralIsNotRunAlone) {
  Training planned;
  Description description = planned.describe();
  description.ranks = 2;
  const Step step = capture(description);
  EXPECT_EQ(step.graph().ranks(), 2);
  try {
    Runner::create(orThrow(plan(step, {.budget = 1_MiB})), step);
    FAIL() << "it began";
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(), "the plan is for 2 ranks, this training has 1");
  }
}

TEST(UnderALauncher, TrainsAsPlainModulesDo) {
  const Ranks ranks = Ranks::join();
  if (ranks.count() == 1) GTEST_SKIP() << "no launcher started this program";
  std::vector<Training> plain(static_cast<size_t>(ranks.count()));
  trainPlainly(plain);
  Training planned;
  Description description = planned.describe();
  description.ranks = ranks.count();
  const Step step = capture(description);
  Runner runner =
      Runner::create(orThrow(plan(step, {.budget = percentOfPeak(70)})), step, {.ranks = &ranks});
  for (int i = 0; i < kSteps; ++i) {
    const auto [x, y] = beginStep(ranks.rank(), i);
    planned.losses.push_back(runner(x, y).item<float>());
  }
  runner.storeTo(planned.model);
  expectSame(plain[static_cast<size_t>(ranks.rank())], planned);
}

}  // namespace
}  // namespace stowage::tests
