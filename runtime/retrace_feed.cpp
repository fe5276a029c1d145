// SPDX-License-Identifier: Apache-2.0
#include "runtime/retrace_feed.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace stowage::runtime {

RetraceFeed::RetraceFeed(RunnableStep& captured, std::vector<ir::ScalarId> order)
    : captured_(captured), order_(std::move(order)) {
  for (const ir::ScalarId id : order_) {
    const ir::StepScalar& scalar = captured.graph().scalars()[id.index()];
    values_.push_back({scalar.isInteger, scalar.value, scalar.integer});
  }
}

RetraceFeed::~RetraceFeed() {
  if (pending_.valid()) pending_.wait();
}

RetraceFeed::Answer RetraceFeed::retrace() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Answer answer;
  ir::Expected<std::vector<ScalarValue>> values = captured_.nextScalars();
  if (values) {
    for (const ir::ScalarId id : order_) answer.values.push_back((*values)[id.index()]);
  } else {
    answer.error = ir::takePayload(values.takeError());
  }
  answer.took = Nanoseconds(std::chrono::nanoseconds(Clock::now() - begin).count());
  return answer;
}

void RetraceFeed::begin(int64_t /*step*/) {
  if (pending_.valid()) pending_.wait();
  pending_ = std::async(std::launch::async, [this] { return retrace(); });
}

ir::Expected<llvm::ArrayRef<ScalarValue>> RetraceFeed::join() {
  if (pending_.valid()) {
    Answer answer = pending_.get();
    if (answer.error) return ir::makeError(std::move(*answer.error));
    values_ = std::move(answer.values);
    took_[joined_++ % took_.size()] = answer.took;
  }
  return llvm::ArrayRef<ScalarValue>(values_);
}

std::optional<Nanoseconds> RetraceFeed::typicalTime() const {
  if (joined_ < took_.size()) return std::nullopt;
  auto sorted = took_;
  const auto middle = sorted.begin() + sorted.size() / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace stowage::runtime
