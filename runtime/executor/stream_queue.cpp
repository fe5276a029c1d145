// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/stream_queue.h"

#include <algorithm>
#include <utility>

namespace stowage::runtime {

StreamQueue::StreamQueue() : thread_([this] { loop(); }) {}

StreamQueue::~StreamQueue() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    isClosing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StreamQueue::push(std::function<void()> work) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void StreamQueue::drain() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return work_.empty() && !isBusy_; });
}

void StreamQueue::loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return isClosing_ || !work_.empty(); });
    if (work_.empty()) return;
    {
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      isBusy_ = true;
      lock.unlock();
      work();
    }  // what the closure holds is gone before the queue counts as idle
    lock.lock();
    isBusy_ = false;
    if (work_.empty()) changed_.notify_all();
  }
}

void EventCounters::signal(EventRef event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  finished_[static_cast<size_t>(event.event)] = event.step;
  // Under the lock: a waiter that saw its event goes, and its condition with it.
  for (Waiter* waiter : waiters_) {
    if (waiter->event.event == event.event && isFinished(waiter->event)) {
      waiter->arrived.notify_one();
    }
  }
}

void EventCounters::wait(EventRef event) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (isFinished(event)) return;
  Waiter self{event, {}};
  waiters_.push_back(&self);
  self.arrived.wait(lock, [&] { return isFinished(event); });
  waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &self));
}

}  // namespace stowage::runtime
