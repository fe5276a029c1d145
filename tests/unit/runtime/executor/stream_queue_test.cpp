// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/stream_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/cpu/throttled_link.h"

namespace stowage::tests {
namespace {

using runtime::EventCounters;
using runtime::StreamQueue;
using runtime::ThrottledLink;

TEST(StreamQueue, RunsInTheOrderOfPushing) {
  std::vector<int> seen;
  {
    StreamQueue queue;
    for (int i = 0; i < 1000; ++i) queue.push([&seen, i] { seen.push_back(i); });
  }  // the destructor runs what is left
  std::vector<int> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(seen, expected);
}

TEST(StreamQueue, DrainWaitsForTheWorkAtHand) {
  StreamQueue queue;
  std::atomic<bool> done = false;
  queue.push([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done = true;
  });
  queue.drain();
  EXPECT_TRUE(done);
}

TEST(StreamQueue, EventsOrderQueues) {
  EventCounters events(2);
  StreamQueue first;
  StreamQueue second;
  std::vector<int64_t> seen;  // guarded by the events
  for (int64_t step = 0; step < 200; ++step) {
    if (step > 0) first.push([&, step] { events.wait({1, step - 1}); });
    first.push([&, step] { seen.push_back(2 * step); });
    first.push([&, step] { events.signal({0, step}); });
    second.push([&, step] { events.wait({0, step}); });
    second.push([&, step] { seen.push_back(2 * step + 1); });
    second.push([&, step] { events.signal({1, step}); });
  }
  first.drain();
  second.drain();
  std::vector<int64_t> expected(400);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(seen, expected);
}

TEST(EventCounters, EachOfManyWaitersIsWokenByItsOwnEvent) {
  constexpr int32_t kEvents = 8;
  EventCounters events(kEvents);
  std::vector<std::thread> waiters;
  std::vector<std::atomic<int64_t>> seen(kEvents);
  for (int32_t event = 0; event < kEvents; ++event) {
    for (const int64_t step : {0, 1, 2}) {
      waiters.emplace_back([&, event, step] {
        events.wait({event, step});
        ++seen[static_cast<size_t>(event)];
      });
    }
  }
  for (int32_t event = kEvents - 1; event >= 0; --event) events.signal({event, 1});
  for (int32_t event = 0; event < kEvents; ++event) {
    while (seen[static_cast<size_t>(event)] < 2) std::this_thread::yield();
    EXPECT_EQ(seen[static_cast<size_t>(event)], 2) << "step 2 was not finished";
    events.signal({event, 2});
  }
  for (std::thread& waiter : waiters) waiter.join();
}

TEST(EventCounters, ALaterStepFinishesEarlierOnes) {
  EventCounters events(1);
  events.signal({0, 5});
  events.wait({0, 3});  // returns
  events.wait({0, 5});
}

TEST(ThrottledLink, TakesLatencyAndBytesOverBandwidth) {
  // 8 MiB at 200 MiB/s: 40 ms, and 10 ms of latency.
  ThrottledLink link(ir::LinkRate{BytesPerSecond(int64_t{200} << 20), Nanoseconds(10'000'000)});
  std::vector<uint8_t> from(8 << 20, 7);
  std::vector<uint8_t> to(from.size(), 0);
  const auto begin = std::chrono::steady_clock::now();
  link.copy(to.data(), from.data(), Bytes(8 << 20));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(to, from);
  EXPECT_GE(took, std::chrono::milliseconds(50));
}

TEST(ThrottledLink, WithoutARateItOnlyCopies) {
  std::vector<uint8_t> from((3 << 20) + 17);
  std::iota(from.begin(), from.end(), uint8_t{0});
  std::vector<uint8_t> to(from.size(), 0);
  ThrottledLink(std::nullopt).copy(to.data(), from.data(), Bytes((3 << 20) + 17));
  EXPECT_EQ(to, from);
}

}  // namespace
}  // namespace stowage::tests
