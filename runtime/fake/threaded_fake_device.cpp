// SPDX-License-Identifier: Apache-2.0
#include "runtime/fake/threaded_fake_device.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "runtime/executor/queued_program.h"
#include "runtime/fake/fake_memory.h"

namespace stowage::runtime {

struct ThreadedFakeDevice::Shared {
  FakeMemory memory;
  uint64_t seed;
  Nanoseconds longestPause;
  QueuedStreams streams;

  Shared(llvm::ArrayRef<ir::Arena> arenas, uint64_t givenSeed, Nanoseconds pause)
      : memory(arenas), seed(givenSeed), longestPause(pause) {}

  llvm::MutableArrayRef<uint8_t> range(ir::Space space, int64_t offset, size_t bytes) {
    return memory.range(space, offset, Bytes(static_cast<int64_t>(bytes)));
  }
};

namespace {

class ThreadedFakeProgram : public QueuedProgram {
 public:
  ThreadedFakeProgram(const ProgramSource& source, ThreadedFakeDevice::Shared& shared)
      : QueuedProgram(source, shared.streams,
                      shared.memory.arenas[static_cast<size_t>(ir::Space::kHost)].data()),
        shared_(shared),
        state_(source, shared.memory),
        turns_(source.schedule.commands.size(), 0) {}

 private:
  ir::Error runNow(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) override {
    return work(command, scalars.vec());
  }
  ir::Error copyNow(ir::CommandId command) override { return work(command, {}); }

  ir::Error work(ir::CommandId command, std::vector<ScalarValue> scalars) {
    FakeWork work(state_, command, std::move(scalars));
    const FakeGenerator draw{shared_.seed, command.index() * 1000003 + turns_[command.index()]++};
    const uint64_t bits = drawFakeBits(draw);
    pause(bits & 0xffff);
    work.begin();
    pause((bits >> 16) & 0xffff);
    if (ir::Error error = work.check()) return error;
    return work.write();
  }

  void pause(uint64_t part) const {
    const int64_t nanoseconds =
        shared_.longestPause.value() * static_cast<int64_t>(part) / int64_t{0x10000};
    if (nanoseconds > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
  }

  ThreadedFakeDevice::Shared& shared_;
  FakeProgramState state_;
  std::vector<uint64_t> turns_;  // by command; each belongs to its stream's thread
};

}  // namespace

ThreadedFakeDevice::ThreadedFakeDevice(llvm::ArrayRef<ir::Arena> arenas, uint64_t seed,
                                       Nanoseconds longestPause)
    : shared_(std::make_unique<Shared>(arenas, seed, longestPause)) {}

ThreadedFakeDevice::~ThreadedFakeDevice() = default;

Bytes ThreadedFakeDevice::arenaBytes(ir::Space space) const {
  return Bytes(static_cast<int64_t>(shared_->memory.arenas[static_cast<size_t>(space)].size()));
}

ir::Expected<std::unique_ptr<Program>> ThreadedFakeDevice::load(const ProgramSource& source) {
  return std::make_unique<ThreadedFakeProgram>(source, *shared_);
}

ir::Error ThreadedFakeDevice::write(ir::Space space, int64_t offset,
                                    llvm::ArrayRef<uint8_t> bytes) {
  std::copy(bytes.begin(), bytes.end(), shared_->range(space, offset, bytes.size()).begin());
  return ir::success();
}

ir::Error ThreadedFakeDevice::read(ir::Space space, int64_t offset,
                                   llvm::MutableArrayRef<uint8_t> bytes) {
  const auto from = shared_->range(space, offset, bytes.size());
  std::copy(from.begin(), from.end(), bytes.begin());
  return ir::success();
}

ir::Error ThreadedFakeDevice::synchronize() { return shared_->streams.drain(); }

}  // namespace stowage::runtime
