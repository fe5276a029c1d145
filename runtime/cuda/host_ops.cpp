// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/host_ops.h"

#include <ATen/Parallel.h>
#include <llvm/ADT/STLExtras.h>
#include <omp.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/cuda/cuda_activity.h"

namespace stowage::runtime {

namespace {

constexpr int kSparedShare = 4;  // one of so many processors

/// libtorch gives a thread its own number when it is first asked, by a parallel loop or here.
void prepareTeam() {
  static thread_local bool isPrepared = false;
  if (std::exchange(isPrepared, true)) return;
  (void)at::get_num_threads();
  const int processors = omp_get_num_procs();
  omp_set_num_threads(std::max(1, processors - processors / kSparedShare));
}

}  // namespace

struct HostOps::Launch {
  HostOps* ops;
  ir::CommandId command;
  std::vector<ScalarValue> scalars;
  ir::CommandTimes* times;
};

ir::Expected<std::unique_ptr<HostOps>> HostOps::make(const ProgramSource& source, ArenaBases bases,
                                                     Bytes hostBytes, FailureLatch& failure) {
  const bool isAny = llvm::any_of(source.schedule.commands, [](const ir::Command& command) {
    return command.stream == ir::Stream::kHostCompute;
  });
  if (!isAny) return std::unique_ptr<HostOps>();
  auto launcher = Launcher::make(source, ir::Stream::kHostCompute,
                                 c10::Device(c10::DeviceType::CPU), bases, makeCpuRngKeeper());
  if (!launcher) return launcher.takeError();
  return std::unique_ptr<HostOps>(
      new HostOps(std::move(*launcher), source, bases, hostBytes, failure));
}

HostOps::HostOps(std::unique_ptr<Launcher> launcher, const ProgramSource& source, ArenaBases bases,
                 Bytes hostBytes, FailureLatch& failure)
    : launcher_(std::move(launcher)),
      allocator_(bases.host, hostBytes, source.target.alignBytes),
      failure_(failure) {}

cudaError_t HostOps::enqueue(cudaStream_t stream, ir::CommandId command,
                             llvm::ArrayRef<ScalarValue> scalars, ir::CommandTimes* times) {
  auto launch = std::make_unique<Launch>(Launch{this, command, scalars.vec(), times});
  const cudaError_t status = cudaLaunchHostFunc(stream, runNow, launch.get());
  if (status == cudaSuccess) (void)launch.release();
  return status;
}

void HostOps::runNow(void* data) {
  const std::unique_ptr<Launch> launch(static_cast<Launch*>(data));
  HostOps& ops = *launch->ops;
  if (ops.failure_.isSet()) return;
  prepareTeam();
  if (launch->times != nullptr) launch->times->begin = ActivityTrace::now();
  ops.failure_.set(
      ops.launcher_->launch(launch->command, launch->scalars, ops.allocator_, ops.allocations_));
  if (launch->times != nullptr) launch->times->end = ActivityTrace::now();
}

}  // namespace stowage::runtime
