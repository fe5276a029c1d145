// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_trial.h"

#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

namespace stowage::runtime {
namespace {

/// Holds the threads until all of them are there.
struct Gate {
  std::mutex mutex;
  std::condition_variable opened;
  bool isOpen = false;
};

void* waitAtGate(void* argument) {
  Gate& gate = *static_cast<Gate*>(argument);
  std::unique_lock<std::mutex> lock(gate.mutex);
  gate.opened.wait(lock, [&] { return gate.isOpen; });
  return nullptr;
}

}  // namespace

ir::Error checkThreads(int count) {
  Gate gate;
  std::vector<pthread_t> threads;
  threads.reserve(static_cast<size_t>(count));
  int failure = 0;
  for (int i = 0; i < count && failure == 0; ++i) {
    pthread_t thread{};
    failure = pthread_create(&thread, nullptr, waitAtGate, &gate);
    if (failure == 0) threads.push_back(thread);
  }
  {
    const std::lock_guard<std::mutex> lock(gate.mutex);
    gate.isOpen = true;
  }
  gate.opened.notify_all();
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  if (failure == 0) return ir::success();
  return ir::makeError(ir::ErrorCode::kEnvironment,
                       "out of memory or threads: this machine gives the command " +
                           std::to_string(threads.size()) + " more threads, expected " +
                           std::to_string(count) + ": " + std::generic_category().message(failure));
}

ir::Error checkOpThreads(int intraOpThreads) {
  // OpenMP's team and libtorch's own pool; three streams, and the step's code beside them.
  constexpr int kPools = 2;
  constexpr int kOthers = 4;
  return checkThreads(kPools * intraOpThreads + kOthers);
}

}  // namespace stowage::runtime
