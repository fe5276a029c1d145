// SPDX-License-Identifier: Apache-2.0
#include "runtime/queued_program.h"

#include <chrono>
#include <cstring>
#include <utility>

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

ir::Error QueuedProgram::beginStep(int64_t /*step*/) { return ir::success(); }

ir::Error QueuedProgram::wait(ir::Stream stream, EventRef event) {
  streams_.queue(stream).push([this, event] { events_.wait(event); });
  return ir::success();
}

ir::Error QueuedProgram::record(ir::Stream stream, EventRef event) {
  streams_.queue(stream).push([this, event] { events_.signal(event); });
  return ir::success();
}

ir::Error QueuedProgram::run(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) {
  pushWork(source_.schedule.command(command).stream, [this, command, isTimed = takesTimes_,
                                                      values = scalars.vec()] {
    if (!isTimed) return runNow(command, values);
    const auto begin = std::chrono::steady_clock::now();
    ir::Error error = runNow(command, values);
    times_.add(
        command,
        Nanoseconds(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count()));
    return error;
  });
  return ir::success();
}

ir::Error QueuedProgram::copy(ir::CommandId command) {
  pushWork(source_.schedule.command(command).stream, [this, command] { return copyNow(command); });
  return ir::success();
}

ir::Error QueuedProgram::deliver(const Delivery& delivery) {
  pushWork(delivery.stream, [from = hostArena_ + delivery.hostOffset, to = delivery.to] {
    std::memcpy(to.data(), from, to.size());
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
