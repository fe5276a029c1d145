// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/used_memory.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/cuda/cuda_status.h"

namespace stowage::runtime {

namespace {

// The part of NVML's interface that is used here; the driver brings the library, not the toolkit.
struct NvmlMemory {
  unsigned long long total;  // NOLINT: their types
  unsigned long long free;   // NOLINT
  unsigned long long used;   // NOLINT
};
struct NvmlProcess {
  unsigned pid;
  unsigned long long used;  // NOLINT
  unsigned gpuInstance;
  unsigned computeInstance;
};
using NvmlDevice = void*;
constexpr int kNvmlTooFew = 7;  // NVML_ERROR_INSUFFICIENT_SIZE

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
    nvml.processes_ = reinterpret_cast<int (*)(NvmlDevice, unsigned*, NvmlProcess*)>(
        dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3"));
    nvml.driver_ =
        reinterpret_cast<int (*)(char*, unsigned)>(dlsym(library, "nvmlSystemGetDriverVersion"));
    return nvml;
  }
  std::optional<std::string> driver() const {
    char version[128] = {};
    if (driver_ == nullptr || driver_(version, sizeof(version)) != 0) return std::nullopt;
    return std::string(version);
  }
  std::optional<Bytes> used() const {
    NvmlMemory memory{};
    if (memory_(device_, &memory) != 0) return std::nullopt;
    return Bytes(static_cast<int64_t>(memory.used));
  }
  std::optional<Bytes> usedByThisProcess() const {
    if (processes_ == nullptr) return std::nullopt;
    std::vector<NvmlProcess> found(16);
    auto count = static_cast<unsigned>(found.size());
    int status = processes_(device_, &count, found.data());
    for (int tries = 0; status == kNvmlTooFew && tries < 8; ++tries) {
      found.resize(2 * std::max<size_t>(count, found.size()));
      count = static_cast<unsigned>(found.size());
      status = processes_(device_, &count, found.data());
    }
    if (status != 0) return std::nullopt;
    found.resize(count);
    for (const NvmlProcess& process : found) {
      const auto bytes = static_cast<int64_t>(process.used);  // -1: not told
      if (process.pid == static_cast<unsigned>(getpid()) && bytes > 0) return Bytes(bytes);
    }
    return std::nullopt;
  }

 private:
  NvmlDevice device_ = nullptr;
  int (*driver_)(char*, unsigned) = nullptr;
  int (*memory_)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*processes_)(NvmlDevice, unsigned*, NvmlProcess*) = nullptr;
};

const std::optional<Nvml>& management() {
  static const std::optional<Nvml> nvml = Nvml::open();
  return nvml;
}

std::optional<Bytes> atStart;
Bytes uncounted;  // used since the start, and counted as no process's

// On an H200 5.6 MiB. More, or less than nothing: another process took memory, or gave it back.
constexpr Bytes kMostUncounted(int64_t{32} << 20);

}  // namespace

void noteContext() {
  if (!management()) return;
  atStart = management()->used();
  if (cudaFree(nullptr) != cudaSuccess) {
    (void)cudaGetLastError();  // said by whoever uses the GPU
    return;
  }
  const std::optional<Bytes> now = management()->used();
  const std::optional<Bytes> own = management()->usedByThisProcess();
  if (!atStart || !now || !own) return;
  const Bytes left = *now - *atStart - *own;
  if (left > Bytes(0) && left <= kMostUncounted) uncounted = left;
}

std::optional<std::string> driverVersion() {
  return management() ? management()->driver() : std::nullopt;
}

bool countsWholeDevice() { return management() && !management()->usedByThisProcess(); }

std::optional<Bytes> memoryOutside(Bytes arena) {
  if (!management()) return std::nullopt;
  if (const std::optional<Bytes> own = management()->usedByThisProcess()) {
    return std::max(*own + uncounted - arena, Bytes(0));
  }
  // Of another pid namespace than the driver's: what others took or gave back since is counted in.
  const std::optional<Bytes> now = management()->used();
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
                           std::to_string((room + outside - later).value()) + "B would fit");
}

}  // namespace stowage::runtime
