// SPDX-License-Identifier: Apache-2.0
//
// The store of a launcher, by libtorch's TCPStore.
#ifndef STOWAGE_RUNTIME_LAUNCH_C10D_STORE_H_
#define STOWAGE_RUNTIME_LAUNCH_C10D_STORE_H_

#include <chrono>
#include <memory>

#include "runtime/launch/launched_rank.h"
#include "runtime/ranks/communicator.h"
#include "runtime/ranks/rank_store.h"
#include "runtime/ranks/socket_ranks.h"

namespace stowage::runtime {

/// Of this start of the training alone. Rank 0 serves it where the launcher does not, until the
/// store is destroyed. Errors: kEnvironment with the address, where nobody serves it in time.
ir::Expected<std::unique_ptr<RankStore>> openStore(const LaunchedRank& launched,
                                                   std::chrono::milliseconds patience);

/// A store for processes on this host, served on a free port of the loopback until it is destroyed.
class ServedStore {
 public:
  virtual ~ServedStore() = default;
  virtual uint16_t port() const = 0;
};
/// Errors: kEnvironment.
ir::Expected<std::unique_ptr<ServedStore>> serveStore();

/// A communicator with all other ranks that the launcher started. `store` must outlive the start of
/// all of them: on rank 0, the training. Errors: as joinRanks.
ir::Expected<std::unique_ptr<Communicator>> joinLaunchedRanks(const LaunchedRank& launched,
                                                              RankStore& store,
                                                              const RankPatience& patience = {});

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_LAUNCH_C10D_STORE_H_
