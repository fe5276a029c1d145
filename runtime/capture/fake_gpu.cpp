// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/fake_gpu.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/FakeGuardImpl.h>
#include <c10/util/Registry.h>

#include <atomic>

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

using at::CUDAHooksRegistry;
C10_REGISTER_CLASS_WITH_PRIORITY(CUDAHooksRegistry, CUDAHooks, c10::REGISTRY_PREFERRED,
                                 FakeGpuHooks)

}  // namespace

ir::Error enableFakeGpu(const ir::Target& target) {
  static const c10::impl::FakeGuardImpl<c10::DeviceType::CUDA> kGuard;
  const bool hasGuard = c10::impl::hasDeviceGuardImpl(c10::kCUDA);
  if (hasGuard && !enabled) {
    return ir::makeError(ir::ErrorCode::kEnvironment,
                         "this process has a real CUDA device type, expected none beside a fake one");
  }
  if (!hasGuard) c10::impl::registerDeviceGuard(c10::kCUDA, &kGuard);
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
