// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are threads of a test.
#ifndef STOWAGE_TESTS_SUPPORT_ON_RANKS_H_
#define STOWAGE_TESTS_SUPPORT_ON_RANKS_H_

#include <ATen/Parallel.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/collectives/collective_ops.h"
#include "runtime/ranks/local_ranks.h"

namespace stowage::tests {

using RankWork = std::function<std::string(size_t rank, runtime::Communicator& ranks)>;

/// Calls `work` for each rank, in a thread of its own whose ops run in that thread alone. Returns
/// the first text that is not "", with its rank.
inline std::string onRanks(size_t count, const RankWork& work) {
  const auto ranks = runtime::makeLocalRanks(static_cast<int32_t>(count), std::chrono::seconds(60));
  std::vector<std::string> said(count);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      at::set_num_threads(1);
      runtime::useRanks(ranks[i].get());
      said[i] = work(i, *ranks[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < count; ++i) {
    if (!said[i].empty()) return "rank " + std::to_string(i) + ": " + said[i];
  }
  return "";
}

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_ON_RANKS_H_
