// SPDX-License-Identifier: Apache-2.0
#include "planner/targets/op_efficiency.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace stowage::planner {

namespace {

// What a kernel's terms are:
//   flops     operations at the peak rate
//   bytes     bytes at the memory bandwidth
//   elements  instructions at the rate at which the multiprocessors issue them
// The longest term counts, because a kernel's warps work at once. In attention and convolutions
// the terms add up: softmax waits for the products, and cuDNN lays operands out anew by kernels of
// their own.
struct Efficiency {
  WorkKind kind;
  int flops;      // permille of the time at the peak rate
  int bytes;      // permille of the time at the memory bandwidth
  int slots;      // instructions of a lane per element
  int drawSlots;  // instructions of a lane per random number
  int settle;     // ns to fill and empty the device; a kernel takes at most twice its terms for it
  bool adds;      // the terms
};

constexpr int kPlain = 1100;  // streams of bytes reach 91 % of the published bandwidth
constexpr std::array<Efficiency, 23> kEfficiencies = {{
    {WorkKind::kMatmul, 1280, 1300, 0, 0, 6'000, false},
    {WorkKind::kUnalignedMatmul, 8200, 1300, 0, 0, 6'000, false},
    {WorkKind::kVectorMatmul, 1370, 1300, 0, 0, 40'000, false},
    {WorkKind::kAttention, 2000, kPlain, 1, 31, 6'000, true},
    {WorkKind::kAttentionBackward, 2000, kPlain, 23, 19, 6'000, true},
    {WorkKind::kConvolution, 1800, kPlain, 44, 0, 6'000, true},
    {WorkKind::kConvolutionBackward, 3000, kPlain, 65, 0, 6'000, true},
    {WorkKind::kNarrowConvolution, 2400, kPlain, 0, 0, 6'000, true},
    {WorkKind::kElementwise, 0, kPlain, 0, 0, 0, false},
    {WorkKind::kMath, 0, kPlain, 48, 0, 0, false},
    {WorkKind::kWalk, 0, kPlain, 113, 0, 0, false},
    {WorkKind::kScatter, 0, kPlain, 405, 0, 0, false},
    {WorkKind::kEmbeddingBackward, 0, kPlain, 870, 0, 6'000, true},
    {WorkKind::kReduction, 0, kPlain, 15, 0, 7'000, false},
    {WorkKind::kSoftmax, 0, 2160, 0, 0, 0, false},
    {WorkKind::kSoftmaxBackward, 0, 1580, 0, 0, 0, false},
    {WorkKind::kNorm, 0, kPlain, 53, 0, 12'000, false},
    {WorkKind::kNormBackward, 0, kPlain, 185, 0, 12'000, false},
    {WorkKind::kBatchNorm, 0, kPlain, 204, 0, 0, false},
    {WorkKind::kBatchNormBackward, 0, kPlain, 146, 0, 0, false},
    {WorkKind::kCudnnBatchNorm, 0, kPlain, 117, 0, 0, false},
    {WorkKind::kCudnnBatchNormBackward, 0, kPlain, 157, 0, 0, false},
    {WorkKind::kOptimizer, 0, 1530, 0, 0, 0, false},
}};

/// A batch norm gives each channel to few blocks. With so many channels, half of the
/// multiprocessors are busy.
constexpr int64_t halfBusyChannels(WorkKind kind) {
  switch (kind) {
    case WorkKind::kBatchNorm:
      return 76;
    case WorkKind::kBatchNormBackward:
      return 337;
    case WorkKind::kCudnnBatchNorm:
      return 93;
    case WorkKind::kCudnnBatchNormBackward:
      return 244;
    default:
      return 0;
  }
}

// Partial sums meet in memory: a reduction of very many elements to one takes so much longer, and
// one of kHalfReduced half of it.
constexpr int64_t kReductionLatency = 18'700;  // ns
constexpr int64_t kHalfReduced = 1'000;

const Efficiency& efficiencyOf(WorkKind kind) {
  const auto* found = std::find_if(kEfficiencies.begin(), kEfficiencies.end(),
                                   [&](const Efficiency& row) { return row.kind == kind; });
  assert(found != kEfficiencies.end() && "every kind has a row");
  return *found;
}

/// `amount` * `factor` / `divisor` at `rate` per second, at most kLongestCommand.
Nanoseconds timeOf(int64_t amount, int64_t factor, int64_t divisor, int64_t rate) {
  constexpr int64_t kMost = INT64_MAX;
  const __int128 scaled = static_cast<__int128>(amount) * factor / divisor;
  const auto whole = scaled < kMost ? static_cast<int64_t>(scaled) : kMost;
  // A rate of operations is a rate of bytes with another name: both are counts per second.
  return transferTime(Bytes(whole), BytesPerSecond(std::max<int64_t>(rate, 1)));
}

/// TF32 runs at half of the rate of bf16 on every GPU that has both.
int64_t rateOf(const ir::Target& target, const OpWork& work) {
  switch (work.unit) {
    case FlopUnit::kDType:
      return flopRate(target, work.dtype);
    case FlopUnit::kTf32:
      return flopRate(target, ir::DType::kBF16) / 2;
    case FlopUnit::kVector:
      return flopRate(target, ir::DType::kF32);
  }
  return 1;
}

/// Lanes that get an instruction per second: 128 per multiprocessor and cycle. The f32 rate counts
/// two operations per multiply-add; A100 has 64 f32 units per multiprocessor, all others 128.
int64_t issueRate(const ir::Target& target) {
  const int64_t rate = flopRate(target, ir::DType::kF32);
  return target.computeCapability == 80 ? rate : rate / 2;
}

}  // namespace

int64_t flopRate(const ir::Target& target, ir::DType dtype) {
  int64_t fallback = 1;
  for (const auto& [known, rate] : target.flopsPerSecond) {
    if (known == dtype) return rate;
    if (known == ir::DType::kF32) fallback = rate;
  }
  return fallback;
}

Nanoseconds kernelTime(const ir::Target& target, const OpWork& work) {
  const Efficiency& row = efficiencyOf(work.kind);
  const Nanoseconds flops = timeOf(work.flops, row.flops, 1000, rateOf(target, work));
  const Nanoseconds bytes =
      timeOf(work.bytes.value(), row.bytes, 1000, target.memoryBandwidth.value());
  const int64_t slots = row.slots + (work.draws ? row.drawSlots : 0);
  const int64_t channels = std::max<int64_t>(work.channels, 1);
  const int64_t idle = work.channels > 0 ? halfBusyChannels(work.kind) : 0;
  const Nanoseconds issue =
      timeOf(work.elements, slots * (channels + idle), channels, issueRate(target));
  Nanoseconds busy = row.adds ? flops + bytes + issue : std::max({flops, bytes, issue});
  busy = std::min(busy, kLongestCommand);
  if (row.settle > 0) {
    busy += Nanoseconds(busy.value() * row.settle / (busy.value() + row.settle));
  }
  if (work.reduced > 0) {
    const int64_t reduced = std::min<int64_t>(work.reduced, 1'000'000'000);
    busy += Nanoseconds(kReductionLatency * reduced / (reduced + kHalfReduced));
  }
  return std::min(busy, kLongestCommand) + target.kernelOverhead;
}

}  // namespace stowage::planner
