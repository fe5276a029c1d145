// SPDX-License-Identifier: Apache-2.0
#include "runtime/retrace_feed.h"

#include <utility>

namespace stowage::runtime {

RetraceFeed::RetraceFeed(CapturedStep& captured) : captured_(captured) {
  for (const ir::StepScalar& scalar : captured.graph().scalars()) {
    values_.push_back({scalar.isInteger, scalar.value, scalar.integer});
  }
}

RetraceFeed::~RetraceFeed() {
  if (pending_.valid()) pending_.wait();
}

RetraceFeed::Answer RetraceFeed::retrace(CapturedStep& captured) {
  Answer answer;
  ir::Expected<std::vector<ScalarValue>> values = captured.nextScalars();
  if (values) {
    answer.values = std::move(*values);
  } else {
    answer.error = ir::takePayload(values.takeError());
  }
  return answer;
}

void RetraceFeed::begin(int64_t /*step*/) {
  if (pending_.valid()) pending_.wait();
  pending_ = std::async(std::launch::async, [this] { return retrace(captured_); });
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
