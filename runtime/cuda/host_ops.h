// SPDX-License-Identifier: Apache-2.0
//
// Updates on the host as work of a CUDA stream: a host function runs the op on the host arena when
// the stream comes to it, so events order it against copies like any other work. The driver's
// thread that runs host functions is the first of a team of threads; the others are its OpenMP
// workers. A quarter of the processors stays for the launch thread, copies and the caller's code: a
// team that takes all of them is slower beside copies.
#ifndef STOWAGE_RUNTIME_CUDA_HOST_OPS_H_
#define STOWAGE_RUNTIME_CUDA_HOST_OPS_H_

#include <cuda_runtime_api.h>

#include <memory>

#include "ir/costs/step_times.h"
#include "runtime/executor/device.h"
#include "runtime/executor/failure_latch.h"
#include "runtime/memory/step_allocator.h"
#include "runtime/torch/launcher.h"
#include "runtime/torch/served_allocator.h"

namespace stowage::runtime {

class HostOps {
 public:
  /// Null if the schedule runs nothing on the host. `failure` gets what goes wrong on the stream
  /// and outlives the stream's work. Errors: as Launcher::make.
  static ir::Expected<std::unique_ptr<HostOps>> make(const ProgramSource& source, ArenaBases bases,
                                                     Bytes hostBytes, FailureLatch& failure);

  /// `times`, if not null, gets begin and end by the trace's clock; it outlives the stream's work,
  /// as this object does.
  cudaError_t enqueue(cudaStream_t stream, ir::CommandId command,
                      llvm::ArrayRef<ScalarValue> scalars, ir::CommandTimes* times);

 private:
  struct Launch;
  HostOps(std::unique_ptr<Launcher> launcher, const ProgramSource& source, ArenaBases bases,
          Bytes hostBytes, FailureLatch& failure);
  static void runNow(void* launch);

  std::unique_ptr<Launcher> launcher_;
  StepAllocator allocator_;
  AllocationSource allocations_;  // not registered: the little that ops allocate is the process's
  FailureLatch& failure_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_HOST_OPS_H_
