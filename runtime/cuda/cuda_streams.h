// SPDX-License-Identifier: Apache-2.0
//
// The streams of a device. They are made by CUDA itself: libtorch's pool makes 32 at once for each
// priority, and streams share the GPU's queues when there are more than a few, so that one waits
// for what another waits for.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_STREAMS_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_STREAMS_H_

#include <c10/cuda/CUDAStream.h>

#include <utility>

#include "ir/base/error.h"
#include "runtime/cuda/cuda_status.h"

namespace stowage::runtime {

/// Those that launch ops.
struct OpStreams {
  c10::cuda::CUDAStream compute;
  c10::cuda::CUDAStream link;  // of collectives; of high priority, since other ranks wait for them

  /// Of the current device, the same whenever it is asked for: libtorch keeps handles and
  /// workspaces by stream, so a stream is never given back. Errors: kCuda.
  static ir::Expected<OpStreams> find();
};

/// A stream for copies, that does not wait for the default stream.
class CopyStream {
 public:
  static ir::Expected<CopyStream> make() {
    cudaStream_t stream = nullptr;
    if (ir::Error error = checkCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                                    "making a stream for copies")) {
      return error;
    }
    return CopyStream(stream);
  }
  CopyStream(CopyStream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  CopyStream& operator=(CopyStream&&) = delete;
  ~CopyStream() {
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  }
  cudaStream_t get() const { return stream_; }

 private:
  explicit CopyStream(cudaStream_t stream) : stream_(stream) {}
  cudaStream_t stream_;
};

struct CopyStreams {
  CopyStream out;
  CopyStream in;

  static ir::Expected<CopyStreams> make() {
    auto out = CopyStream::make();
    if (!out) return out.takeError();
    auto in = CopyStream::make();
    if (!in) return in.takeError();
    return CopyStreams{std::move(*out), std::move(*in)};
  }
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_CUDA_STREAMS_H_
