// SPDX-License-Identifier: Apache-2.0
#include "runtime/rng_keeper.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/MT19937RNGEngine.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "runtime/torch_boundary.h"

namespace stowage::runtime {

struct RngState {
  at::mt19937 engine;
  std::optional<float> nextFloat;
  std::optional<double> nextDouble;

  static RngState take() {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    auto* own = generator.get<at::CPUGeneratorImpl>();
    return {own->engine(), own->next_float_normal_sample(), own->next_double_normal_sample()};
  }
  void put() const {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    auto* own = generator.get<at::CPUGeneratorImpl>();
    own->set_engine(engine);
    own->set_next_float_normal_sample(nextFloat);
    own->set_next_double_normal_sample(nextDouble);
  }
};

RngKeeper::RngKeeper() = default;
RngKeeper::~RngKeeper() = default;
RngKeeper::RngKeeper(RngKeeper&&) noexcept = default;
RngKeeper& RngKeeper::operator=(RngKeeper&&) noexcept = default;

void RngKeeper::before(const ir::Command& run) {
  if (run.rngSlot < 0) return;
  const auto slot = static_cast<size_t>(run.rngSlot);
  if (slots_.size() <= slot) slots_.resize(slot + 1);
  if (run.clone == 0) {
    if (!slots_[slot]) slots_[slot] = std::make_unique<RngState>();
    *slots_[slot] = RngState::take();
    return;
  }
  running_ = std::make_unique<RngState>(RngState::take());
  if (slots_[slot]) slots_[slot]->put();
}

void RngKeeper::after(const ir::Command& run) {
  if (run.rngSlot < 0 || run.clone == 0) return;
  running_->put();
}

ir::Expected<std::vector<uint8_t>> readGeneratorState() {
  return callTorch("reading the generator's state", [] {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    const at::Tensor state = generator.get_state();
    const auto* bytes = state.const_data_ptr<uint8_t>();
    return std::vector<uint8_t>(bytes, bytes + state.numel());
  });
}

ir::Error writeGeneratorState(llvm::ArrayRef<uint8_t> bytes) {
  return callTorch("setting the generator's state", [&] {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    at::Tensor state = at::empty({static_cast<int64_t>(bytes.size())},
                                 at::TensorOptions().dtype(at::kByte).device(at::kCPU));
    std::copy(bytes.begin(), bytes.end(), state.mutable_data_ptr<uint8_t>());
    generator.set_state(state);
  });
}

RngRestore::RngRestore() : state_(std::make_unique<RngState>(RngState::take())) {}
RngRestore::~RngRestore() { state_->put(); }

}  // namespace stowage::runtime
