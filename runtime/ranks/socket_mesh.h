// SPDX-License-Identifier: Apache-2.0
//
// A connection of this rank with each other one. Every rank listens, says where in the store, and
// connects to the ranks before it. Who connects says which rank it is, and shows the token that the
// listener put into the store.
#ifndef STOWAGE_RUNTIME_RANKS_SOCKET_MESH_H_
#define STOWAGE_RUNTIME_RANKS_SOCKET_MESH_H_

#include <chrono>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "runtime/ranks/rank_store.h"
#include "runtime/ranks/socket.h"

namespace stowage::runtime {

struct RankPlace {
  int32_t rank = 0;
  int32_t count = 1;
  std::string host = "127.0.0.1";  // an address of this rank's host that the others reach
};

/// By rank; none at this rank's own place.
/// Errors: kInvalidArgument for a rank that is not one of `count`; kEnvironment, with the ranks
/// that did not come, after `patience`.
ir::Expected<std::vector<Socket>> connectRanks(const RankPlace& place, RankStore& store,
                                               std::chrono::milliseconds patience);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RANKS_SOCKET_MESH_H_
