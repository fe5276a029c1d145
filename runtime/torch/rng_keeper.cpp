// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/rng_keeper.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/MT19937RNGEngine.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {

namespace {

/// libtorch looks at `left` and `next` one by one. Together they say how far the engine reads in
/// its array before it fills that anew.
bool staysInside(at::mt19937 engine) {
  const at::mt19937_data_pod state = engine.data();
  return static_cast<int64_t>(state.left_) + state.next_ <= at::MERSENNE_STATE_N + 1;
}

}  // namespace

struct CpuRngState {
  at::mt19937 engine;
  std::optional<float> nextFloat;
  std::optional<double> nextDouble;

  static CpuRngState take() {
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

std::unique_ptr<RngKeeper> makeCpuRngKeeper() {
  return std::make_unique<SlottedRngKeeper<CpuRngState>>();
}

at::Generator defaultGenerator(c10::DeviceType device) {
  return at::globalContext().defaultGenerator(c10::Device(device, device == c10::kCPU ? -1 : 0));
}

std::vector<uint8_t> stateOf(at::Generator generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  const auto* bytes = state.const_data_ptr<uint8_t>();
  return {bytes, bytes + state.numel()};
}

void setState(at::Generator generator, llvm::ArrayRef<uint8_t> bytes) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  at::Tensor state = at::empty({static_cast<int64_t>(bytes.size())},
                               at::TensorOptions().dtype(at::kByte).device(at::kCPU));
  std::copy(bytes.begin(), bytes.end(), state.mutable_data_ptr<uint8_t>());
  generator.set_state(state);
}

ir::Expected<std::vector<uint8_t>> readGeneratorState(c10::DeviceType device) {
  return callTorch("reading the generator's state",
                   [&] { return stateOf(defaultGenerator(device)); });
}

ir::Error writeGeneratorState(c10::DeviceType device, llvm::ArrayRef<uint8_t> bytes) {
  return callTorch("setting the generator's state",
                   [&] { setState(defaultGenerator(device), bytes); });
}

ir::Error checkGeneratorState(c10::DeviceType device, llvm::ArrayRef<uint8_t> bytes) {
  ir::Expected<std::vector<uint8_t>> now = readGeneratorState(device);
  if (!now) return now.takeError();
  if (bytes.size() != now->size()) {
    return ir::makeError(ir::ErrorCode::kParse,
                         "found " + std::to_string(bytes.size()) + " bytes, expected " +
                             std::to_string(now->size()) + ", the state of a generator of the " +
                             c10::DeviceTypeName(device, /*lower_case=*/true));
  }
  bool mayDraw = true;
  ir::Error error = callTorch("", [&] {
    at::Generator trial = defaultGenerator(device).clone();
    setState(trial, bytes);
    if (device == c10::kCPU) mayDraw = staysInside(trial.get<at::CPUGeneratorImpl>()->engine());
  });
  if (error) {
    const ir::PlanError found = ir::takePayload(std::move(error));
    const bool isRefused = found.code() == ir::ErrorCode::kTorch;
    return ir::makeError(isRefused ? ir::ErrorCode::kParse : found.code(), found.text());
  }
  if (mayDraw) return ir::success();
  return ir::makeError(ir::ErrorCode::kParse,
                       "found a generator that would draw past the end of its numbers");
}

RngRestore::RngRestore() : state_(std::make_unique<CpuRngState>(CpuRngState::take())) {}
RngRestore::~RngRestore() { state_->put(); }

}  // namespace stowage::runtime
