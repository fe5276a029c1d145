// SPDX-License-Identifier: Apache-2.0
#include "planner/search/in_parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
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

/// Opens when its owner's scope is left: after a throw, while the exception is on its way.
class OpensAtExit {
 public:
  explicit OpensAtExit(std::promise<void>& gate) : gate_(gate) {}
  ~OpensAtExit() { gate_.set_value(); }
  OpensAtExit(const OpensAtExit&) = delete;
  OpensAtExit& operator=(const OpensAtExit&) = delete;

 private:
  std::promise<void>& gate_;
};

/// What the pieces of a call share. Whatever runs on after the call keeps it.
struct Pieces {
  std::promise<void> gate;
  std::shared_future<void> thrown = gate.get_future().share();
  std::atomic<bool> isThrown = false;
  std::atomic<int> done = 0;
};

// One piece throws, on the calling thread or on another one. All others wait for that, and take
// much longer than the call would without waiting for them.
TEST(InParallel, WhatAPieceThrowsArrivesAfterAllAreDone) {
  if (coreCount() < 2) GTEST_SKIP() << "this process has one core";
  constexpr int kPieces = 8;
  for (const bool isCallerToThrow : {true, false}) {
    const auto pieces = std::make_shared<Pieces>();
    const std::thread::id caller = std::this_thread::get_id();
    const auto work = [pieces, caller, isCallerToThrow](size_t) {
      const bool mayThrow = (std::this_thread::get_id() == caller) == isCallerToThrow;
      if (mayThrow && !pieces->isThrown.exchange(true)) {
        const OpensAtExit opens(pieces->gate);
        ++pieces->done;
        throw std::runtime_error("no memory");
      }
      EXPECT_EQ(pieces->thrown.wait_for(std::chrono::seconds(60)), std::future_status::ready);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++pieces->done;
    };
    EXPECT_THROW(inParallel(kPieces, work), std::runtime_error);
    EXPECT_EQ(pieces->done, kPieces) << "not done when the call was over, by the "
                                     << (isCallerToThrow ? "caller's throw" : "other's throw");
  }
}

}  // namespace
}  // namespace stowage::planner
