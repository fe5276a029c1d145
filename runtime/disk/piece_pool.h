// SPDX-License-Identifier: Apache-2.0
//
// Threads that work on the pieces of transfers. A transfer's pieces are begun in their order, and
// transfers in the order in which they came; a thread that finds no piece left in one takes the
// first of the next.
#ifndef STOWAGE_RUNTIME_DISK_PIECE_POOL_H_
#define STOWAGE_RUNTIME_DISK_PIECE_POOL_H_

#include <llvm/ADT/STLFunctionalExtras.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "ir/base/error.h"

namespace stowage::runtime {

class PiecePool {
 public:
  /// `thread` counts from 0: two calls with the same number never overlap.
  using Work = llvm::function_ref<ir::Error(int64_t piece, int thread)>;

  explicit PiecePool(int threads);
  PiecePool(const PiecePool&) = delete;
  PiecePool& operator=(const PiecePool&) = delete;
  /// No `run` may be under way.
  ~PiecePool();

  /// Calls `work` once for each of [0, pieces); returns when no call is under way. After an error
  /// no further piece is begun; of several errors it returns that of the first piece.
  /// May be called by several threads at once.
  ir::Error run(int64_t pieces, Work work);

 private:
  struct Transfer;
  void serve(int thread);

  std::mutex mutex_;
  std::condition_variable hasWork_;
  std::deque<Transfer*> waiting_;  // those with pieces that are not begun
  bool isOver_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_DISK_PIECE_POOL_H_
