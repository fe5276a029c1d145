// SPDX-License-Identifier: Apache-2.0
#include "runtime/retrace_feed.h"

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
  Answer answer;
  ir::Expected<std::vector<ScalarValue>> values = captured_.nextScalars();
  if (values) {
    for (const ir::ScalarId id : order_) answer.values.push_back((*values)[id.index()]);
  } else {
    answer.error = ir::takePayload(values.takeError());
  }
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
  }
  return llvm::ArrayRef<ScalarValue>(values_);
}

}  // namespace stowage::runtime
