// SPDX-License-Identifier: Apache-2.0
//
// What devices whose streams are threads have in common: the threads, the first failure, and a
// program that turns the executor's calls into closures. The device says what a run and a copy do.
// After a failure runs, copies and deliveries are skipped, while events go on being finished, so
// that nobody waits for ever.
#ifndef STOWAGE_RUNTIME_QUEUED_PROGRAM_H_
#define STOWAGE_RUNTIME_QUEUED_PROGRAM_H_

#include <array>
#include <functional>
#include <memory>

#include "runtime/device.h"
#include "runtime/failure_latch.h"
#include "runtime/stream_queue.h"

namespace stowage::runtime {

/// A device's threads, each made when first used. Used by the issuing thread alone.
class QueuedStreams {
 public:
  /// `prepare` runs first on each new thread.
  explicit QueuedStreams(std::function<void(ir::Stream)> prepare = {})
      : prepare_(std::move(prepare)) {}

  StreamQueue& queue(ir::Stream stream);
  /// Waits until all threads are idle. Errors: the first failure.
  ir::Error drain();
  FailureLatch& failure() { return failure_; }

 private:
  std::function<void(ir::Stream)> prepare_;
  FailureLatch failure_;
  std::array<std::unique_ptr<StreamQueue>, ir::kStreamCount> queues_;  // last: they use the others
};

class QueuedProgram : public Program {
 public:
  /// The streams must be drained before the program goes.
  QueuedProgram(const ProgramSource& source, QueuedStreams& streams, uint8_t* hostArena)
      : source_(source),
        streams_(streams),
        hostArena_(hostArena),
        events_(source.eventCount),
        times_(source.schedule.commands.size()) {}

  ir::Error beginStep(int64_t step) override;
  ir::Error wait(ir::Stream stream, EventRef event) override;
  ir::Error record(ir::Stream stream, EventRef event) override;
  ir::Error run(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) override;
  ir::Error copy(ir::CommandId command) override;
  ir::Error deliver(const Delivery& delivery) override;
  ir::Error waitOnHost(EventRef event) override;
  void takeTimes() override { takesTimes_ = true; }
  const RunTimes* runTimes() override { return &times_; }

 protected:
  /// On the command's thread; back when it is done.
  virtual ir::Error runNow(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) = 0;
  virtual ir::Error copyNow(ir::CommandId command) = 0;
  const ProgramSource& source() const { return source_; }

 private:
  void pushWork(ir::Stream stream, std::function<ir::Error()> work);

  ProgramSource source_;
  QueuedStreams& streams_;
  uint8_t* hostArena_;
  EventCounters events_;
  bool takesTimes_ = false;  // of the issuing thread
  RunTimes times_;           // of the streams' threads while work is under way
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_QUEUED_PROGRAM_H_
