// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are processes, on one host or several, over TCP. For training on CPUs, and for what
// the ranks of a training on GPUs say to each other beside their tensors.
#ifndef STOWAGE_RUNTIME_RANKS_SOCKET_RANKS_H_
#define STOWAGE_RUNTIME_RANKS_SOCKET_RANKS_H_

#include <chrono>
#include <memory>

#include "runtime/ranks/communicator.h"
#include "runtime/ranks/socket_mesh.h"

namespace stowage::runtime {

struct RankPatience {
  std::chrono::milliseconds join = std::chrono::seconds(kPatienceSeconds);        // for all to come
  std::chrono::milliseconds collective = std::chrono::seconds(kPatienceSeconds);  // for a byte
};

/// Waits for all ranks. Errors: as connectRanks.
ir::Expected<std::unique_ptr<Communicator>> joinRanks(const RankPlace& place, RankStore& store,
                                                      const RankPatience& patience = {});

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RANKS_SOCKET_RANKS_H_
