// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/thread_trial.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
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

/// What ops take for each thread beside tensors: MKL's packed blocks of a matrix product are 4.5
/// MiB for float, twice that for double.
constexpr int64_t kBufferBytes = int64_t{16} << 20;
/// glibc asks for so much address space to place a thread's heap; refused, each of its allocations
/// asks again.
constexpr int64_t kHeapWindowBytes = int64_t{128} << 20;

/// 0, or why the machine refused. `flags` beside those of a mapping without a file.
int mapAndReturn(int64_t bytes, int protection, int flags) {
  if (bytes == 0) return 0;
  const auto size = static_cast<size_t>(bytes);
  void* mapped = mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (mapped == MAP_FAILED) return errno;
  munmap(mapped, size);
  return 0;
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

ir::Error checkThreadMemory(int count) {
  int failure = mapAndReturn(count * kBufferBytes, PROT_READ | PROT_WRITE, 0);
  if (failure == 0) failure = mapAndReturn(count * kHeapWindowBytes, PROT_NONE, MAP_NORESERVE);
  if (failure == 0) return ir::success();
  return ir::makeError(
      ir::ErrorCode::kEnvironment,
      "out of memory: this machine refuses the address space that ops of " + std::to_string(count) +
          " threads take beside tensors (" + std::to_string(count * kHeapWindowBytes >> 20) +
          " MiB; `ulimit -v` limits it): " + std::generic_category().message(failure));
}

ir::Error checkOpThreads(int intraOpThreads) {
  // OpenMP's team and libtorch's own pool; three streams, and the step's code beside them.
  constexpr int kPools = 2;
  constexpr int kOthers = 4;
  if (ir::Error error = checkThreads(kPools * intraOpThreads + kOthers)) return error;
  return checkThreadMemory(intraOpThreads + 1);
}

}  // namespace stowage::runtime
