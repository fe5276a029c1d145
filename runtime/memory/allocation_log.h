// SPDX-License-Identifier: Apache-2.0
//
// What one call of an op allocated, and what follows from it for a plan: which of the main thread's
// allocations became results, and how many bytes of temporaries the call needs at once. The order
// of other threads' allocations is not fixed, so they count with their sum.
#ifndef STOWAGE_RUNTIME_MEMORY_ALLOCATION_LOG_H_
#define STOWAGE_RUNTIME_MEMORY_ALLOCATION_LOG_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "runtime/memory/step_allocator.h"

namespace stowage::runtime {

class AllocationLog {
 public:
  /// Any thread.
  void addAllocation(const void* address, Bytes bytes, AllocatingThread thread);
  void addRelease(const void* address);

  /// Fills temporary, allocations and resultOrdinals. `results`: base addresses of the freshly made
  /// result storages, in order of results, still allocated. Errors: kUnsupported for a result that
  /// another thread allocated, or temporaries that outlive the call.
  ir::Error summarize(llvm::ArrayRef<const void*> results, int64_t unit, ir::OpCost& cost) const;

 private:
  struct Event {
    const void* address;
    Bytes bytes;
    AllocatingThread thread;
    bool isRelease;
  };
  std::vector<int32_t> findReleases() const;
  ir::Error findResults(llvm::ArrayRef<const void*> results, llvm::ArrayRef<int32_t> releases,
                        ir::OpCost& cost, std::vector<bool>& isResult) const;

  mutable std::mutex mutex_;
  std::vector<Event> events_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_MEMORY_ALLOCATION_LOG_H_
