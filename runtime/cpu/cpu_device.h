// SPDX-License-Identifier: Apache-2.0
//
// The CPU as a device: libtorch's CPU ops inside an arena of exactly the budget, host memory as a
// second arena, copies between them by threads that can be slowed down to a link's speed, a file as
// the third. The whole product runs on it anywhere.
// Streams are threads (runtime/executor/stream_queue.h), each made when first used. One thread runs
// all compute commands, because libtorch's OpenMP workers belong to the thread that starts them: it
// has a fixed number of intra-op threads, and only it and its workers are served from the plan.
#ifndef STOWAGE_RUNTIME_CPU_CPU_DEVICE_H_
#define STOWAGE_RUNTIME_CPU_CPU_DEVICE_H_

#include <memory>
#include <optional>
#include <string>

#include "ir/schedule/target.h"
#include "runtime/disk/disk_place.h"
#include "runtime/executor/device.h"
#include "runtime/ranks/communicator.h"

namespace stowage::runtime {

struct CpuDeviceOptions {
  Bytes deviceBytes;  // the budget
  Bytes hostBytes;
  Bytes mostHostBytes;  // that growHost may be asked for
  DiskPlace disk;       // 0 bytes: none
  int intraOpThreads = 1;
  int64_t alignBytes = 512;
  /// Rates that copies are slowed down to; without: as fast as memory.
  std::optional<ir::LinkModel> links;
  /// Whom the collectives of steps talk to; null: nobody. Nobody else uses it while steps run, and
  /// it outlives the device.
  Communicator* ranks = nullptr;
};

class CpuDevice : public Device {
 public:
  /// Errors: kOutOfDeviceMemory, kEnvironment.
  static ir::Expected<std::unique_ptr<CpuDevice>> open(const CpuDeviceOptions& options);
  ~CpuDevice() override;

  Bytes arenaBytes(ir::Space space) const override;
  ir::Expected<std::unique_ptr<Program>> load(const ProgramSource& source) override;
  ir::Error write(ir::Space space, int64_t offset, llvm::ArrayRef<uint8_t> bytes) override;
  ir::Error read(ir::Space space, int64_t offset, llvm::MutableArrayRef<uint8_t> bytes) override;
  ir::Error growHost(Bytes bytes) override;
  /// What is kept waits in pages of its own, which go at `restore`.
  ir::Expected<ArenaCopy> release(llvm::ArrayRef<ir::ByteRange> kept) override;
  ir::Expected<ArenaCopy> restore(llvm::ArrayRef<uint8_t> pattern) override;
  ir::Error synchronize() override;

  /// All of an arena's bytes, for tests that look at what was touched. No work may be under way.
  llvm::MutableArrayRef<uint8_t> arena(ir::Space space);

  std::optional<Bytes> servedPeak() const override;
  int64_t allocationsOutside() const override;
  std::string transport() const override;

  struct Shared;

 private:
  explicit CpuDevice(std::unique_ptr<Shared> shared);
  std::unique_ptr<Shared> shared_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CPU_CPU_DEVICE_H_
