// SPDX-License-Identifier: Apache-2.0
//
// Loads the GPU library. All code that needs CUDA is in a library of its own (stowage_cuda,
// runtime/cuda/), loaded when a CUDA step is measured or run. Nothing else of Stowage links CUDA,
// and the rest works without it. The library must be loaded before libtorch is first asked about
// CUDA, so before a CUDA step is captured in the same process.
#ifndef STOWAGE_RUNTIME_GPU_GPU_LIBRARY_H_
#define STOWAGE_RUNTIME_GPU_GPU_LIBRARY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "ir/costs/cost_table.h"
#include "runtime/disk/disk_place.h"
#include "runtime/executor/device.h"
#include "runtime/ranks/training_ranks.h"

namespace stowage::runtime {

struct CalibrateOptions;  // runtime/calibrate/calibrate.h

/// The GPU that a process would use, as its driver and libraries describe it.
struct GpuFacts {
  std::string name;
  int devices = 1;            // GPUs that the process sees; it would use the first
  int computeCapability = 0;  // 90 for sm_90
  Bytes memory;
  Bytes freeMemory;
  std::string driver;         // "13.0": the CUDA version that the driver can do
  std::string driverVersion;  // "580.159.04"; empty: not told
  /// False in a container that hides this process from the driver's count (a process-id namespace):
  /// memory beside the arena then is what the whole GPU's use changed by, other processes included.
  bool countsOwnMemory = true;
  std::string runtime;   // "13.0"
  int cudnnVersion = 0;  // 91900
};

/// "" unless other processes' memory is counted as this one's; else a sentence that says so.
std::string describeMemoryCount(const GpuFacts& gpu);

struct GpuDeviceOptions {
  Bytes deviceBytes;  // the budget
  Bytes hostBytes;
  Bytes mostHostBytes;  // that growHost may be asked for
  Bytes outside;        // what else the process is expected to take on the device; kept free
  DiskPlace disk;       // 0 bytes: none
  int64_t alignBytes = 512;
  /// Called while host memory is pinned.
  std::function<void(Bytes done, Bytes all)> pinning;
  /// For collectives; outlives the device. Null: none.
  const TrainingRanks* ranks = nullptr;
};

class GpuLibrary {
 public:
  virtual ~GpuLibrary() = default;

  virtual ir::Expected<GpuFacts> describe() = 0;
  /// Errors: kOutOfDeviceMemory, kCuda.
  virtual ir::Expected<std::unique_ptr<Device>> open(const GpuDeviceOptions& options) = 0;
  /// As in runtime/calibrate/calibrate.h, on the GPU.
  virtual ir::Expected<ir::CostTable> calibrate(const ir::Graph& graph,
                                                const CalibrateOptions& options) = 0;
  virtual ir::Expected<ir::LinkModel> measureLinks() = 0;
  /// As in runtime/calibrate/ranks_link.h, by all ranks at once.
  virtual ir::Error measureRanks(const TrainingRanks& ranks, ir::LinkModel& links) = 0;
};

/// Loads the library on the first call; later calls return the same. Looked for where the
/// environment's STOWAGE_CUDA_LIBRARY says, else beside the program, then in the absolute folders
/// of LD_LIBRARY_PATH; libtorch_cuda beside libtorch_cpu. Errors: kEnvironment naming what is
/// missing.
ir::Expected<GpuLibrary*> loadGpuLibrary();
/// Null: not loaded.
GpuLibrary* loadedGpuLibrary();

/// What the library exports, by this name.
inline constexpr const char* kGpuLibraryEntry = "stowageGpuLibrary";
/// Null when the caller's headers are not those that the library was built with: `interface` is
/// STOWAGE_INTERFACE of tools/cmake/StowageInterfaceId.cmake.
using GpuLibraryEntry = GpuLibrary* (*)(const char* interface);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_GPU_GPU_LIBRARY_H_
