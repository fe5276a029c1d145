// SPDX-License-Identifier: Apache-2.0
#include "planner/search/in_parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace stowage::planner {
namespace {

TEST(InParallel, EveryPieceOnce) {
  for (const size_t count : {0, 1, 2, 100}) {
    std::vector<std::atomic<int>> done(count);
    inParallel(count, [&](size_t i) { ++done[i]; });
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(done[i], 1) << i << " of " << count;
  }
}

TEST(InParallel, PiecesAreUnderWaySideBySide) {
  if (coreCount() < 2) GTEST_SKIP() << "this process has one core";
  std::mutex mutex;
  std::condition_variable changed;
  int begun = 0;
  int met = 0;
  inParallel(2, [&](size_t) {
    std::unique_lock<std::mutex> lock(mutex);
    ++begun;
    changed.notify_all();
    met += changed.wait_for(lock, std::chrono::seconds(60), [&] { return begun == 2; }) ? 1 : 0;
  });
  EXPECT_EQ(met, 2);
}

TEST(InParallel, WhatAPieceThrowsArrivesAfterAllAreDone) {
  std::atomic<int> done = 0;
  EXPECT_THROW(inParallel(8,
                          [&](size_t i) {
                            ++done;
                            if (i == 0) throw std::runtime_error("no memory");
                          }),
               std::runtime_error);
  const int then = done;
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(done, then) << "a piece ran on after the call was over";
}

}  // namespace
}  // namespace stowage::planner
