// SPDX-License-Identifier: Apache-2.0
#include "planner/search/in_parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace stowage::planner {

namespace {

constexpr size_t kMostCores = 8;

}  // namespace

size_t coreCount() {
  // The standard library counts the machine's, whatever this process may use of them.
  cpu_set_t own;
  const bool isKnown = sched_getaffinity(0, sizeof(own), &own) == 0;
  const size_t cores =
      isKnown ? static_cast<size_t>(CPU_COUNT(&own)) : std::thread::hardware_concurrency();
  return std::clamp<size_t>(cores, 1, kMostCores);
}

void inParallel(size_t count, llvm::function_ref<void(size_t)> work) {
  std::atomic<size_t> next = 0;
  const auto takePieces = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  // Without a launch policy a thread that cannot be had is done without.
  std::vector<std::future<void>> others;
  for (size_t i = 1; i < std::min(count, coreCount()); ++i)
    others.push_back(std::async(takePieces));
  takePieces();
  for (std::future<void>& other : others) other.get();
}

}  // namespace stowage::planner
