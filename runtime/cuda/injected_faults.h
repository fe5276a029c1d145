// SPDX-License-Identifier: Apache-2.0
//
// What a test build of the library does wrong on purpose (target stowage_cuda_faults); the library
// that is shipped does nothing of it. Asked for by environment variables:
//   STOWAGE_DELAY_US=n    a stream does nothing for up to n microseconds before a command, before
//                         half of the commands, other ones in each step
//   STOWAGE_DELAY_SEED=n  which ones
//   STOWAGE_DROP_WAIT=n   the n-th wait of every step, from 0, is left out
//   STOWAGE_FAIL_COPY=n   the n-th copy that is enqueued, from 0, fails; copies that a graph
//                         launches are not enqueued again
//   STOWAGE_FAIL_PIN=1    no host memory can be pinned
//   STOWAGE_ALLOCATE=n    before the n-th launch, from 0, libtorch's own allocator
//                         gives away device memory
// A schedule that is right gives the same bits under all delays; one that lacks a wait does not
// under some.
#ifndef STOWAGE_RUNTIME_CUDA_INJECTED_FAULTS_H_
#define STOWAGE_RUNTIME_CUDA_INJECTED_FAULTS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace stowage::runtime {

#ifdef STOWAGE_INJECT_FAULTS

class InjectedFaults {
 public:
  InjectedFaults();
  void beginStep() { nextWait_ = 0; }
  void delay(cudaStream_t stream);
  bool dropsWait() { return nextWait_++ == droppedWait_; }
  bool failsCopy() { return nextCopy_++ == failedCopy_; }
  void allocate();
  static bool failsPinning();

 private:
  uint64_t draw();

  uint64_t state_;
  uint64_t mostMicroseconds_;
  int64_t droppedWait_;
  int64_t nextWait_ = 0;
  int64_t failedCopy_;
  int64_t nextCopy_ = 0;
  int64_t allocatingLaunch_;
  int64_t nextLaunch_ = 0;
};

#else

class InjectedFaults {
 public:
  void beginStep() {}
  void delay(cudaStream_t /*stream*/) {}
  bool dropsWait() { return false; }
  bool failsCopy() { return false; }
  void allocate() {}
  static bool failsPinning() { return false; }
};

#endif

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_INJECTED_FAULTS_H_
