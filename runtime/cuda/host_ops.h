// SPDX-License-Identifier: Apache-2.0
//
// Updates on the host: ops of libtorch's CPU backend on the pinned host arena, by the thread that
// is the stream of such work (host_streams.h). That thread is the first of a team; the others are
// its OpenMP workers. A quarter of the processors stays for the launch thread, copies and the
// caller's code: a team that takes all of them is slower beside copies.
#ifndef STOWAGE_RUNTIME_CUDA_HOST_OPS_H_
#define STOWAGE_RUNTIME_CUDA_HOST_OPS_H_

#include <memory>

#include "runtime/executor/device.h"
#include "runtime/memory/step_allocator.h"
#include "runtime/torch/launcher.h"
#include "runtime/torch/served_allocator.h"

namespace stowage::runtime {

class HostOps {
 public:
  /// Null if the schedule runs nothing on the host. Errors: as Launcher::make.
  static ir::Expected<std::unique_ptr<HostOps>> make(const ProgramSource& source, ArenaBases bases,
                                                     Bytes hostBytes);

  /// Makes the calling thread the first of the team.
  static void prepareThread();
  /// On that thread; back when it is done.
  ir::Error run(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars);

 private:
  HostOps(std::unique_ptr<Launcher> launcher, const ProgramSource& source, ArenaBases bases,
          Bytes hostBytes);

  std::unique_ptr<Launcher> launcher_;
  StepAllocator allocator_;
  AllocationSource allocations_;  // not registered: the little that ops allocate is the process's
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_HOST_OPS_H_
