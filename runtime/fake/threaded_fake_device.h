// SPDX-License-Identifier: Apache-2.0
//
// The fake device with real threads instead of virtual time: the same kernels and the same checks,
// streams as threads, short random pauses. For the thread sanitizer, and for whatever only shows
// when things really happen at once. Bytes are not poisoned when a live range ends.
#ifndef STOWAGE_RUNTIME_FAKE_THREADED_FAKE_DEVICE_H_
#define STOWAGE_RUNTIME_FAKE_THREADED_FAKE_DEVICE_H_

#include <memory>

#include "runtime/executor/device.h"

namespace stowage::runtime {

class ThreadedFakeDevice : public Device {
 public:
  /// Commands pause for up to `longestPause`, drawn from the seed.
  ThreadedFakeDevice(llvm::ArrayRef<ir::Arena> arenas, uint64_t seed, Nanoseconds longestPause);
  ~ThreadedFakeDevice() override;

  Bytes arenaBytes(ir::Space space) const override;
  ir::Expected<std::unique_ptr<Program>> load(const ProgramSource& source) override;
  ir::Error write(ir::Space space, int64_t offset, llvm::ArrayRef<uint8_t> bytes) override;
  ir::Error read(ir::Space space, int64_t offset, llvm::MutableArrayRef<uint8_t> bytes) override;
  ir::Error synchronize() override;

  struct Shared;

 private:
  std::unique_ptr<Shared> shared_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_FAKE_THREADED_FAKE_DEVICE_H_
