// SPDX-License-Identifier: Apache-2.0
//
// Serves every allocation that an op makes while a step runs, from the places that the plan states:
//   - the main thread's allocations are counted; those whose ordinals the cost table names become
//     results and get the planned addresses of their storages;
//   - everything else is a temporary and gets a place in the launch's temp region: the main
//     thread's first-fit from the bottom up, other threads' first-fit from the top down. Measured
//     need = peak of the former + sum of the latter, so any interleaving of threads fits.
// What does not fit is refused and remembered as an error that names the op; there is no place to
// overflow to. Knows nothing of libtorch: the allocator that libtorch sees forwards to it.
//
// Threads: beginLaunch and endLaunch from the one that runs ops; allocate, release, owns from any.
#ifndef STOWAGE_RUNTIME_MEMORY_STEP_ALLOCATOR_H_
#define STOWAGE_RUNTIME_MEMORY_STEP_ALLOCATOR_H_

#include <llvm/ADT/SmallVector.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "ir/base/error.h"
#include "ir/base/interval.h"
#include "ir/base/units.h"
#include "runtime/memory/first_fit.h"

namespace stowage::runtime {

/// Where a launch's allocations go. Addresses are offsets in the arena.
struct LaunchPlacement {
  struct Result {
    int32_t ordinal = 0;  // of the main thread's allocations
    int64_t offset = 0;
    Bytes bytes;  // exactly; another size is refused
  };
  llvm::SmallVector<Result, 2> results;
  int64_t tempOffset = 0;
  Bytes tempBytes;
  int64_t operandsEnd = 0;  // of the highest one on the device, in whole units
};

enum class AllocatingThread : uint8_t { kMain, kOther };

class StepAllocator {
 public:
  /// `base`: first byte of the arena; placements are multiples of `unit` apart.
  StepAllocator(uint8_t* base, Bytes arena, int64_t unit);

  /// `placement` must stay valid until endLaunch; `op` names the launch in messages.
  void beginLaunch(const LaunchPlacement& placement, std::string op);
  /// Errors: kOutOfDeviceMemory for what was refused; kInternal for a result that was not asked for
  /// or temporaries that were not given back.
  ir::Error endLaunch();

  /// The address of `bytes` bytes; null: refused. Only between beginLaunch and endLaunch.
  uint8_t* allocate(Bytes bytes, AllocatingThread thread);
  /// Gives back what allocate returned. Results stay where they are.
  void release(uint8_t* address);
  /// Does the address lie in the arena?
  bool owns(const void* address) const;
  /// Bytes from the arena's begin to the end of the highest operand, result or temporary of any
  /// launch so far, in whole units: as libtorch's own allocators count.
  Bytes servedPeak();

 private:
  void note(int64_t end) { served_ = std::max(served_, end); }
  uint8_t* serveResult(const LaunchPlacement::Result& result, Bytes bytes);
  uint8_t* serveTemporary(Bytes bytes, AllocatingThread thread);
  uint8_t* refuse(ir::ErrorCode code, std::string what);

  uint8_t* base_;
  Bytes arena_;
  int64_t unit_;

  std::mutex mutex_;
  const LaunchPlacement* launch_ = nullptr;
  std::string op_;
  int32_t nextOrdinal_ = 0;
  size_t resultsServed_ = 0;
  int64_t served_ = 0;
  FirstFit low_;   // the main thread's, counted from the region's begin
  FirstFit high_;  // other threads', counted from its end
  std::optional<ir::PlanError> refused_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_MEMORY_STEP_ALLOCATOR_H_
