// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/dispatch/generator_watch.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

#include "runtime/torch/rng_keeper.h"

namespace stowage::runtime {
namespace {

constexpr uint64_t kPhiloxStep = 4;

}  // namespace

uint64_t SeedWatch::seedNow() {
  at::Generator generator = defaultGenerator(c10::kCPU);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.current_seed();
}

GeneratorWatch::GeneratorWatch(c10::DeviceType device)
    : device_(device), first_(stateOf(defaultGenerator(device))), expected_(first_) {}

GeneratorWatch::~GeneratorWatch() { setState(defaultGenerator(device_), first_); }

void GeneratorWatch::moveOn() {
  at::Generator generator = defaultGenerator(device_);
  {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    // The GPU that is not there (fake_gpu.h) has a CPU's generator.
    if (auto* own = dynamic_cast<at::CPUGeneratorImpl*>(generator.unsafeGetGeneratorImpl())) {
      own->random64();
    } else {
      generator.set_offset(generator.get_offset() + kPhiloxStep);
    }
  }
  expected_ = stateOf(generator);
}

bool GeneratorWatch::isUntouched() const {
  return seed_.isUntouched() && stateOf(defaultGenerator(device_)) == expected_;
}

}  // namespace stowage::runtime
