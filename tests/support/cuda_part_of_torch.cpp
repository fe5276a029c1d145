// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda_part_of_torch.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace {

/// The beginning of cudaDeviceProp in CUDA 13 (driver_types.h).
struct Properties {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luidMask;
  size_t totalMemory, sharedMemoryOfBlock;
  int registersOfBlock, warpSize;
  size_t pitch;
  int threadsOfBlock, threads[3], grid[3];
  size_t constantMemory;
  int major, minor;
  char rest[4096];
};
static_assert(offsetof(Properties, major) == 360);

Properties properties = {};
void* library = nullptr;

}  // namespace

#define STOWAGE_SEEN_BY_TORCH __attribute__((visibility("default")))

// In place of libtorch's, which ask the driver.
namespace at::cuda {
STOWAGE_SEEN_BY_TORCH void* getCurrentDeviceProperties() { return &properties; }
STOWAGE_SEEN_BY_TORCH void* getDeviceProperties(int8_t) { return &properties; }
}  // namespace at::cuda
namespace c10::cuda {
STOWAGE_SEEN_BY_TORCH int8_t device_count() noexcept { return 1; }  // NOLINT: libtorch's name
STOWAGE_SEEN_BY_TORCH int8_t current_device() { return 0; }         // NOLINT: libtorch's name
}  // namespace c10::cuda

namespace stowage::tests {

std::string librariesOf(const std::string& python) {
  const std::string command =
      python +
      " -c \"import importlib.util as u; "
      "print(u.find_spec('torch').submodule_search_locations[0], end='/lib')\"";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string folder;
  for (int read = std::fgetc(pipe); read != EOF; read = std::fgetc(pipe)) {
    folder += static_cast<char>(read);
  }
  return pclose(pipe) == 0 ? folder : "";
}

std::string loadCudaPart(const std::string& folder) {
  library = dlopen((folder + "/libtorch_cuda.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
  return library == nullptr ? dlerror() : "";
}

void* cudaFunction(const char* name) { return dlsym(library, name); }

void setCapability(int capability) {
  properties.major = capability / 10;
  properties.minor = capability % 10;
}

}  // namespace stowage::tests
