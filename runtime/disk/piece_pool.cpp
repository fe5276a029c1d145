// SPDX-License-Identifier: Apache-2.0
#include "runtime/disk/piece_pool.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

namespace stowage::runtime {

/// Lives in `run`; the pool's mutex guards it.
struct PiecePool::Transfer {
  int64_t pieces;
  Work work;
  int64_t next = 0;      // the first piece that is not begun
  int64_t underWay = 0;  // begun and not ended
  int64_t failed = 0;    // the piece of `error`
  std::optional<ir::PlanError> error;
  std::condition_variable isDone;
};

PiecePool::PiecePool(int threads) {
  threads_.reserve(static_cast<size_t>(threads));
  for (int thread = 0; thread < threads; ++thread) {
    threads_.emplace_back([this, thread] { serve(thread); });
  }
}

PiecePool::~PiecePool() {
  {
    const std::lock_guard lock(mutex_);
    assert(waiting_.empty() && "a pool ends while it works");
    isOver_ = true;
  }
  hasWork_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

ir::Error PiecePool::run(int64_t pieces, Work work) {
  if (pieces == 0) return ir::success();
  Transfer transfer{.pieces = pieces, .work = work};
  std::unique_lock lock(mutex_);
  waiting_.push_back(&transfer);
  if (pieces == 1) {
    hasWork_.notify_one();
  } else {
    hasWork_.notify_all();
  }
  transfer.isDone.wait(lock,
                       [&] { return transfer.next == transfer.pieces && transfer.underWay == 0; });
  if (transfer.error) return ir::makeError(std::move(*transfer.error));
  return ir::success();
}

void PiecePool::serve(int thread) {
  std::unique_lock lock(mutex_);
  while (true) {
    hasWork_.wait(lock, [&] { return isOver_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Transfer& transfer = *waiting_.front();
    const int64_t piece = transfer.next++;
    ++transfer.underWay;
    if (transfer.next == transfer.pieces) waiting_.pop_front();
    lock.unlock();
    ir::Error error = transfer.work(piece, thread);
    lock.lock();
    --transfer.underWay;
    if (error) {
      ir::PlanError payload = ir::takePayload(std::move(error));
      if (!transfer.error || piece < transfer.failed) {
        transfer.failed = piece;
        transfer.error = std::move(payload);
      }
      std::erase(waiting_, &transfer);
      transfer.next = transfer.pieces;
    }
    // With the mutex: `run` cannot return, and end the transfer, before this is over.
    if (transfer.next == transfer.pieces && transfer.underWay == 0) transfer.isDone.notify_one();
  }
}

}  // namespace stowage::runtime
