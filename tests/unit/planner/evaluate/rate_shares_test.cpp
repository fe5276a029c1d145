// SPDX-License-Identifier: Apache-2.0
//
// Streams that slow each other down: the times of random steps are checked by the work that each
// command gets done in them, counted moment by moment.
#include "planner/evaluate/rate_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/evaluate/timing.h"
#include "tests/support/random.h"

namespace stowage::planner {
namespace {

using ir::Stream;

constexpr int kHalf = 500;
const std::vector<RateShare> kDisk = {{Stream::kDiskRead, Stream::kDiskWrite, kHalf},
                                      {Stream::kDiskWrite, Stream::kDiskRead, kHalf}};

struct Step {
  std::vector<Stream> streams;
  std::vector<int64_t> durations;
  Dependencies dependencies;

  void add(Stream stream, int64_t duration) {
    streams.push_back(stream);
    durations.push_back(duration);
    dependencies.wait.emplace_back();
    dependencies.prev.emplace_back();
  }
  Timeline time(llvm::ArrayRef<RateShare> shares) const {
    return simulateTiming({.streams = streams,
                           .durations = durations,
                           .dependencies = dependencies,
                           .meetings = {},
                           .shares = shares,
                           .launchOverheads = {}});
  }
};

/// Nanoseconds of [begin, end) in which `stream` is busy, when steps follow each other.
int64_t busyWithin(const Step& step, const Timeline& timeline, Stream stream, int64_t begin,
                   int64_t end) {
  int64_t busy = 0;
  for (int64_t at = begin; at < end; ++at) {
    const auto isRunning = [&](size_t i) {
      for (int64_t shift = -3; shift <= 3; ++shift) {
        const int64_t moment = at + shift * timeline.stepTime.value();
        if (moment >= timeline.start[i].value() && moment < timeline.end[i].value()) return true;
      }
      return false;
    };
    for (size_t i = 0; i < step.streams.size(); ++i) {
      if (step.streams[i] != stream || !isRunning(i)) continue;
      ++busy;
      break;
    }
  }
  return busy;
}

TEST(RateShares, AreThoseOfTheMachine) {
  ir::LinkModel links;
  EXPECT_TRUE(findRateShares(links).empty());
  links.besideHostPermille = 700;
  const std::vector<RateShare> shares = findRateShares(links);
  ASSERT_EQ(shares.size(), 1U);
  EXPECT_EQ(shares[0].stream, Stream::kHostToDevice);
  EXPECT_EQ(shares[0].beside, Stream::kHostCompute);
  EXPECT_EQ(shares[0].permille, 700);
}

TEST(RateShares, AStreamThatIsAloneKeepsItsRate) {
  Step step;
  step.add(Stream::kCompute, 5000);
  step.add(Stream::kDiskRead, 4000);
  EXPECT_EQ(step.time(kDisk).stepTime, Nanoseconds(5000));
}

TEST(RateShares, ReadsAndWritesAtOnceTakeLonger) {
  Step step;
  step.add(Stream::kDiskRead, 4000);
  step.add(Stream::kDiskWrite, 4000);
  const Timeline timeline = step.time(kDisk);
  EXPECT_EQ(timeline.stepTime, Nanoseconds(8000));
  EXPECT_EQ(timeline.busy[static_cast<size_t>(Stream::kDiskRead)], Nanoseconds(8000));
}

TEST(RateShares, NothingSlowsDownTheOneThatIsNotNamed) {
  Step step;
  step.add(Stream::kHostToDevice, 4000);
  step.add(Stream::kHostCompute, 8000);
  step.add(Stream::kCompute, 10);
  for (const size_t beside : {0, 1}) {
    step.dependencies.wait[2].emplace_back(beside);
    step.dependencies.prev[beside].emplace_back(2);
  }
  const RateShare share{Stream::kHostToDevice, Stream::kHostCompute, kHalf};
  const Timeline timeline = step.time(share);
  EXPECT_EQ(timeline.stepTime, Nanoseconds(8010));
  EXPECT_EQ(timeline.end[1] - timeline.start[1], Nanoseconds(8000));
  EXPECT_EQ(timeline.end[0] - timeline.start[0], Nanoseconds(8000));
}

// Compute waits for each read, and each write for compute, as with activations on a disk.
Step randomStep(uint64_t seed) {
  tests::Random random(seed);
  Step step;
  const int64_t launches = random.between(2, 6);
  for (int64_t i = 0; i < launches; ++i) {
    if (random.between(0, 2) > 0) step.add(Stream::kDiskRead, random.between(20, 400));
    step.add(Stream::kCompute, random.between(50, 300));
    const size_t compute = step.streams.size() - 1;
    if (compute > 0 && step.streams[compute - 1] == Stream::kDiskRead) {
      step.dependencies.wait[compute].emplace_back(compute - 1);
    }
    if (random.between(0, 2) == 0) continue;
    step.add(Stream::kDiskWrite, random.between(20, 400));
    step.dependencies.wait.back().emplace_back(compute);
  }
  return step;
}

TEST(RateShares, EachCommandGetsItsWorkDone) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Step step = randomStep(seed);
    const Timeline timeline = step.time(kDisk);
    int64_t needed = 0;
    int64_t missing = 0;
    for (size_t i = 0; i < step.streams.size(); ++i) {
      if (step.streams[i] == Stream::kCompute) continue;
      const Stream other =
          step.streams[i] == Stream::kDiskRead ? Stream::kDiskWrite : Stream::kDiskRead;
      const int64_t begin = timeline.start[i].value();
      const int64_t end = timeline.end[i].value();
      const int64_t beside = busyWithin(step, timeline, other, begin, end);
      const int64_t done = end - begin - beside * (1000 - kHalf) / 1000;
      needed += step.durations[i];
      missing += std::abs(done - step.durations[i]);
    }
    // The turns between durations and times end before they agree altogether.
    EXPECT_LE(missing * 100, needed * 15) << "seed " << seed;
  }
}

}  // namespace
}  // namespace stowage::planner
