// SPDX-License-Identifier: Apache-2.0
//
// What the CUDA library offers to the programs that load it.
#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <interface_id.h>

#include <cstring>
#include <string>

#include "runtime/cuda/cuda_calibrate.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_status.h"
#include "runtime/cuda/link_bench.h"
#include "runtime/cuda/ranks_bench.h"
#include "runtime/cuda/used_memory.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {

namespace {

/// 13000 -> "13.0"
std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

class CudaLibrary final : public GpuLibrary {
 public:
  ir::Expected<GpuFacts> describe() override {
    int devices = 0;
    if (ir::Error error = checkCuda(cudaGetDeviceCount(&devices), "looking for a GPU")) {
      ir::PlanError none = ir::takePayload(std::move(error));
      return ir::makeError(ir::ErrorCode::kEnvironment, none.text());
    }
    GpuFacts facts;
    cudaDeviceProp properties{};
    if (ir::Error error = checkCuda(cudaGetDeviceProperties(&properties, 0), "reading the GPU")) {
      return error;
    }
    facts.name = properties.name;
    facts.devices = devices;
    facts.computeCapability = 10 * properties.major + properties.minor;
    size_t free = 0;
    size_t all = 0;
    if (ir::Error error = checkCuda(cudaMemGetInfo(&free, &all), "reading the GPU's memory")) {
      return error;
    }
    facts.memory = Bytes(static_cast<int64_t>(all));
    facts.freeMemory = Bytes(static_cast<int64_t>(free));
    int driver = 0;
    int runtime = 0;
    if (ir::Error error = checkCuda(cudaDriverGetVersion(&driver), "reading the driver")) {
      return error;
    }
    if (ir::Error error = checkCuda(cudaRuntimeGetVersion(&runtime), "reading the runtime")) {
      return error;
    }
    facts.driver = versionText(driver);
    facts.driverVersion = driverVersion().value_or("");
    facts.countsOwnMemory = !countsWholeDevice();
    facts.runtime = versionText(runtime);
    facts.cudnnVersion = static_cast<int>(at::detail::getCUDAHooks().versionRuntimeCuDNN());
    return facts;
  }

  ir::Expected<std::unique_ptr<Device>> open(const GpuDeviceOptions& options) override {
    return CudaDevice::open(options);
  }
  ir::Expected<ir::CostTable> calibrate(const ir::Graph& graph,
                                        const CalibrateOptions& options) override {
    return calibrateCuda(graph, options);
  }
  ir::Expected<ir::LinkModel> measureLinks() override { return measureCudaLinks(); }
  ir::Error measureRanks(const TrainingRanks& ranks, ir::LinkModel& links) override {
    return measureCudaRanks(ranks, links);
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) GpuLibrary* stowageGpuLibrary(
    const char* interface) {
  static CudaLibrary library;
  if (std::strcmp(interface, STOWAGE_INTERFACE) != 0) return nullptr;
  noteContext();
  return &library;
}

}  // namespace stowage::runtime
