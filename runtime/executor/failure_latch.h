// SPDX-License-Identifier: Apache-2.0
//
// The first failure of a device's streams, kept until somebody asks. Any thread may set and read
// it; later failures are dropped, since they follow from the first.
#ifndef STOWAGE_RUNTIME_EXECUTOR_FAILURE_LATCH_H_
#define STOWAGE_RUNTIME_EXECUTOR_FAILURE_LATCH_H_

#include <atomic>
#include <mutex>
#include <optional>

#include "ir/base/error.h"

namespace stowage::runtime {

class FailureLatch {
 public:
  /// Success leaves it as it is.
  void set(ir::Error error) {
    if (!error) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    ir::PlanError payload = ir::takePayload(std::move(error));
    if (!first_) first_ = std::move(payload);
    isSet_.store(true, std::memory_order_release);
  }
  bool isSet() const { return isSet_.load(std::memory_order_acquire); }
  /// The first failure, or success. May be asked any number of times.
  ir::Error get() const {
    if (!isSet()) return ir::success();
    const std::lock_guard<std::mutex> lock(mutex_);
    return ir::makeError(*first_);
  }

 private:
  std::atomic<bool> isSet_{false};
  mutable std::mutex mutex_;
  std::optional<ir::PlanError> first_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_EXECUTOR_FAILURE_LATCH_H_
