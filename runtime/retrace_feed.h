// SPDX-License-Identifier: Apache-2.0
//
// Step scalars from the user's own optimizer: each step, `update` is traced once more on tensors
// without memory, on a thread of its own, while the device works on the step.
#ifndef STOWAGE_RUNTIME_RETRACE_FEED_H_
#define STOWAGE_RUNTIME_RETRACE_FEED_H_

#include <array>
#include <future>
#include <optional>
#include <vector>

#include "ir/error.h"
#include "ir/units.h"
#include "runtime/runnable_step.h"
#include "runtime/scalar_feed.h"

namespace stowage::runtime {

class RetraceFeed : public ScalarFeed {
 public:
  /// `captured` outlives the feed. `order`: which of its scalars are fed, in which order.
  RetraceFeed(RunnableStep& captured, std::vector<ir::ScalarId> order);
  ~RetraceFeed() override;

  void begin(int64_t step) override;
  ir::Expected<llvm::ArrayRef<ScalarValue>> join() override;
  /// What that thread takes in a step: the median of the last eight (the first four steps of a
  /// capture are not traced again); nothing before there were as many.
  std::optional<Nanoseconds> typicalTime() const;

 private:
  struct Answer {
    std::vector<ScalarValue> values;
    Nanoseconds took;
    std::optional<ir::PlanError> error;
  };
  Answer retrace();

  RunnableStep& captured_;
  std::vector<ir::ScalarId> order_;
  std::future<Answer> pending_;
  std::vector<ScalarValue> values_;
  std::array<Nanoseconds, 8> took_;  // of the last steps joined, by step modulo 8
  size_t joined_ = 0;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RETRACE_FEED_H_
