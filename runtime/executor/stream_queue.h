// SPDX-License-Identifier: Apache-2.0
//
// A stream made of a thread: closures run in the order in which they were pushed. And events as
// counters: an event holds the last step in which it was finished, so waiting for (event, step) is
// waiting until the counter has reached the step; nothing is ever reset.
// A closure may block on an event of another queue. There is no deadlock as long as everything that
// signals the event was pushed before everything that waits for it, over all queues.
#ifndef STOWAGE_RUNTIME_EXECUTOR_STREAM_QUEUE_H_
#define STOWAGE_RUNTIME_EXECUTOR_STREAM_QUEUE_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/executor/device.h"

namespace stowage::runtime {

class StreamQueue {
 public:
  StreamQueue();
  /// Runs everything that was pushed, then ends the thread.
  ~StreamQueue();
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;

  void push(std::function<void()> work);
  /// Blocks until everything pushed so far has run. Not from the queue's own thread.
  void drain();

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool isBusy_ = false;
  bool isClosing_ = false;
  std::thread thread_;  // last: it uses the others
};

/// Any thread may call anything. Signalling wakes those alone who wait for that event: compute
/// signals after every op, and to wake the copying threads each time would cost its core.
class EventCounters {
 public:
  explicit EventCounters(int32_t count) : finished_(static_cast<size_t>(count), -1) {}
  void signal(EventRef event);
  /// Blocks until the event was finished in this step or a later one.
  void wait(EventRef event);

 private:
  struct Waiter {
    EventRef event;
    std::condition_variable arrived;
  };
  bool isFinished(EventRef event) const {
    return finished_[static_cast<size_t>(event.event)] >= event.step;
  }

  std::mutex mutex_;
  std::vector<int64_t> finished_;  // by event: last finished step, -1: none
  std::vector<Waiter*> waiters_;   // those that block, each on its thread's stack
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_EXECUTOR_STREAM_QUEUE_H_
