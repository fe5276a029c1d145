// SPDX-License-Identifier: Apache-2.0
//
// Copies on memory of their own, beside measured ops. They imitate the copies that run beside ops
// in a step.
#ifndef STOWAGE_RUNTIME_CUDA_BACKGROUND_COPIES_H_
#define STOWAGE_RUNTIME_CUDA_BACKGROUND_COPIES_H_

#include <utility>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/cuda_status.h"
#include "runtime/cuda/cuda_streams.h"

namespace stowage::runtime {

class BackgroundCopies {
 public:
  /// Takes twice `bytes` of device memory and of pinned host memory. Errors: kOutOfDeviceMemory,
  /// kCuda.
  static ir::Expected<BackgroundCopies> make(Bytes bytes) {
    auto device = DeviceArena::allocate(Bytes(2 * bytes.value()));
    if (!device) return device.takeError();
    auto host = PinnedArena::allocate(Bytes(2 * bytes.value()), {});
    if (!host) return host.takeError();
    auto streams = CopyStreams::make();
    if (!streams) return streams.takeError();
    return BackgroundCopies(std::move(*device), std::move(*host), std::move(*streams), bytes);
  }

  /// Enqueues `bytes` each way.
  ir::Error start() {
    const auto size = static_cast<size_t>(bytes_.value());
    if (ir::Error error = checkCuda(cudaMemcpyAsync(host_.base(), device_.base(), size,
                                                    cudaMemcpyDeviceToHost, streams_.out.get()),
                                    "copying beside an op")) {
      return error;
    }
    return checkCuda(cudaMemcpyAsync(device_.base() + size, host_.base() + size, size,
                                     cudaMemcpyHostToDevice, streams_.in.get()),
                     "copying beside an op");
  }

 private:
  BackgroundCopies(DeviceArena device, PinnedArena host, CopyStreams streams, Bytes bytes)
      : device_(std::move(device)),
        host_(std::move(host)),
        streams_(std::move(streams)),
        bytes_(bytes) {}

  DeviceArena device_;
  PinnedArena host_;
  CopyStreams streams_;
  Bytes bytes_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_BACKGROUND_COPIES_H_
