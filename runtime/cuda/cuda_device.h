// SPDX-License-Identifier: Apache-2.0
//
// A GPU as a device: one arena of device memory of exactly the budget, one of pinned host memory,
// libtorch's CUDA ops on one compute stream, copies on a stream of their own per direction. Waits
// are CUDA events; nothing blocks the launch thread but what the interface says. Ops are launched
// by the launch thread itself, so operands are bound when an op is enqueued.
// Library workspaces (cuBLAS, cuBLASLt) are made when a plan is loaded, in the plan's reserved
// regions. What lies outside of the arena: context, kernels' code, library handles.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_DEVICE_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_DEVICE_H_

#include <memory>

#include "runtime/executor/device.h"
#include "runtime/gpu/gpu_library.h"

namespace stowage::runtime {

struct CudaState;

class CudaDevice : public Device {
 public:
  /// On the current CUDA device. Errors: kOutOfDeviceMemory, kCuda.
  static ir::Expected<std::unique_ptr<CudaDevice>> open(const GpuDeviceOptions& options);
  ~CudaDevice() override;

  Bytes arenaBytes(ir::Space space) const override;
  ir::Expected<std::unique_ptr<Program>> load(const ProgramSource& source) override;
  ir::Error write(ir::Space space, int64_t offset, llvm::ArrayRef<uint8_t> bytes) override;
  ir::Error read(ir::Space space, int64_t offset, llvm::MutableArrayRef<uint8_t> bytes) override;
  ir::Error fill(ir::Space space, llvm::ArrayRef<uint8_t> pattern) override;
  ir::Error move(ir::Space from, int64_t fromOffset, ir::Space to, int64_t toOffset,
                 Bytes bytes) override;
  ir::Error growHost(Bytes bytes) override;
  /// What is kept waits in pinned memory, which stays for the next release until the device goes:
  /// pinning takes longer than copying. What lies outside of the arena stays, too.
  ir::Expected<ArenaCopy> release(llvm::ArrayRef<ir::ByteRange> kept) override;
  ir::Expected<ArenaCopy> restore(llvm::ArrayRef<uint8_t> pattern) override;
  ir::Error synchronize() override;
  std::optional<Bytes> servedPeak() const override;
  int64_t allocationsOutside() const override;
  std::optional<Bytes> memoryOutside() const override;
  std::string transport() const override;

 private:
  explicit CudaDevice(std::unique_ptr<CudaState> state);
  /// Takes a copy of these ranges; `took`: copying alone. Errors: kOutOfHostMemory, kCuda.
  ir::Error keep(llvm::ArrayRef<ir::ByteRange> kept, Nanoseconds& took);
  ir::Error copyKept(bool out);
  std::unique_ptr<CudaState> state_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_CUDA_DEVICE_H_
