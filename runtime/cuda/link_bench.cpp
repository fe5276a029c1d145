// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/link_bench.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/cuda_status.h"
#include "runtime/cuda/host_update_bench.h"
#include "runtime/cuda/stopwatch.h"

namespace stowage::runtime {

namespace {

/// Copies that run side by side.
struct LinkTimes {
  Nanoseconds out;
  Nanoseconds in;
};

class LinkBench {
 public:
  static ir::Expected<ir::LinkModel> measure() {
    ir::Expected<DeviceArena> device = DeviceArena::allocate(Bytes(2 * kBytes));
    if (!device) return device.takeError();
    ir::Expected<PinnedArena> host = PinnedArena::allocate(Bytes(2 * kBytes), {});
    if (!host) return host.takeError();
    LinkBench bench(device->base(), host->base());
    if (ir::Error error = bench.open()) return error;
    ir::Expected<LinkTimes> out = bench.best(kBytes, 0);
    if (!out) return out.takeError();
    ir::Expected<LinkTimes> in = bench.best(0, kBytes);
    if (!in) return in.takeError();
    ir::Expected<LinkTimes> both = bench.best(kBytes, kBytes);
    if (!both) return both.takeError();
    ir::Expected<LinkTimes> smallOut = bench.best(kSmallBytes, 0);
    if (!smallOut) return smallOut.takeError();
    ir::Expected<LinkTimes> smallIn = bench.best(0, kSmallBytes);
    if (!smallIn) return smallIn.takeError();
    ir::LinkModel links;
    links.deviceToHost = {rateOf(kBytes, out->out), smallOut->out};
    links.hostToDevice = {rateOf(kBytes, in->in), smallIn->in};
    const double alone = static_cast<double>(out->out.value() + in->in.value());
    const double together = static_cast<double>(both->out.value() + both->in.value());
    links.bothPermille = std::clamp(static_cast<int>(1000 * alone / together), 1, 1000);
    ir::Expected<Nanoseconds> launch = bench.launchOverhead();
    if (!launch) return launch.takeError();
    links.launch = *launch;
    return links;
  }

 private:
  static constexpr int64_t kBytes = int64_t{256} << 20;
  static constexpr int64_t kSmallBytes = 512;
  static constexpr int kTries = 5;

  LinkBench(uint8_t* device, uint8_t* host) : device_(device), host_(host) {}
  ~LinkBench() {
    if (event_ != nullptr) (void)cudaEventDestroy(event_);
    for (cudaStream_t stream : {out_, in_}) {
      if (stream != nullptr) (void)cudaStreamDestroy(stream);
    }
  }
  LinkBench(const LinkBench&) = delete;
  LinkBench& operator=(const LinkBench&) = delete;

  ir::Error open() {
    for (cudaStream_t* stream : {&out_, &in_}) {
      if (ir::Error error = check(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking))) {
        return error;
      }
    }
    return check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
  }

  static ir::Error check(cudaError_t status) { return checkCuda(status, "measuring a link"); }

  static BytesPerSecond rateOf(int64_t bytes, Nanoseconds time) {
    return BytesPerSecond(
        static_cast<int64_t>(static_cast<double>(bytes) * 1e9 /
                             static_cast<double>(std::max<int64_t>(time.value(), 1))));
  }

  static ir::Error copy(uint8_t* to, const uint8_t* from, int64_t bytes, cudaMemcpyKind kind,
                        cudaStream_t stream) {
    if (bytes == 0) return ir::success();
    return check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, stream));
  }

  ir::Error copyOut(int64_t bytes) {
    return copy(host_, device_, bytes, cudaMemcpyDeviceToHost, out_);
  }
  ir::Error copyIn(int64_t bytes) {
    return copy(device_ + kBytes, host_ + kBytes, bytes, cudaMemcpyHostToDevice, in_);
  }

  ir::Expected<LinkTimes> best(int64_t outBytes, int64_t inBytes) {
    LinkTimes best = {Nanoseconds(INT64_MAX), Nanoseconds(INT64_MAX)};
    for (int i = 0; i < kTries; ++i) {
      Stopwatch out;
      Stopwatch in;
      out.start(out_);
      in.start(in_);
      if (ir::Error error = copyOut(outBytes)) return error;
      if (ir::Error error = copyIn(inBytes)) return error;
      out.stop(out_);
      in.stop(in_);
      ir::Expected<Nanoseconds> outTime = out.read();
      if (!outTime) return outTime.takeError();
      ir::Expected<Nanoseconds> inTime = in.read();
      if (!inTime) return inTime.takeError();
      best.out = std::min(best.out, *outTime);
      best.in = std::min(best.in, *inTime);
    }
    return best;
  }

  /// Of one copy, with an event after it and a wait of the other stream for that event, as steps
  /// have them.
  ir::Expected<Nanoseconds> launchOverhead() {
    using Clock = std::chrono::steady_clock;
    constexpr int kPairs = 32;
    Nanoseconds best(INT64_MAX);
    for (int i = 0; i < kTries; ++i) {
      const auto begin = Clock::now();
      for (int pair = 0; pair < kPairs; ++pair) {
        if (ir::Error error = copyOut(kSmallBytes)) return error;
        if (ir::Error error = waitFor(out_, in_)) return error;
        if (ir::Error error = copyIn(kSmallBytes)) return error;
        if (ir::Error error = waitFor(in_, out_)) return error;
      }
      const std::chrono::nanoseconds took = Clock::now() - begin;
      best = std::min(best, Nanoseconds(took.count() / (2 * kPairs)));
      for (cudaStream_t stream : {out_, in_}) {
        if (ir::Error error = check(cudaStreamSynchronize(stream))) return error;
      }
    }
    return best;
  }

  ir::Error waitFor(cudaStream_t stream, cudaStream_t waiting) {
    if (ir::Error error = check(cudaEventRecord(event_, stream))) return error;
    return check(cudaStreamWaitEvent(waiting, event_, 0));
  }

  uint8_t* device_;
  uint8_t* host_;
  cudaEvent_t event_ = nullptr;
  cudaStream_t out_ = nullptr;
  cudaStream_t in_ = nullptr;
};

}  // namespace

ir::Expected<ir::LinkModel> measureCudaLinks() {
  ir::Expected<ir::LinkModel> links = LinkBench::measure();
  if (!links) return links.takeError();
  ir::Expected<HostUpdateRates> host = measureHostUpdates();
  if (!host) return host.takeError();
  links->hostUpdates = host->updates;
  links->besideHostPermille = host->prefetchPermille;
  return links;
}

}  // namespace stowage::runtime
