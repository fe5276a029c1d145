// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/internals/fake_gpu.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/FakeGuardImpl.h>
#include <c10/util/Registry.h>
#include <torch/library.h>

#include <atomic>
#include <cstring>
#include <memory>

namespace stowage::runtime {
namespace {

std::atomic<int> cudnnVersion{0};
std::atomic<bool> enabled{false};

/// What is not overridden still says that there is no CUDA.
struct FakeGpuHooks : at::CUDAHooksInterface {
  explicit FakeGpuHooks(at::CUDAHooksArgs) {}

  void init() const override {}
  bool hasCUDA() const override { return enabled; }
  bool isBuilt() const override { return enabled; }
  bool isAvailable() const override { return enabled; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return false; }
  c10::DeviceIndex deviceCount() const override { return enabled ? 1 : 0; }
  int getNumGPUs() const override { return enabled ? 1 : 0; }
  c10::DeviceIndex current_device() const override { return 0; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }

  /// Seeded along with the CPU's by at::manual_seed; nothing ever draws from it.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    static const at::Generator kGenerator = at::detail::createCPUGenerator();
    return kGenerator;
  }

  // These decide which batch norm and which convolution a composite op takes.
  bool hasCuDNN() const override { return cudnnVersion > 0; }
  bool compiledWithCuDNN() const override { return cudnnVersion > 0; }
  long versionCuDNN() const override { return cudnnVersion; }         // NOLINT: their type
  long versionRuntimeCuDNN() const override { return cudnnVersion; }  // NOLINT: their type
  double batchnormMinEpsilonCuDNN() const override { return 1e-5; }
  bool supportsDilatedConvolutionWithCuDNN() const override { return true; }
  bool supportsDepthwiseConvolutionWithCuDNN() const override { return true; }
  bool supportsBFloat16ConvolutionWithCuDNNv8() const override { return true; }
};

/// libtorch asks whoever is registered when it is first asked about CUDA. Its CUDA libraries, where
/// they are loaded, were before us.
void registerHooks() {
  constexpr const char* kName = "CUDAHooks";
  if (at::CUDAHooksRegistry()->Has(kName)) return;
  at::CUDAHooksRegistry()->Register(
      kName,
      [](at::CUDAHooksArgs args) -> std::unique_ptr<at::CUDAHooksInterface> {
        return std::make_unique<FakeGpuHooks>(args);
      },
      c10::REGISTRY_FALLBACK);
}

/// libtorch keeps its answers in an object without members, which it made when it was first asked:
/// in a process with libtorch's CUDA libraries and no GPU, ours take their place there.
void replaceHooks(const at::CUDAHooksInterface& real) {
  static const FakeGpuHooks kOurs{at::CUDAHooksArgs{}};
  static_assert(sizeof(FakeGpuHooks) == sizeof(void*), "answers have members");
  std::memcpy(const_cast<void*>(static_cast<const void*>(&real)), static_cast<const void*>(&kOurs),
              sizeof(void*));
}

void refuseToRun(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  TORCH_CHECK(false, op.schema().name(), " on cuda in a process without CUDA");
}

/// The ops that are one kernel on CUDA and made of others where a device has no kernel: these stand
/// for the kernels that libtorch_cuda would have registered, or the step would have other calls.
/// (All entries of native_functions.yaml, in each version, with a CUDA and a composite
/// implicit kernel.)
void registerKernelsThatDecide() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__,
                                __LINE__);
  for (const char* op : {"_fused_rms_norm", "mish_backward", "silu_backward"}) {
    library.impl(op, torch::CppFunction::makeFromBoxedFunction<&refuseToRun>());
  }
}

}  // namespace

ir::Error enableFakeGpu(const ir::Target& target) {
  static const c10::impl::FakeGuardImpl<c10::DeviceType::CUDA> kGuard;
  registerHooks();
  const bool hasGuard = c10::impl::hasDeviceGuardImpl(c10::kCUDA);
  if (hasGuard && !enabled) {
    const at::CUDAHooksInterface& real = at::detail::getCUDAHooks();
    if (real.deviceCount() > 0) {
      return ir::makeError(ir::ErrorCode::kEnvironment,
                           "this process has a GPU, expected none beside one that is not there: "
                           "capture for the device cuda");
    }
    replaceHooks(real);
  }
  if (!enabled) c10::impl::registerDeviceGuard(c10::kCUDA, &kGuard);
  if (!hasGuard) registerKernelsThatDecide();
  cudnnVersion = target.cudnnVersion;
  enabled = true;
  if (!at::detail::getCUDAHooks().hasCUDA()) {
    return ir::makeError(ir::ErrorCode::kEnvironment,
                         "libtorch was asked about CUDA before the fake device was there, expected "
                         "enableFakeGpu to be called first");
  }
  return ir::success();
}

}  // namespace stowage::runtime
