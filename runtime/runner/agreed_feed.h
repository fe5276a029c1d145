// SPDX-License-Identifier: Apache-2.0
//
// Step scalars that all ranks have in common: a rate that differs between ranks would update each
// shard in its own way. Compared in each step, before its updates.
#ifndef STOWAGE_RUNTIME_RUNNER_AGREED_FEED_H_
#define STOWAGE_RUNTIME_RUNNER_AGREED_FEED_H_

#include <optional>

#include "runtime/executor/scalar_feed.h"
#include "runtime/ranks/communicator.h"

namespace stowage::runtime {

class AgreedFeed : public ScalarFeed {
 public:
  /// `own` gives this rank's; both outlive the feed.
  AgreedFeed(ScalarFeed& own, Communicator& ranks) : own_(own), ranks_(ranks) {}

  bool checksStep(int64_t step) const override { return own_.checksStep(step); }
  void begin(int64_t step) override { own_.begin(step); }
  bool comesFirst() const override { return own_.comesFirst(); }
  llvm::ArrayRef<ir::StorageId> wanted() const override { return own_.wanted(); }
  void tell(size_t index, std::optional<llvm::ArrayRef<uint8_t>> bytes) override {
    own_.tell(index, bytes);
  }
  /// Errors: also kEnvironment, naming the first rank with others.
  ir::Expected<llvm::ArrayRef<ScalarValue>> join() override;

 private:
  ScalarFeed& own_;
  Communicator& ranks_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RUNNER_AGREED_FEED_H_
