// SPDX-License-Identifier: Apache-2.0
//
// Normalisations and softmax. Statistics of a layer norm have the input's sizes with ones in the
// normalised dimensions; on the CPU their dtype is the parameters' (float for a bfloat16 input with
// float parameters), on CUDA it is float for half precision inputs.
#include "runtime/capture/shape_rules.h"

namespace stowage::runtime {
namespace {

using c10::ScalarType;

bool isHalf(ScalarType dtype) { return dtype == ScalarType::BFloat16 || dtype == ScalarType::Half; }

ScalarType layerNormStatistics(const TracedCall& call) {
  const ScalarType input = call.tensor(0).scalar_type();
  if (call.device.is_cuda()) return isHalf(input) ? ScalarType::Float : input;
  const bool mixed = call.hasTensor(2) && call.tensor(2).scalar_type() != input;
  return mixed ? ScalarType::Float : input;
}

/// native_layer_norm(input, normalized_shape, weight?, bias?, eps) -> output, mean, rstd
Outputs nativeLayerNorm(const TracedCall& call) {
  const at::Tensor& input = call.tensor(0);
  const auto normalised = static_cast<int64_t>(call.args[1].toIntVector().size());
  llvm::SmallVector<int64_t, 4> statistics(input.sizes().begin(), input.sizes().end());
  for (int64_t dim = input.dim() - normalised; dim < input.dim(); ++dim)
    statistics[static_cast<size_t>(dim)] = 1;
  const ScalarType dtype = layerNormStatistics(call);
  return outputs({fresh({input.sizes().data(), input.sizes().size()}, input.scalar_type()),
                  fresh(statistics, dtype), fresh(statistics, dtype)});
}

OutputTensor contiguousLike(const at::Tensor& tensor) {
  return fresh({tensor.sizes().data(), tensor.sizes().size()}, tensor.scalar_type());
}

/// native_layer_norm_backward(grad, input, shape, mean, rstd, weight?, bias?, mask) -> three
/// gradients
Outputs nativeLayerNormBackward(const TracedCall& call) {
  const std::vector<bool> mask = call.args[7].toBoolList().vec();
  return outputs(
      {mask[0] ? contiguousLike(call.tensor(1)) : undefinedOutput(),
       mask[1] && call.hasTensor(5) ? contiguousLike(call.tensor(5)) : undefinedOutput(),
       mask[2] && call.hasTensor(6) ? contiguousLike(call.tensor(6)) : undefinedOutput()});
}

/// _safe_softmax(self, dim, dtype?)
Outputs safeSoftmax(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  const ScalarType dtype = call.args[2].isNone() ? self.scalar_type() : call.args[2].toScalarType();
  return outputs({freshLike(self, dtype)});
}

constexpr NamedRule kRules[] = {
    {"aten._safe_softmax.default", safeSoftmax},
    {"aten.native_layer_norm.default", nativeLayerNorm},
    {"aten.native_layer_norm_backward.default", nativeLayerNormBackward}};

}  // namespace

llvm::ArrayRef<NamedRule> normRules() { return kRules; }

}  // namespace stowage::runtime
