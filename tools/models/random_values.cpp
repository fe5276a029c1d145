// SPDX-License-Identifier: Apache-2.0
#include "tools/models/random_values.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_complex.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

namespace stowage::tools {

namespace {

constexpr int64_t kGrain = int64_t{1} << 18;  // values of one thread at least
constexpr int64_t kMostThreads = 16;

/// Calls `part(begin, end)` for parts of `count` values, side by side. No OpenMP threads, which
/// would spin on while the first step runs.
template <typename Part>
void inParts(int64_t count, Part part) {
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  const int64_t threads =
      std::clamp<int64_t>(count / kGrain, 1, std::clamp(cores, int64_t{1}, kMostThreads));
  std::vector<std::thread> others;
  for (int64_t i = 1; i < threads; ++i) {
    others.emplace_back(part, count * i / threads, count * (i + 1) / threads);
  }
  part(int64_t{0}, count / threads);
  for (std::thread& other : others) other.join();
}

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
uint64_t mix(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  return bits ^ (bits >> 31);
}

uint64_t bitsAt(uint64_t begin, int64_t place) {
  return mix(begin + static_cast<uint64_t>(place + 1) * 0x9e3779b97f4a7c15ULL);
}

template <typename T, typename ValueOf>
void fill(const at::Tensor& values, uint64_t seed, ValueOf valueOf) {
  auto* const first = static_cast<T*>(values.mutable_data_ptr());
  const uint64_t begin = mix(seed);
  inParts(values.numel(), [=](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) first[i] = static_cast<T>(valueOf(bitsAt(begin, i)));
  });
}

template <typename T>
void fillNormal(const at::Tensor& values, uint64_t seed, double spread) {
  constexpr uint64_t kLane = 0xffff;
  constexpr float kMiddle = 2 * kLane;  // of a sum of four lanes
  // One lane has the variance (2^32 - 1) / 12.
  const auto scale = static_cast<float>(spread / std::sqrt(4 * (std::exp2(32.0) - 1) / 12));
  fill<T>(values, seed, [=](uint64_t bits) {
    const auto sum = static_cast<int32_t>((bits & kLane) + (bits >> 16 & kLane) +
                                          (bits >> 32 & kLane) + (bits >> 48));
    return (static_cast<float>(sum) - kMiddle) * scale;
  });
}

}  // namespace

at::Tensor drawNormal(c10::IntArrayRef sizes, c10::ScalarType dtype, uint64_t seed, double spread) {
  if (c10::isComplexType(dtype)) {
    std::vector<int64_t> parts = sizes.vec();
    parts.push_back(2);
    // Half of the variance is each part's.
    const at::Tensor values =
        drawNormal(parts, c10::toRealValueType(dtype), seed, spread * std::sqrt(0.5));
    return at::view_as_complex(values);
  }
  const bool isFilled = dtype == c10::kFloat || dtype == c10::kDouble || dtype == c10::kHalf ||
                        dtype == c10::kBFloat16;
  if (!isFilled) return drawNormal(sizes, c10::kFloat, seed, spread).to(dtype);
  at::Tensor values = at::empty(sizes, at::TensorOptions().dtype(dtype));
  if (dtype == c10::kFloat) fillNormal<float>(values, seed, spread);
  if (dtype == c10::kDouble) fillNormal<double>(values, seed, spread);
  if (dtype == c10::kHalf) fillNormal<c10::Half>(values, seed, spread);
  if (dtype == c10::kBFloat16) fillNormal<c10::BFloat16>(values, seed, spread);
  return values;
}

at::Tensor drawIntegers(c10::IntArrayRef sizes, c10::ScalarType dtype, uint64_t seed,
                        int64_t bound) {
  const at::Tensor values = at::empty(sizes, at::TensorOptions().dtype(c10::kLong));
  const auto below = static_cast<uint64_t>(bound);
  fill<int64_t>(values, seed, [=](uint64_t bits) { return bits % below; });
  return values.to(dtype);
}

}  // namespace stowage::tools
