// SPDX-License-Identifier: Apache-2.0
//
// Keys and values that all ranks see before they can speak to each other. A launcher brings one
// (torchrun: a TCPStore); tests have one in memory.
#ifndef STOWAGE_RUNTIME_RANKS_RANK_STORE_H_
#define STOWAGE_RUNTIME_RANKS_RANK_STORE_H_

#include <string>

#include "ir/base/error.h"

namespace stowage::runtime {

class RankStore {
 public:
  virtual ~RankStore() = default;

  /// Errors: kEnvironment.
  virtual ir::Error set(const std::string& key, const std::string& value) = 0;
  /// Waits until some rank has set it. Errors: kEnvironment when that takes too long.
  virtual ir::Expected<std::string> get(const std::string& key) = 0;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RANKS_RANK_STORE_H_
