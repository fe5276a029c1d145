// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/generator_watch.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <mutex>

namespace stowage::runtime {
namespace {

constexpr uint64_t kPhiloxStep = 4;

at::Generator generatorOf(c10::DeviceType device) {
  return at::globalContext().defaultGenerator(c10::Device(device, device == c10::kCPU ? -1 : 0));
}

}  // namespace

uint64_t SeedWatch::seedNow() {
  at::Generator generator = generatorOf(c10::kCPU);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.current_seed();
}

GeneratorWatch::GeneratorWatch(c10::DeviceType device)
    : device_(device), first_(stateOf(device)), expected_(first_) {}

GeneratorWatch::~GeneratorWatch() {
  at::Generator generator = generatorOf(device_);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  at::Tensor state = at::empty({static_cast<int64_t>(first_.size())},
                               at::TensorOptions().dtype(at::kByte).device(at::kCPU));
  std::copy(first_.begin(), first_.end(), state.mutable_data_ptr<uint8_t>());
  generator.set_state(state);
}

std::vector<uint8_t> GeneratorWatch::stateOf(c10::DeviceType device) {
  at::Generator generator = generatorOf(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  const auto* bytes = state.const_data_ptr<uint8_t>();
  return {bytes, bytes + state.numel()};
}

void GeneratorWatch::moveOn() {
  at::Generator generator = generatorOf(device_);
  {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    // The GPU that is not there (fake_gpu.h) has a CPU's generator.
    if (auto* own = dynamic_cast<at::CPUGeneratorImpl*>(generator.unsafeGetGeneratorImpl())) {
      own->random64();
    } else {
      generator.set_offset(generator.get_offset() + kPhiloxStep);
    }
  }
  expected_ = stateOf(device_);
}

bool GeneratorWatch::isUntouched() const {
  return seed_.isUntouched() && stateOf(device_) == expected_;
}

}  // namespace stowage::runtime
