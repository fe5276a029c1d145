// SPDX-License-Identifier: Apache-2.0
#include "runtime/calibrate/calibrate.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ir/base/affix.h"
#include "runtime/calibrate/op_measurement.h"
#include "runtime/calibrate/valid_values.h"
#include "runtime/cpu/thread_trial.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/torch/deterministic_mode.h"
#include "runtime/torch/rng_keeper.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kNondeterministic = ", nondeterministic";

/// Memory for one operand, at an address that is a multiple of the alignment.
class Buffer {
 public:
  Buffer(Bytes bytes, int64_t alignment) : room_(static_cast<size_t>(bytes.value() + alignment)) {
    const auto first = reinterpret_cast<uintptr_t>(room_.data());
    const auto unit = static_cast<uintptr_t>(alignment);
    begin_ = room_.data() + ((unit - first % unit) % unit);
  }
  uint8_t* begin() { return begin_; }

 private:
  std::vector<uint8_t> room_;
  uint8_t* begin_;
};

class CpuBench final : public OpBench {
 public:
  explicit CpuBench(int64_t alignBytes) : alignBytes_(alignBytes) {}

  void clear() override { buffers_.clear(); }
  ir::Expected<uint8_t*> place(ir::Space /*home*/, Bytes bytes) override {
    buffers_.emplace_back(bytes, alignBytes_);
    return buffers_.back().begin();
  }
  ir::Error fill(ir::Space /*home*/, uint8_t* at, Bytes bytes, const OperandFill& fill) override {
    fillValidValues(fill.dtype, fill.integers, fill.seed, {at, static_cast<size_t>(bytes.value())});
    return ir::success();
  }
  ir::Expected<CallTime> time(const std::string& name, llvm::function_ref<void()> call) override {
    return callTorch(name, [&] {
      const auto begin = Clock::now();
      call();
      const Nanoseconds took = since(begin);
      return CallTime{.work = took, .launch = Nanoseconds(0)};
    });
  }
  AllocationSource& allocations() override { return allocations_; }

 private:
  int64_t alignBytes_;
  std::vector<Buffer> buffers_;
  AllocationSource allocations_;
};

ir::Expected<ir::CostTable> calibrateCpu(const ir::Graph& graph, const CalibrateOptions& options) {
  if (ir::Error error = checkOpThreads(options.intraOpThreads)) return error;
  installServedAllocator();
  const DeterministicMode mode(options.deterministic);
  CpuBench bench(options.alignBytes);
  ir::CostTable table = options.known;
  table.source = ir::CostSource::kMeasured;
  table.device = cpuCostsDevice(options.intraOpThreads, options.deterministic);
  std::optional<ir::Error> result;
  // A thread of its own, as in a run: its OpenMP workers are not those of the caller.
  std::thread worker([&] {
    at::set_num_threads(options.intraOpThreads);
    registerAllocatingThreads(&bench.allocations());
    const RngRestore restore;
    result.emplace(measureOps(graph, options, c10::Device(c10::DeviceType::CPU), bench, table));
    registerAllocatingThreads(nullptr);
  });
  worker.join();
  if (*result) return std::move(*result);
  return table;
}

std::string costsDevice(const std::string& machine, bool deterministic) {
  return machine + (deterministic ? "" : kNondeterministic);
}

ir::Expected<std::string> gpuCostsDevice(bool deterministic) {
  ir::Expected<GpuLibrary*> gpu = loadGpuLibrary();
  if (!gpu) return gpu.takeError();
  ir::Expected<GpuFacts> facts = (*gpu)->describe();
  if (!facts) return facts.takeError();
  const int cudnn = facts->cudnnVersion;
  const std::string driver = facts->driverVersion.empty() ? "" : ", driver " + facts->driverVersion;
  return costsDevice(facts->name + driver + ", CUDA " + facts->driver + ", cuDNN " +
                         std::to_string(cudnn / 10000) + "." + std::to_string(cudnn / 100 % 100),
                     deterministic);
}

}  // namespace

std::string cpuCostsDevice(int intraOpThreads, bool deterministic) {
  return costsDevice("cpu, " + std::to_string(intraOpThreads) + " threads", deterministic);
}

bool isCpuCostsDevice(const std::string& costsDevice) {
  return ir::startsWith(costsDevice, "cpu, ");
}

ir::Expected<std::string> costsDeviceHere(const ir::Target& target) {
  if (target.device == ir::DeviceKind::kCpu) {
    return cpuCostsDevice(target.intraOpThreads, target.deterministic);
  }
  return gpuCostsDevice(target.deterministic);
}

bool isOfDeterministicMode(const std::string& costsDevice) {
  return !ir::endsWith(costsDevice, kNondeterministic);
}

ir::Expected<ir::CostTable> calibrate(const ir::Graph& graph, const CalibrateOptions& options) {
  if (options.device == ir::DeviceKind::kCpu) return calibrateCpu(graph, options);
  ir::Expected<GpuLibrary*> gpu = loadGpuLibrary();
  if (!gpu) return gpu.takeError();
  ir::Expected<std::string> device = gpuCostsDevice(options.deterministic);
  if (!device) return device.takeError();
  ir::Expected<ir::CostTable> table = (*gpu)->calibrate(graph, options);
  if (table) table->device = std::move(*device);
  return table;
}

BytesPerSecond measureHostMemory() {
  constexpr size_t kBytes = size_t{64} << 20;
  const std::vector<uint8_t> from(kBytes, 1);
  std::vector<uint8_t> to(kBytes, 0);
  Nanoseconds best(INT64_MAX);
  for (int i = 0; i < 5; ++i) {
    const auto begin = Clock::now();
    std::memcpy(to.data(), from.data(), kBytes);
    best = std::min(best, since(begin));
  }
  const double perSecond = static_cast<double>(kBytes) * 1e9 / static_cast<double>(best.value());
  return BytesPerSecond(static_cast<int64_t>(perSecond));
}

namespace {

ir::Expected<ir::LinkModel> measureCopies(ir::DeviceKind device) {
  if (device == ir::DeviceKind::kCpu) {
    const ir::LinkRate memory{measureHostMemory(), Nanoseconds(0)};
    ir::LinkModel links;
    links.deviceToHost = memory;
    links.hostToDevice = memory;
    return links;
  }
  ir::Expected<GpuLibrary*> gpu = loadGpuLibrary();
  if (!gpu) return gpu.takeError();
  return (*gpu)->measureLinks();
}

}  // namespace

ir::Expected<ir::LinkModel> measureLinks(const ir::Target& target) {
  ir::Expected<ir::LinkModel> links = measureCopies(target.device);
  if (!links) return links.takeError();
  links->betweenRanks = target.links.betweenRanks;
  links->besideRanksPermille = target.links.besideRanksPermille;
  return links;
}

}  // namespace stowage::runtime
