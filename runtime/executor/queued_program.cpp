// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/queued_program.h"

#include <cstring>
#include <utility>

#include "runtime/executor/wall_time.h"

namespace stowage::runtime {

StreamQueue& QueuedStreams::queue(ir::Stream stream) {
  auto& own = queues_[static_cast<size_t>(stream)];
  if (own) return *own;
  own = std::make_unique<StreamQueue>();
  if (prepare_) own->push([this, stream] { prepare_(stream); });
  return *own;
}

ir::Error QueuedStreams::drain() {
  for (const auto& queue : queues_) {
    if (queue) queue->drain();
  }
  return failure_.get();
}

ir::Error QueuedProgram::takeTimes(int64_t steps) {
  stepsToTime_ = steps;
  return ir::success();
}

ir::Expected<std::vector<ir::StepTimes>> QueuedProgram::takenTimes() {
  std::vector<ir::StepTimes> taken;
  for (const auto& step : times_) taken.push_back(*step);
  return taken;
}

ir::Error QueuedProgram::beginStep(int64_t step) {
  timedStep_ = nullptr;
  if (stepsToTime_ <= 0) return ir::success();
  --stepsToTime_;
  times_.push_back(std::make_unique<ir::StepTimes>());
  timedStep_ = times_.back().get();
  timedStep_->step = step;
  timedStep_->commands.resize(source_.schedule.commands.size());
  return ir::success();
}

ir::Error QueuedProgram::wait(ir::Stream stream, EventRef event) {
  streams_.queue(stream).push([this, event] { events_.wait(event); });
  return ir::success();
}

ir::Error QueuedProgram::record(ir::Stream stream, EventRef event) {
  streams_.queue(stream).push([this, event] { events_.signal(event); });
  return ir::success();
}

ir::Error QueuedProgram::run(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) {
  pushCommand(command, [this, command, values = scalars.vec()] { return runNow(command, values); });
  return ir::success();
}

ir::Error QueuedProgram::copy(ir::CommandId command) {
  pushCommand(command, [this, command] { return copyNow(command); });
  return ir::success();
}

void QueuedProgram::pushCommand(ir::CommandId command, std::function<ir::Error()> work) {
  const ir::Stream stream = source_.schedule.command(command).stream;
  if (timedStep_ == nullptr) return pushWork(stream, std::move(work));
  ir::CommandTimes& times = timedStep_->commands[command.index()].emplace();
  times.launchBegin = wallTime();
  pushWork(stream, [&times, work = std::move(work)] {
    times.begin = wallTime();
    ir::Error error = work();
    times.end = wallTime();
    return error;
  });
  times.launchEnd = wallTime();
}

ir::Error QueuedProgram::deliver(const Delivery& delivery) {
  pushWork(delivery.stream, [from = hostArena_ + delivery.hostOffset, to = delivery.to] {
    std::memcpy(to.data(), from, to.size());
    return ir::success();
  });
  return ir::success();
}

ir::Error QueuedProgram::accept(const Arrival& arrival) {
  pushWork(arrival.stream, [from = arrival.from, to = hostArena_ + arrival.hostOffset] {
    std::memcpy(to, from.data(), from.size());
    return ir::success();
  });
  return ir::success();
}

ir::Error QueuedProgram::waitOnHost(EventRef event) {
  events_.wait(event);
  return streams_.failure().get();
}

void QueuedProgram::pushWork(ir::Stream stream, std::function<ir::Error()> work) {
  streams_.queue(stream).push([&failure = streams_.failure(), work = std::move(work)] {
    if (!failure.isSet()) failure.set(work());
  });
}

}  // namespace stowage::runtime
