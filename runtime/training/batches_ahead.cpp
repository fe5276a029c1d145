// SPDX-License-Identifier: Apache-2.0
#include "runtime/training/batches_ahead.h"

#include <algorithm>
#include <utility>

namespace stowage::runtime {

namespace {

Bytes bytesOf(const Batch& batch) {
  Bytes bytes;
  for (const at::Tensor& tensor : batch) bytes += Bytes(static_cast<int64_t>(tensor.nbytes()));
  return bytes;
}

}  // namespace

ir::Expected<Batch> BatchesAhead::next(int64_t together) {
  const auto wanted = static_cast<size_t>(std::clamp<int64_t>(together, 1, last_ - next_));
  if (drawn_.size() < wanted) {
    if (ir::Error error = stop_()) return error;
    if (ir::Error error = draw()) return error;
    start_();
  }
  Batch batch = std::move(drawn_.front());
  drawn_.pop_front();
  held_ -= bytesOf(batch);
  ++next_;
  return batch;
}

ir::Error BatchesAhead::draw() {
  while (next_ + static_cast<int64_t>(drawn_.size()) < last_) {
    if (!drawn_.empty() && held_ >= room_) break;
    ir::Expected<Batch> batch = source_(next_ + static_cast<int64_t>(drawn_.size()));
    if (!batch && drawn_.empty()) return batch.takeError();
    if (!batch) {
      llvm::consumeError(batch.takeError());  // asked for again when its step is due
      break;
    }
    held_ += bytesOf(*batch);
    drawn_.push_back(std::move(*batch));
  }
  return ir::success();
}

}  // namespace stowage::runtime
