// SPDX-License-Identifier: Apache-2.0
//
// Tells a profiler that listens (Nsight Systems) what is being enqueued: a range for each step and,
// inside it, one for each command, in the NVTX domain "stowage". A command's range is named by its
// node, or by what is copied and where to. Costs nothing when nobody listens.
// Inside a CUDA graph ranges are given while it is recorded, not when it is launched.
#ifndef STOWAGE_RUNTIME_CUDA_NVTX_RANGES_H_
#define STOWAGE_RUNTIME_CUDA_NVTX_RANGES_H_

#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/executor/device.h"

namespace stowage::runtime {

class NvtxRanges {
 public:
  /// Called on the launch thread, as all other methods.
  explicit NvtxRanges(const ProgramSource& source);
  ~NvtxRanges();
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;

  /// Ends the range of the step before.
  void beginStep(int64_t step);

  /// A command's range, for as long as it lives.
  class Scope {
   public:
    Scope(const NvtxRanges& ranges, ir::CommandId command);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    nvtxDomainHandle_t domain_;
  };

 private:
  nvtxDomainHandle_t domain_;              // null: nobody listens
  std::vector<nvtxStringHandle_t> names_;  // by command
  /// Not nested in a thread's other ranges: programs of several plans take turns.
  std::optional<nvtxRangeId_t> step_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_NVTX_RANGES_H_
