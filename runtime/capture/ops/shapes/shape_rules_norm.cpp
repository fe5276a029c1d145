// SPDX-License-Identifier: Apache-2.0
//
// Normalisations and softmax. Where CPU and CUDA differ is in the type of the saved statistics:
// CUDA computes and keeps them in float32 for 16-bit inputs, the CPU keeps the input's type unless
// the weights are wider. Sources for CUDA: layer_norm_kernel.cu, Normalization.cu, BatchNorm.cpp
// (cudnn) of libtorch 2.11 and its _meta_registrations.py.
#include <ATen/Context.h>

#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {
namespace {

c10::ScalarType accumulateType(c10::ScalarType type) {
  return type == c10::kHalf || type == c10::kBFloat16 ? c10::kFloat : type;
}

/// Type of saved statistics: `tensors` are the optional weights and running statistics.
c10::ScalarType statisticsType(const TracedCall& call, const at::Tensor& input,
                               std::initializer_list<size_t> weights) {
  if (call.device.is_cuda()) return accumulateType(input.scalar_type());
  for (const size_t index : weights) {
    if (call.hasTensor(index)) return call.tensor(index).scalar_type();
  }
  return input.scalar_type();
}

/// Gradient of a weight that may be absent.
OutputTensor weightGradient(const TracedCall& call, size_t weight, bool wanted) {
  return wanted && call.hasTensor(weight) ? freshContiguous(call.tensor(weight))
                                          : undefinedOutput();
}

std::vector<int64_t> statisticsSizes(const at::Tensor& input, size_t normalizedDims) {
  std::vector<int64_t> sizes = input.sizes().vec();
  TORCH_CHECK(normalizedDims <= sizes.size(), "normalizes ", normalizedDims,
              " dimensions, expected at most the ", sizes.size(), " of the input");
  for (size_t i = 0; i < normalizedDims; ++i) sizes[sizes.size() - 1 - i] = 1;
  return sizes;
}

/// native_layer_norm(input, normalized_shape, weight, bias, eps)
Outputs layerNorm(const TracedCall& call) {
  const at::Tensor& input = call.tensor(0);
  const auto sizes = statisticsSizes(input, call.args[1].toIntVector().size());
  const c10::ScalarType type = statisticsType(call, input, {2, 3});
  return outputs({freshContiguous(input), fresh(sizes, type), fresh(sizes, type)});
}

/// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, mask)
Outputs layerNormBackward(const TracedCall& call) {
  const c10::List<bool> mask = call.args[7].toBoolList();
  return outputs({mask[0] ? freshContiguous(call.tensor(1)) : undefinedOutput(),
                  weightGradient(call, 5, mask[1]), weightGradient(call, 6, mask[2])});
}

/// _fused_rms_norm(input, normalized_shape, weight, eps)
Outputs fusedRmsNorm(const TracedCall& call) {
  const at::Tensor& input = call.tensor(0);
  const auto sizes = statisticsSizes(input, call.args[1].toIntVector().size());
  return outputs({freshContiguous(input), fresh(sizes, accumulateType(input.scalar_type()))});
}

/// _fused_rms_norm_backward(grad_out, input, normalized_shape, rstd, weight, mask)
Outputs fusedRmsNormBackward(const TracedCall& call) {
  const c10::List<bool> mask = call.args[5].toBoolList();
  return outputs({mask[0] ? freshContiguous(call.tensor(1)) : undefinedOutput(),
                  weightGradient(call, 4, mask[1])});
}

/// What the CPU's batch norm writes: row-major, or channels last where the input is that alone. An
/// input with a dimension of one element may be channels last without suggesting it.
OutputTensor batchNormOnCpu(const at::Tensor& input) {
  for (const auto format : {c10::MemoryFormat::ChannelsLast, c10::MemoryFormat::ChannelsLast3d}) {
    const bool fits = input.dim() == (format == c10::MemoryFormat::ChannelsLast ? 4 : 5);
    if (fits && !input.is_contiguous() && input.is_contiguous(format))
      return inFormat(input.sizes().vec(), format, input.scalar_type());
  }
  return freshInFormat(input);
}

/// CUDA keeps any dense layout, the CPU row-major and channels last.
Outputs batchNormResults(const TracedCall& call, c10::ScalarType type, bool keepsStatistics) {
  const at::Tensor& input = call.tensor(0);
  const int64_t channels = keepsStatistics ? input.size(1) : 0;
  return outputs({call.device.is_cuda() ? freshLike(input) : batchNormOnCpu(input),
                  fresh({channels}, type), fresh({channels}, type)});
}

/// native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
Outputs batchNorm(const TracedCall& call) {
  const bool keeps = call.boolean(5) || call.device.is_cuda();
  return batchNormResults(call, statisticsType(call, call.tensor(0), {1, 2, 3, 4}), keeps);
}

/// _native_batch_norm_legit.no_stats(input, weight, bias, training, momentum, eps)
Outputs batchNormWithoutStatistics(const TracedCall& call) {
  const bool keeps = call.boolean(3) || call.device.is_cuda();
  return batchNormResults(call, statisticsType(call, call.tensor(0), {1, 2}), keeps);
}

/// The reserve space is empty in the layouts that libtorch picks unless the input is channels last;
/// its size there is only known to cuDNN.
void refuseUnknownReserve(const TracedCall& call) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      call.device.is_cpu() ||
          call.tensor(0).suggest_memory_format() == c10::MemoryFormat::Contiguous,
      "cuDNN alone knows the size of batch norm's reserve space for channels last tensors: give it "
      "contiguous() ones");
}

