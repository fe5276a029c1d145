// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_program.h"

#include <cstring>
#include <utility>
#include <vector>

#include "runtime/cuda/stopwatch.h"

namespace stowage::runtime {

using ir::Space;
using ir::Stream;

namespace {

class CudaEvents {
 public:
  static ir::Expected<CudaEvents> make(int32_t count) {
    CudaEvents events;
    for (int32_t i = 0; i < 2 * count; ++i) {
      cudaEvent_t event = nullptr;
      if (ir::Error error = checkCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                                      "making an event")) {
        return error;
      }
      events.events_.push_back(event);
    }
    return events;
  }
  CudaEvents() = default;
  CudaEvents(CudaEvents&& other) noexcept : events_(std::exchange(other.events_, {})) {}
  CudaEvents& operator=(CudaEvents&&) = delete;
  ~CudaEvents() {
    for (cudaEvent_t event : events_) (void)cudaEventDestroy(event);
  }
  /// Steps take turns: this one's, and the one before.
  cudaEvent_t at(EventRef ref) const {
    return events_[static_cast<size_t>(2 * ref.event + (ref.step % 2))];
  }

 private:
  std::vector<cudaEvent_t> events_;
};

struct HandedOut {
  const uint8_t* from;
  llvm::MutableArrayRef<uint8_t> to;
};

void handOut(void* data) {
  const std::unique_ptr<HandedOut> delivery(static_cast<HandedOut*>(data));
  std::memcpy(delivery->to.data(), delivery->from, delivery->to.size());
}

class CudaProgram : public Program {
 public:
  CudaProgram(const ProgramSource& source, CudaState& device, std::unique_ptr<Launcher> launcher,
              CudaEvents events)
      : source_(source),
        device_(device),
        launcher_(std::move(launcher)),
        events_(std::move(events)) {}

  ir::Error beginStep(int64_t /*step*/) override { return readTimes(); }

  void takeTimes() override { stopwatches_.resize(source_.schedule.commands.size()); }
  const RunTimes* runTimes() override {
    llvm::consumeError(readTimes());
    return &times_;
  }

  ir::Error wait(Stream stream, EventRef event) override {
    return device_.check(cudaStreamWaitEvent(device_.raw(stream), events_.at(event), 0),
                         "waiting for an event");
  }
  ir::Error record(Stream stream, EventRef event) override {
    return device_.check(cudaEventRecord(events_.at(event), device_.raw(stream)),
                         "recording an event");
  }

  ir::Error run(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars) override {
    const c10::cuda::CUDAStreamGuard guard(device_.compute);
    const ServedThread served(device_.allocations);
    Stopwatch* watch = watchOf(command);
    if (watch != nullptr) watch->start(device_.compute.stream());
    ir::Error error =
        device_.fail(launcher_->launch(command, scalars, device_.allocator, device_.allocations));
    if (watch != nullptr) watch->stop(device_.compute.stream());
    return error;
  }

  ir::Error copy(ir::CommandId id) override {
    const ir::Command& command = source_.schedule.command(id);
    const ir::Residency& from = source_.schedule.residency(command.from);
    const ir::Residency& to = source_.schedule.residency(command.to);
    const auto bytes = static_cast<size_t>(source_.graph.storage(from.storage).bytes.value());
    return device_.check(
        cudaMemcpyAsync(device_.at(to.space, to.offset), device_.at(from.space, from.offset), bytes,
                        command.stream == Stream::kDeviceToHost ? cudaMemcpyDeviceToHost
                                                                : cudaMemcpyHostToDevice,
                        device_.raw(command.stream)),
        "starting a copy");
  }

  ir::Error deliver(const Delivery& delivery) override {
    auto handed = std::make_unique<HandedOut>(
        HandedOut{device_.at(Space::kHost, delivery.hostOffset), delivery.to});
    ir::Error error =
        device_.check(cudaLaunchHostFunc(device_.raw(delivery.stream), handOut, handed.get()),
                      "handing out an output");
    if (!error) (void)handed.release();
    return error;
  }

  ir::Error waitOnHost(EventRef event) override {
    return device_.check(cudaEventSynchronize(events_.at(event)), "a kernel or a copy of the step");
  }

 private:
  Stopwatch* watchOf(ir::CommandId command) {
    if (stopwatches_.empty()) return nullptr;
    std::unique_ptr<Stopwatch>& watch = stopwatches_[command.index()];
    if (!watch) watch = std::make_unique<Stopwatch>();
    return watch.get();
  }

  // Each stopwatch has room for one step: the step before is waited for and read.
  ir::Error readTimes() {
    for (size_t i = 0; i < stopwatches_.size(); ++i) {
      if (!stopwatches_[i] || !stopwatches_[i]->isStopped()) continue;
      ir::Expected<Nanoseconds> time = stopwatches_[i]->read();
      if (!time) return device_.fail(time.takeError());
      times_.add(ir::CommandId(i), *time);
    }
    return ir::success();
  }

  ProgramSource source_;
  CudaState& device_;
  std::unique_ptr<Launcher> launcher_;
  CudaEvents events_;
  std::vector<std::unique_ptr<Stopwatch>> stopwatches_;  // by command; empty: no times are taken
  RunTimes times_{source_.schedule.commands.size()};
};

}  // namespace

ir::Expected<std::unique_ptr<Program>> makeCudaProgram(const ProgramSource& source,
                                                       CudaState& state,
                                                       std::unique_ptr<Launcher> launcher) {
  auto events = CudaEvents::make(source.eventCount);
  if (!events) return events.takeError();
  return std::make_unique<CudaProgram>(source, state, std::move(launcher), std::move(*events));
}

}  // namespace stowage::runtime
