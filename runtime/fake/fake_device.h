// SPDX-License-Identifier: Apache-2.0
//
// A device without hardware and without threads: its streams live in virtual time. It executes a
// schedule the way its waits allow and nothing else does, with delays that a seed decides, and
// finds out whether the bytes come out right. Its clock follows the same rules as the planner's
// timeline (planner/evaluate/timeline.h): streams are first in, first out; a command starts when
// its stream's predecessor and all its waits are finished; a launch lasts what its node costs, a
// copy latency + bytes / bandwidth; the host spends the launch overhead of each command outside a
// CUDA graph. Discrete events: what is enqueued is kept per stream; when the host waits, begins and
// ends of commands happen in order of virtual time, ends before begins at equal times.
// Poison: what a command will write while it runs; bytes of a live range that ended.
#ifndef STOWAGE_RUNTIME_FAKE_FAKE_DEVICE_H_
#define STOWAGE_RUNTIME_FAKE_FAKE_DEVICE_H_

#include <map>
#include <memory>
#include <vector>

#include "runtime/executor/device.h"
#include "runtime/fake/fake_kernels.h"

namespace stowage::runtime {

struct FakeDelays {
  uint64_t seed = 0;
  Nanoseconds most;                         // random extra time before a command; 0: none
  std::map<int32_t, Nanoseconds> commands;  // by command: extra time in every step
};

/// When a step's first command began and its last one ended, in virtual time.
struct StepSpan {
  Nanoseconds begin;
  Nanoseconds end;
};

/// What a launch wrote, whether or not anything reads it later.
struct FakeLaunch {
  ir::CommandId command;
  int64_t step = 0;
  std::vector<FakeResult> results;
};

class FakeDevice : public Device {
 public:
  explicit FakeDevice(llvm::ArrayRef<ir::Arena> arenas, FakeDelays delays = {});
  ~FakeDevice() override;

  Bytes arenaBytes(ir::Space space) const override;
  ir::Expected<std::unique_ptr<Program>> load(const ProgramSource& source) override;
  ir::Error write(ir::Space space, int64_t offset, llvm::ArrayRef<uint8_t> bytes) override;
  ir::Error read(ir::Space space, int64_t offset, llvm::MutableArrayRef<uint8_t> bytes) override;
  ir::Error synchronize() override;

  /// By step, over all programs in enqueue order; complete after synchronize.
  const std::vector<StepSpan>& stepSpans() const;

  /// In order of virtual time, over all programs; complete after synchronize.
  const std::vector<FakeLaunch>& launches() const;

  struct Shared;

 private:
  std::unique_ptr<Shared> shared_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_FAKE_FAKE_DEVICE_H_
