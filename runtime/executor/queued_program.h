// SPDX-License-Identifier: Apache-2.0
//
// The common part of devices whose streams are threads: the threads, the first failure, and a
// program that turns the executor's calls into closures. The device implements launch and copy.
// After a failure launches, copies and deliveries are skipped, but events still finish, so no
// thread waits for ever.
#ifndef STOWAGE_RUNTIME_EXECUTOR_QUEUED_PROGRAM_H_
#define STOWAGE_RUNTIME_EXECUTOR_QUEUED_PROGRAM_H_

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/executor/device.h"
#include "runtime/executor/failure_latch.h"
#include "runtime/executor/stream_queue.h"

namespace stowage::runtime {

/// A device's threads, each made when first used. Used by the launch thread alone.
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
      : source_(source), streams_(streams), hostArena_(hostArena), events_(source.eventCount) {}

  ir::Error beginStep(int64_t step) override;
  ir::Error wait(ir::Stream stream, EventRef event) override;
  ir::Error record(ir::Stream stream, EventRef event) override;
  ir::Error run(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) override;
  ir::Error copy(ir::CommandId command) override;
  ir::Error deliver(const Delivery& delivery) override;
  ir::Error accept(const Arrival& arrival) override;
  ir::Error waitOnHost(EventRef event) override;
  ir::Error takeTimes(int64_t steps) override;
  ir::Expected<std::vector<ir::StepTimes>> takenTimes() override;

 protected:
  /// On the command's thread; back when it is done.
  virtual ir::Error runNow(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) = 0;
  virtual ir::Error copyNow(ir::CommandId command) = 0;
  const ProgramSource& source() const { return source_; }

 private:
  void pushWork(ir::Stream stream, std::function<ir::Error()> work);
  void pushCommand(ir::CommandId command, std::function<ir::Error()> work);

  ProgramSource source_;
  QueuedStreams& streams_;
  uint8_t* hostArena_;
  EventCounters events_;
  // Each step's times are written by the streams' threads while its work is under way, a command's
  // by one of them; the list is the launch thread's.
  std::vector<std::unique_ptr<ir::StepTimes>> times_;
  ir::StepTimes* timedStep_ = nullptr;  // the step that is enqueued, if it is timed
  int64_t stepsToTime_ = 0;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_EXECUTOR_QUEUED_PROGRAM_H_
