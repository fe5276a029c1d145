// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are threads of one process. They meet at each collective, and each takes what is for
// it.
#ifndef STOWAGE_RUNTIME_RANKS_LOCAL_RANKS_H_
#define STOWAGE_RUNTIME_RANKS_LOCAL_RANKS_H_

#include <chrono>
#include <memory>
#include <vector>

#include "runtime/ranks/communicator.h"

namespace stowage::runtime {

/// One communicator for each rank. One that is destroyed counts as a rank that is gone.
std::vector<std::unique_ptr<Communicator>> makeLocalRanks(
    int32_t count, std::chrono::milliseconds patience = std::chrono::seconds(kPatienceSeconds));

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RANKS_LOCAL_RANKS_H_
