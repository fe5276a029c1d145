// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/host_ops.h"

#include <ATen/Parallel.h>
#include <llvm/ADT/STLExtras.h>
#include <omp.h>

#include <algorithm>
#include <utility>

namespace stowage::runtime {

namespace {

constexpr int kSparedShare = 4;  // one of so many processors

}  // namespace

ir::Expected<std::unique_ptr<HostOps>> HostOps::make(const ProgramSource& source, ArenaBases bases,
                                                     Bytes hostBytes) {
  const bool isAny = llvm::any_of(source.schedule.commands, [](const ir::Command& command) {
    return command.stream == ir::Stream::kHostCompute;
  });
  if (!isAny) return std::unique_ptr<HostOps>();
  auto launcher = Launcher::make(source, ir::Stream::kHostCompute,
                                 c10::Device(c10::DeviceType::CPU), bases, makeCpuRngKeeper());
  if (!launcher) return launcher.takeError();
  return std::unique_ptr<HostOps>(new HostOps(std::move(*launcher), source, bases, hostBytes));
}

HostOps::HostOps(std::unique_ptr<Launcher> launcher, const ProgramSource& source, ArenaBases bases,
                 Bytes hostBytes)
    : launcher_(std::move(launcher)), allocator_(bases.host, hostBytes, source.target.alignBytes) {}

// libtorch gives a thread its own number when it is first asked, by a parallel loop or here.
void HostOps::prepareThread() {
  (void)at::get_num_threads();
  const int processors = omp_get_num_procs();
  omp_set_num_threads(std::max(1, processors - processors / kSparedShare));
}

ir::Error HostOps::run(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) {
  return launcher_->launch(command, scalars, allocator_, allocations_);
}

}  // namespace stowage::runtime
