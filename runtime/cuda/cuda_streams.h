// SPDX-License-Identifier: Apache-2.0
//
// The streams of a device. They are made by CUDA itself: libtorch's pool makes 32 at once for each
// priority, and streams share the GPU's queues when there are more than a few, so that one waits
// for what another waits for.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_STREAMS_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_STREAMS_H_

#include <c10/cuda/CUDAStream.h>

#include <optional>
#include <utility>

#include "ir/base/error.h"
#include "runtime/cuda/cuda_status.h"

namespace stowage::runtime {

/// Those that launch ops, for one user at a time: libtorch keeps handles and workspaces by stream,
/// so two must not share one, and one is never destroyed but used again.
class OpStreams {
 public:
  struct Pair {
    c10::cuda::CUDAStream compute;
    c10::cuda::CUDAStream link;  // of high priority, since other ranks wait for collectives
  };

  /// Of the current device. Errors: kCuda.
  static ir::Expected<OpStreams> take();
  OpStreams(OpStreams&& other) noexcept : pair_(std::exchange(other.pair_, std::nullopt)) {}
  OpStreams& operator=(OpStreams&&) = delete;
  /// Gives them back. Nothing is under way there, and no workspace is kept for them.
  ~OpStreams();

  c10::cuda::CUDAStream compute() const { return pair_->compute; }
  c10::cuda::CUDAStream link() const { return pair_->link; }

 private:
  explicit OpStreams(const Pair& pair) : pair_(pair) {}
  std::optional<Pair> pair_;
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