/// _batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps)
Outputs batchNormWithUpdate(const TracedCall& call) {
  refuseUnknownReserve(call);
  Outputs all = batchNormResults(call, statisticsType(call, call.tensor(0), {1, 2, 3, 4}), true);
  all.push_back(tensorOutput(fresh({0}, c10::kByte)));
  return all;
}

/// CUDA's kernels for channels last are taken in training alone.
OutputTensor batchNormGradient(const TracedCall& call, bool training) {
  const at::Tensor& input = call.tensor(1);
  if (call.device.is_cpu()) return freshInFormat(input);
  const bool bothInFormat = call.tensor(0).suggest_memory_format() == input.suggest_memory_format();
  return training && bothInFormat ? freshInFormat(input) : freshContiguous(input);
}

Outputs batchNormGradients(const TracedCall& call, bool training) {
  const at::Tensor& input = call.tensor(1);
  const c10::List<bool> mask = call.args[9].toBoolList();
  const c10::ScalarType type =
      call.hasTensor(2) ? call.tensor(2).scalar_type() : statisticsType(call, input, {3, 4});
  const auto ofChannels = [&](bool wanted) {
    return wanted ? fresh({input.size(1)}, type) : undefinedOutput();
  };
  return outputs({mask[0] ? batchNormGradient(call, training) : undefinedOutput(),
                  ofChannels(mask[1]), ofChannels(mask[2])});
}

/// native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, mean, invstd,
/// train, eps, mask)
Outputs batchNormBackward(const TracedCall& call) {
  return batchNormGradients(call, call.boolean(7));
}

/// batch_norm_backward(grad_out, input, weight, running_mean, running_var, mean, invstd, update,
/// eps, mask, reserve): the backward of _batch_norm_with_update.
Outputs updatingBatchNormBackward(const TracedCall& call) {
  refuseUnknownReserve(call);
  return batchNormGradients(call, call.boolean(7));
}

/// cudnn_batch_norm(input, weight, bias, running_mean, running_var, training, factor, eps)
Outputs cudnnBatchNorm(const TracedCall& call) {
  const at::Tensor& input = call.tensor(0);
  const int64_t channels = call.boolean(5) ? input.size(1) : 0;
  const c10::ScalarType type = call.tensor(1).scalar_type();
  refuseUnknownReserve(call);
  return outputs({freshInFormat(input), fresh({channels}, type), fresh({channels}, type),
                  fresh({0}, c10::kByte)});
}

/// cudnn_batch_norm_backward(input, grad_out, weight, ...)
Outputs cudnnBatchNormBackward(const TracedCall& call) {
  return outputs({freshInFormat(call.tensor(0)), freshContiguous(call.tensor(2)),
                  freshContiguous(call.tensor(2))});
}

/// native_group_norm(input, weight, bias, N, C, HxW, group, eps)
Outputs groupNorm(const TracedCall& call) {
  const at::Tensor& input = call.tensor(0);
  c10::ScalarType type = input.scalar_type();
  for (const size_t weight : {1, 2}) {
    if (call.hasTensor(weight)) type = call.tensor(weight).scalar_type();
  }
  const std::vector<int64_t> sizes = {call.integer(3), call.integer(6)};
  return outputs({call.device.is_cpu() ? freshInFormat(input) : freshContiguous(input),
                  fresh(sizes, type), fresh(sizes, type)});
}

/// native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, mask)
Outputs groupNormBackward(const TracedCall& call) {
  const at::Tensor& input = call.tensor(1);
  const c10::List<bool> mask = call.args[9].toBoolList();
  const c10::ScalarType type =
      call.hasTensor(4) ? call.tensor(4).scalar_type() : input.scalar_type();
  const auto ofChannels = [&](bool wanted) {
    return wanted ? fresh({call.integer(6)}, type) : undefinedOutput();
  };
  return outputs({mask[0] ? (call.device.is_cpu() ? freshInFormat(input) : freshContiguous(input))
                          : undefinedOutput(),
                  ofChannels(mask[1]), ofChannels(mask[2])});
}

/// _safe_softmax(self, dim, dtype?)
Outputs safeSoftmax(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  const auto type = call.args[2].isNone() ? self.scalar_type() : call.args[2].toScalarType();
  return outputs({fresh(self.sizes().vec(), type)});
}

constexpr NamedRule kRules[] = {
    {"aten._batch_norm_with_update.default", batchNormWithUpdate},
    {"aten._fused_rms_norm.default", fusedRmsNorm},
    {"aten._fused_rms_norm_backward.default", fusedRmsNormBackward},
    {"aten._native_batch_norm_legit.default", batchNorm},
    {"aten._native_batch_norm_legit.no_stats", batchNormWithoutStatistics},
    {"aten._safe_softmax.default", safeSoftmax},
    {"aten.batch_norm_backward.default", updatingBatchNormBackward},
    {"aten.cudnn_batch_norm.default", cudnnBatchNorm},
    {"aten.cudnn_batch_norm_backward.default", cudnnBatchNormBackward},
    {"aten.native_batch_norm.default", batchNorm},
    {"aten.native_batch_norm_backward.default", batchNormBackward},
    {"aten.native_group_norm.default", groupNorm},
    {"aten.native_group_norm_backward.default", groupNormBackward},
    {"aten.native_layer_norm.default", layerNorm},
    {"aten.native_layer_norm_backward.default", layerNormBackward},
};

}  // namespace

llvm::ArrayRef<NamedRule> normRules() { return kRules; }

}  // namespace stowage::runtime
