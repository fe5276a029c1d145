// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/used_memory.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <string>

#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/cuda_status.h"

namespace stowage::runtime {

namespace {

// The part of NVML's interface that is used here; the driver brings the library, not the toolkit.
struct NvmlMemory {
  unsigned long long total;  // NOLINT: their types
  unsigned long long free;   // NOLINT
  unsigned long long used;   // NOLINT
};
using NvmlDevice = void*;

class Nvml {
 public:
  static std::optional<Nvml> open() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return std::nullopt;
    Nvml nvml;
    auto* init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
    auto* find = reinterpret_cast<int (*)(const char*, NvmlDevice*)>(
        dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
    nvml.memory_ = reinterpret_cast<int (*)(NvmlDevice, NvmlMemory*)>(
        dlsym(library, "nvmlDeviceGetMemoryInfo"));
    if (init == nullptr || find == nullptr || nvml.memory_ == nullptr || init() != 0) {
      return std::nullopt;
    }
    char bus[32] = {};
    if (cudaDeviceGetPCIBusId(bus, sizeof(bus), 0) != cudaSuccess) return std::nullopt;
    if (find(bus, &nvml.device_) != 0) return std::nullopt;
    return nvml;
  }
  std::optional<Bytes> used() const {
    NvmlMemory memory{};
    if (memory_(device_, &memory) != 0) return std::nullopt;
    return Bytes(static_cast<int64_t>(memory.used));
  }

 private:
  NvmlDevice device_ = nullptr;
  int (*memory_)(NvmlDevice, NvmlMemory*) = nullptr;
};

std::optional<Bytes> usedDeviceMemory() {
  static const std::optional<Nvml> nvml = Nvml::open();
  return nvml ? nvml->used() : std::nullopt;
}

std::optional<Bytes> atStart;

}  // namespace

void noteMemoryAtStart() { atStart = usedDeviceMemory(); }

std::optional<Bytes> memoryOutside(Bytes arena) {
  const std::optional<Bytes> now = usedDeviceMemory();
  if (!now || !atStart) return std::nullopt;
  return std::max(*now - *atStart - arena, Bytes(0));
}

ir::Error checkRoom(Bytes arena, Bytes outside) {
  size_t free = 0;
  size_t all = 0;
  if (ir::Error error = checkCuda(cudaMemGetInfo(&free, &all), "reading the GPU's memory")) {
    return error;
  }
  const std::optional<Bytes> taken = memoryOutside(Bytes(0));
  const Bytes later = taken ? std::max(outside - *taken, Bytes(0)) : Bytes(0);
  const Bytes room(static_cast<int64_t>(free));
  if (room >= arena + later) return ir::success();
  return ir::makeError(ir::ErrorCode::kOutOfDeviceMemory,
                       "the device has " + sizeText(room) + " free of " +
                           formatBytes(Bytes(static_cast<int64_t>(all))) +
                           ", the plan needs an arena of " + sizeText(arena) + " and " +
                           sizeText(later) +
                           " more for kernels and libraries; a budget of device:" +
                           formatBytes(room + outside - later) + " would fit");
}

}  // namespace stowage::runtime
