// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/host_streams.h"

#include <cuda.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "runtime/cuda/cuda_status.h"
#include "runtime/cuda/driver_functions.h"

namespace stowage::runtime {

namespace {

constexpr std::chrono::microseconds kBetweenQuestions(20);

uint32_t numberOf(int64_t step) { return static_cast<uint32_t>(step + 1); }

}  // namespace

bool isHostStream(ir::Stream stream) {
  return stream == ir::Stream::kHostCompute || stream == ir::Stream::kDiskRead ||
         stream == ir::Stream::kDiskWrite;
}

ir::Expected<std::unique_ptr<HostStreams>> HostStreams::make(const ProgramSource& source,
                                                             QueuedStreams& threads) {
  const bool isAny = llvm::any_of(source.schedule.commands, [](const ir::Command& command) {
    return isHostStream(command.stream);
  });
  if (!isAny) return std::unique_ptr<HostStreams>();
  ir::Expected<void*> waitValue =
      findDriverFunction("cuStreamWaitValue32", "with which a stream waits for work on the host");
  if (!waitValue) return waitValue.takeError();
  const int32_t count = std::max(source.eventCount, 1);
  void* numbers = nullptr;
  const size_t bytes = static_cast<size_t>(count) * sizeof(uint32_t);
  if (ir::Error error = checkCuda(cudaHostAlloc(&numbers, bytes, cudaHostAllocMapped),
                                  "pinning what streams wait for")) {
    return error;
  }
  std::fill_n(static_cast<uint32_t*>(numbers), count, 0);
  return std::unique_ptr<HostStreams>(new HostStreams(
      threads, count, static_cast<uint32_t*>(numbers), reinterpret_cast<WaitValue>(*waitValue)));
}

HostStreams::HostStreams(QueuedStreams& threads, int32_t eventCount, uint32_t* numbers,
                         WaitValue waitValue)
    : threads_(threads),
      counters_(eventCount),
      isOwn_(static_cast<size_t>(eventCount), false),
      numbers_(numbers),
      waitValue_(waitValue) {}

HostStreams::~HostStreams() { (void)cudaFreeHost(numbers_); }

void HostStreams::push(ir::Stream stream, std::function<ir::Error()> work) {
  threads_.queue(stream).push([&failure = threads_.failure(), work = std::move(work)] {
    if (!failure.isSet()) failure.set(work());
  });
}

void HostStreams::record(ir::Stream stream, EventRef event) {
  isOwn_[static_cast<size_t>(event.event)] = true;
  threads_.queue(stream).push([this, event] {
    const std::atomic_ref<uint32_t> number(numbers_[event.event]);
    number.store(numberOf(event.step), std::memory_order_release);
    counters_.signal(event);
  });
}

void HostStreams::wait(ir::Stream stream, EventRef event) {
  threads_.queue(stream).push([this, event] { counters_.wait(event); });
}

cudaError_t HostStreams::query(EventRef event) const {
  const std::atomic_ref<uint32_t> number(numbers_[event.event]);
  const uint32_t since = number.load(std::memory_order_acquire) - numberOf(event.step);
  return since < (1U << 31) ? cudaSuccess : cudaErrorNotReady;
}

// An event that fails is over, too; the launch thread finds the failure. The thread may be so far
// behind that the event is recorded again: then it was finished in its step.
void HostStreams::wait(ir::Stream stream, const CudaEvents& events, EventRef event) {
  threads_.queue(stream).push([&events, event] {
    while (events.isRecorded(event) && cudaEventQuery(events.at(event)) == cudaErrorNotReady) {
      std::this_thread::sleep_for(kBetweenQuestions);
    }
  });
}

cudaError_t HostStreams::wait(cudaStream_t stream, EventRef event) const {
  void* number = nullptr;
  if (const cudaError_t status = cudaHostGetDevicePointer(&number, numbers_ + event.event, 0)) {
    return status;
  }
  const int status = waitValue_(stream, reinterpret_cast<unsigned long long>(number),  // NOLINT
                                numberOf(event.step), CU_STREAM_WAIT_VALUE_GEQ);
  return status == CUDA_SUCCESS ? cudaSuccess : cudaErrorLaunchFailure;
}

}  // namespace stowage::runtime
