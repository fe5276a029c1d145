// SPDX-License-Identifier: Apache-2.0
//
// The pieces of a batch norm over several devices, which exist on CUDA alone (Normalization.cu of
// libtorch 2.11; results read off an H200). Statistics are float32 for 16-bit inputs. Inputs whose
// channels are last in memory take other kernels, which fill what nobody asked for.
#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {
namespace {

c10::ScalarType accumulateType(c10::ScalarType type) {
  return type == c10::kHalf || type == c10::kBFloat16 ? c10::kFloat : type;
}

bool hasChannelsLast(const at::Tensor& input) {
  return input.is_contiguous(c10::MemoryFormat::ChannelsLast) ||
         input.is_contiguous(c10::MemoryFormat::ChannelsLast3d) ||
         (input.is_contiguous() && input.stride(1) == 1);
}

Outputs twoOfChannels(const at::Tensor& input) {
  const OutputTensor one = fresh({input.size(1)}, accumulateType(input.scalar_type()));
  return outputs({one, one});
}

/// batch_norm_stats(input, eps), batch_norm_gather_stats(input, mean, invstd, running_mean?,
/// running_var?, ...)
Outputs statistics(const TracedCall& call) { return twoOfChannels(call.tensor(0)); }

/// batch_norm_update_stats(input, running_mean?, running_var?, momentum), on the CPU too
Outputs updatedStatistics(const TracedCall& call) {
  const at::Tensor& input = call.tensor(0);
  c10::ScalarType type = input.scalar_type();
  for (const size_t running : {2, 1}) {
    if (call.hasTensor(running)) type = call.tensor(running).scalar_type();
  }
  if (call.device.is_cuda()) type = accumulateType(input.scalar_type());
  const OutputTensor one = fresh({input.size(1)}, type);
  return outputs({one, one});
}

/// batch_norm_elemt(input, weight?, bias?, mean, invstd, eps)
Outputs normalize(const TracedCall& call) { return outputs({freshLike(call.tensor(0))}); }

/// batch_norm_backward_reduce(grad, input, mean, invstd, weight?, input_g, weight_g, bias_g)
Outputs reduceBackward(const TracedCall& call) {
  const at::Tensor& input = call.tensor(1);
  const std::vector<int64_t> sizes = {input.size(1)};
  const OutputTensor sum = fresh(sizes, accumulateType(input.scalar_type()));
  const c10::ScalarType type = call.hasTensor(4) ? call.tensor(4).scalar_type() : sum.shape.dtype;
  if (hasChannelsLast(call.tensor(0)) && hasChannelsLast(input)) {
    const OutputTensor weight = fresh(call.hasTensor(4) ? sizes : std::vector<int64_t>{0}, type);
    return outputs({sum, sum, weight, weight});
  }
  const auto whenWanted = [&](size_t flag, const OutputTensor& tensor) {
    return call.boolean(flag) ? tensor : undefinedOutput();
  };
  const OutputTensor weight = fresh(sizes, type);
  return outputs(
      {whenWanted(5, sum), whenWanted(5, sum), whenWanted(6, weight), whenWanted(7, weight)});
}

/// batch_norm_backward_elemt(grad, input, ...)
Outputs backward(const TracedCall& call) {
  const at::Tensor& input = call.tensor(1);
  const bool isLast = hasChannelsLast(call.tensor(0)) && hasChannelsLast(input);
  return outputs({isLast ? freshInFormat(input) : freshContiguous(input)});
}

constexpr NamedRule kRules[] = {
    {"aten.batch_norm_backward_elemt.default", backward},
    {"aten.batch_norm_backward_reduce.default", reduceBackward},
    {"aten.batch_norm_elemt.default", normalize},
    {"aten.batch_norm_gather_stats.default", statistics},
    {"aten.batch_norm_gather_stats_with_counts.default", statistics},
    {"aten.batch_norm_stats.default", statistics},
    {"aten.batch_norm_update_stats.default", updatedStatistics},
};

}  // namespace

llvm::ArrayRef<NamedRule> syncNormRules() { return kRules; }

}  // namespace stowage::runtime
