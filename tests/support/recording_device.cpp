// SPDX-License-Identifier: Apache-2.0
#include "tests/support/recording_device.h"

#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace stowage::tests {

namespace {

using runtime::EventRef;
using runtime::SegmentMode;

class RecordingProgram : public runtime::Program {
 public:
  /// `inner` has room for twice `events` events and two for each stream.
  RecordingProgram(std::unique_ptr<runtime::Program> inner, const ir::Schedule& schedule,
                   int32_t events, int64_t& launches, int64_t& records)
      : inner_(std::move(inner)), events_(events), launches_(launches), records_(records) {
    for (const ir::Command& command : schedule.commands) streams_.insert(command.stream);
  }

  ir::Error beginStep(int64_t step) override {
    step_ = step;
    return inner_->beginStep(step);
  }
  ir::Error wait(ir::Stream stream, EventRef event) override {
    if (isRecording_) {
      // Before the record all streams meet: the step before is over.
      if (event.step == step_) put([=, this] { return inner_->wait(stream, inRecord(event)); });
      return ir::success();
    }
    return isRecorded(event) ? inner_->wait(stream, event) : ir::success();
  }
  ir::Error record(ir::Stream stream, EventRef event) override {
    if (isRecording_) {
      put([=, this] { return inner_->record(stream, inRecord(event)); });
      return ir::success();
    }
    lastRecorded_[event.event] = event.step;
    return inner_->record(stream, event);
  }
  ir::Error run(ir::CommandId command, llvm::ArrayRef<runtime::ScalarValue> scalars) override {
    if (!isRecording_) return inner_->run(command, scalars);
    put([this, command, values = scalars.vec()] { return inner_->run(command, values); });
    return ir::success();
  }
  ir::Error copy(ir::CommandId command) override {
    if (!isRecording_) return inner_->copy(command);
    put([this, command] { return inner_->copy(command); });
    return ir::success();
  }
  ir::Error deliver(const runtime::Delivery& delivery) override {
    if (isRecording_) {
      return ir::makeError(ir::ErrorCode::kInternal, "a delivery would be recorded");
    }
    return inner_->deliver(delivery);
  }
  ir::Error accept(const runtime::Arrival& arrival) override { return inner_->accept(arrival); }
  ir::Error waitOnHost(EventRef event) override {
    if (isRecorded(event)) return inner_->waitOnHost(event);
    // Only the whole record's end can be waited for.
    for (const ir::Stream stream : streams_) {
      const EventRef end{meeting(stream, /*isEnd=*/true), event.step};
      if (ir::Error error = inner_->waitOnHost(end)) return error;
    }
    return ir::success();
  }

  ir::Expected<SegmentMode> beginSegment(const runtime::Segment& /*segment*/,
                                         llvm::ArrayRef<runtime::ScalarValue> scalars) override {
    if (hasRecord_ && scalars == llvm::ArrayRef<runtime::ScalarValue>(recordedScalars_)) {
      return SegmentMode::kLaunch;
    }
    if (!std::exchange(isWarm_, true)) return SegmentMode::kEnqueue;
    items_.clear();
    recordedScalars_ = scalars.vec();
    ++records_;
    isRecording_ = true;
    return SegmentMode::kRecord;
  }
  ir::Error endSegment(const runtime::Segment& /*segment*/) override {
    if (isRecording_) {
      isRecording_ = false;
      hasRecord_ = true;
    }
    if (!hasRecord_) return ir::success();
    ++launches_;
    if (ir::Error error = meet(/*isEnd=*/false)) return error;
    for (const auto& item : items_) {
      if (ir::Error error = item()) return error;
    }
    return meet(/*isEnd=*/true);
  }
  void abandonSegment() override { isRecording_ = false; }

 private:
  void put(std::function<ir::Error()> item) { items_.push_back(std::move(item)); }
  // Events of a record are others than those that are recorded around it; in every launch they are
  // those of the step.
  EventRef inRecord(EventRef event) const { return {event.event + events_, step_}; }
  int32_t meeting(ir::Stream stream, bool isEnd) const {
    return 2 * events_ + 2 * static_cast<int32_t>(stream) + (isEnd ? 1 : 0);
  }
  bool isRecorded(EventRef event) const {
    const auto found = lastRecorded_.find(event.event);
    return found != lastRecorded_.end() && found->second >= event.step;
  }
  ir::Error meet(bool isEnd) {
    for (const ir::Stream stream : streams_) {
      if (ir::Error error = inner_->record(stream, {meeting(stream, isEnd), step_})) return error;
    }
    for (const ir::Stream waiting : streams_) {
      for (const ir::Stream other : streams_) {
        if (other == waiting) continue;
        const EventRef end{meeting(other, isEnd), step_};
        if (ir::Error error = inner_->wait(waiting, end)) return error;
      }
    }
    return ir::success();
  }

  std::unique_ptr<runtime::Program> inner_;
  int32_t events_;
  int64_t& launches_;
  int64_t& records_;
  std::set<ir::Stream> streams_;
  std::vector<std::function<ir::Error()>> items_;
  std::vector<runtime::ScalarValue> recordedScalars_;
  std::map<int32_t, int64_t> lastRecorded_;
  int64_t step_ = 0;
  bool isWarm_ = false;
  bool isRecording_ = false;
  bool hasRecord_ = false;
};

}  // namespace

ir::Expected<std::unique_ptr<runtime::Program>> RecordingDevice::load(
    const runtime::ProgramSource& source) {
  runtime::ProgramSource wider = source;
  wider.eventCount = 2 * source.eventCount + 2 * ir::kStreamCount;
  auto inner = inner_.load(wider);
  if (!inner) return inner.takeError();
  return std::make_unique<RecordingProgram>(std::move(*inner), source.schedule, source.eventCount,
                                            launches_, records_);
}

}  // namespace stowage::tests
