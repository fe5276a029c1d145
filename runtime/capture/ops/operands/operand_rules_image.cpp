// SPDX-License-Identifier: Apache-2.0
//
// Convolution, pooling, padding and resampling: gradients and indices look like what the forward op
// returns.
#include <cmath>

#include "runtime/capture/ops/operand_checks.h"

namespace stowage::runtime {
namespace {

constexpr auto kContiguous = SavedOperand::Layout::kContiguous;

/// Some processors' kernels read as many samples of the gradient as the input has.
void checkConvolution(const TracedCall& call) {
  checkSaved(call, "aten.convolution.default", {{"grad_output", 0}});
}
void checkMaxPool2d(const TracedCall& call) {
  checkSaved(call, "aten.max_pool2d_with_indices.default", {{"grad_output", 0}, {"indices", 1}});
}
void checkMaxPool3d(const TracedCall& call) {
  checkSaved(call, "aten.max_pool3d_with_indices.default", {{"grad_output", 0}, {"indices", 1}});
}
void checkAvgPool2d(const TracedCall& call) {
  checkSaved(call, "aten.avg_pool2d.default", {{"grad_output", 0}});
}
void checkAvgPool3d(const TracedCall& call) {
  checkSaved(call, "aten.avg_pool3d.default", {{"grad_output", 0}});
}

/// The gradient differs from the input in the `spatial` last dimensions alone.
void checkAdaptive(const TracedCall& call, int64_t spatial) {
  const Operands operands(call);
  const at::Tensor self = operands.tensor("self"), grad = operands.tensor("grad_output");
  operands.checkDimensions("self", spatial + 1, spatial + 2);
  operands.checkDimensions("grad_output", self.dim(), self.dim());
  for (int64_t dim = 0; dim < self.dim() - spatial; ++dim) {
    TORCH_CHECK(grad.size(dim) == self.size(dim), "found grad_output of sizes ", grad.sizes(),
                ", expected ", self.size(dim), " in dimension ", dim, " as in self");
  }
  TORCH_CHECK(grad.scalar_type() == self.scalar_type(), "found grad_output of type ",
              grad.scalar_type(), ", expected ", self.scalar_type());
  operands.checkSizes("indices", grad.sizes());
  if (operands.has("indices")) {
    TORCH_CHECK(operands.tensor("indices").scalar_type() == c10::kLong, "found indices of type ",
                operands.tensor("indices").scalar_type(), ", expected Long");
    operands.checkNotExpanded("indices");
  }
}
void checkAdaptive2d(const TracedCall& call) { checkAdaptive(call, 2); }
void checkAdaptive3d(const TracedCall& call) { checkAdaptive(call, 3); }

template <int kSpatial>
void checkPadding(const TracedCall& call) {
  Operands(call).checkListLength("padding", int64_t{2} * kSpatial);
}
template <int kSpatial>
void checkReflection(const TracedCall& call) {
  constexpr std::string_view kForward[] = {"aten.reflection_pad1d.default",
                                           "aten.reflection_pad2d.default",
                                           "aten.reflection_pad3d.default"};
  checkPadding<kSpatial>(call);
  checkSaved(call, kForward[kSpatial - 1], {{"grad_output", 0}});
}
template <int kSpatial>
void checkReplication(const TracedCall& call) {
  constexpr std::string_view kForward[] = {"aten.replication_pad1d.default",
                                           "aten.replication_pad2d.default",
                                           "aten.replication_pad3d.default"};
  checkPadding<kSpatial>(call);
  checkSaved(call, kForward[kSpatial - 1], {{"grad_output", 0}});
}

/// The numbers of libtorch's enumerations; a kernel leaves its result as it is for others.
void checkGridModes(const TracedCall& call) {
  const Operands operands(call);
  for (const std::string_view mode : {"interpolation_mode", "padding_mode"}) {
    const int64_t found = operands.at(mode).toInt();
    TORCH_CHECK(found >= 0 && found <= 2, "found ", mode, " ", found, ", expected 0 to 2");
  }
}
void checkGridSampler2d(const TracedCall& call) {
  checkGridModes(call);
  checkSaved(call, "aten.grid_sampler_2d.default", {{"grad_output", 0}});
}
void checkGridSampler3d(const TracedCall& call) {
  checkGridModes(call);
  checkSaved(call, "aten.grid_sampler_3d.default", {{"grad_output", 0}});
}

/// A scale is how many times larger the result is, rounded down: kernels take it for the way back
/// to the input's places.
void checkScales(const TracedCall& call) {
  const Operands operands(call);
  const bool isBackward = operands.has("grad_output");
  const std::vector<int64_t> output = operands.at("output_size").toIntVector();
  const std::vector<int64_t> input =
      isBackward ? operands.at("input_size").toIntVector() : operands.tensor("self").sizes().vec();
  TORCH_CHECK(input.size() == output.size() + 2, "found ", input.size(),
              " dimensions, expected batch, channels and ", output.size());
  static constexpr std::string_view kNames[] = {"scales_d", "scales_h", "scales_w"};
  for (size_t i = 0; i < output.size(); ++i) {
    const std::string_view name =
        output.size() == 1 ? std::string_view("scales") : kNames[3 - output.size() + i];
    const c10::IValue& scale = operands.at(name);
    if (scale.isNone()) continue;
    const double grown = static_cast<double>(input[i + 2]) * scale.toDouble();
    TORCH_CHECK(std::abs(grown - static_cast<double>(output[i])) <= 1 + 1e-6 * grown, "found ",
                name, " ", scale.toDouble(), " from ", input[i + 2], " to ", output[i],
                " elements, expected their quotient");
  }
}

/// What a window of every place of an image gives, added up again: it looks like what im2col
/// returns for that image.
void checkFold(const TracedCall& call) {
  const Operands operands(call);
  const at::Tensor self = operands.tensor("self");
  for (const std::string_view pair :
       {"output_size", "kernel_size", "dilation", "padding", "stride"}) {
    operands.checkListLength(pair, 2);
    for (const int64_t number : operands.at(pair).toIntVector()) {
      const int64_t least = pair == "padding" ? 0 : 1;
      TORCH_CHECK(number >= least && number <= INT32_MAX, "found ", pair, " with ", number,
                  ", expected ", least, " to ", INT32_MAX);
    }
  }
  operands.checkDimensions("self", 2, 3);
  const auto output = operands.at("output_size").toIntVector();
  const auto kernel = operands.at("kernel_size").toIntVector();
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes.pop_back();
  TORCH_CHECK(sizes.back() % (kernel[0] * kernel[1]) == 0, "found self of sizes ", self.sizes(),
              ", expected a multiple of the window's ", kernel[0] * kernel[1], " elements");
  sizes.back() /= kernel[0] * kernel[1];
  sizes.insert(sizes.end(), output.begin(), output.end());
  TensorShape shape;
  shape.sizes = sizes;
  shape.strides.assign(sizes.size(), 0);  // one element for all: nothing reads it
  shape.dtype = self.scalar_type();
  const at::Tensor image = makeTensor(self.storage(), shape);
  const Outputs outputs = outputsOf(call, "aten.im2col.default",
                                    {image, operands.at("kernel_size"), operands.at("dilation"),
                                     operands.at("padding"), operands.at("stride")});
  operands.checkSizes("self", outputs[0].tensors[0].shape.sizes);
}

constexpr OperandRule kRules[] = {
    {"aten._adaptive_avg_pool2d_backward", checkAdaptive2d},
    {"aten._adaptive_avg_pool3d_backward", checkAdaptive3d},
    {"aten.adaptive_max_pool2d_backward", checkAdaptive2d},
    {"aten.adaptive_max_pool3d_backward", checkAdaptive3d},
    {"aten.avg_pool2d_backward", checkAvgPool2d},
    {"aten.avg_pool3d_backward", checkAvgPool3d},
    {"aten.col2im", checkFold},
    {"aten.convolution_backward", checkConvolution},
    {"aten._upsample_nearest_exact1d", checkScales},
    {"aten._upsample_nearest_exact1d_backward", checkScales},
    {"aten._upsample_nearest_exact2d", checkScales},
    {"aten._upsample_nearest_exact2d_backward", checkScales},
    {"aten._upsample_nearest_exact3d", checkScales},
    {"aten._upsample_nearest_exact3d_backward", checkScales},
    {"aten.grid_sampler_2d", checkGridModes},
    {"aten.grid_sampler_2d_backward", checkGridSampler2d},
    {"aten.grid_sampler_3d", checkGridModes},
    {"aten.grid_sampler_3d_backward", checkGridSampler3d},
    {"aten.max_pool2d_with_indices_backward", checkMaxPool2d},
    {"aten.max_pool3d_with_indices_backward", checkMaxPool3d},
    {"aten.reflection_pad1d", checkPadding<1>},
    {"aten.reflection_pad1d_backward", checkReflection<1>},
    {"aten.reflection_pad2d", checkPadding<2>},
    {"aten.reflection_pad2d_backward", checkReflection<2>},
    {"aten.reflection_pad3d", checkPadding<3>},
    {"aten.reflection_pad3d_backward", checkReflection<3>},
    {"aten.replication_pad1d", checkPadding<1>},
    {"aten.replication_pad1d_backward", checkReplication<1>},
    {"aten.replication_pad2d", checkPadding<2>},
    {"aten.replication_pad2d_backward", checkReplication<2>},
    {"aten.replication_pad3d", checkPadding<3>},
    {"aten.replication_pad3d_backward", checkReplication<3>},
    {"aten.upsample_bicubic2d", checkScales},
    {"aten.upsample_bicubic2d_backward", checkScales},
    {"aten.upsample_bilinear2d", checkScales},
    {"aten.upsample_bilinear2d_backward", checkScales},
    {"aten.upsample_linear1d", checkScales},
    {"aten.upsample_linear1d_backward", checkScales},
    {"aten.upsample_nearest1d", checkScales},
    {"aten.upsample_nearest1d_backward", checkScales},
    {"aten.upsample_nearest2d", checkScales},
    {"aten.upsample_nearest2d_backward", checkScales},
    {"aten.upsample_nearest3d", checkScales},
    {"aten.upsample_nearest3d_backward", checkScales},
    {"aten.upsample_trilinear3d", checkScales},
    {"aten.upsample_trilinear3d_backward", checkScales},
};

}  // namespace

llvm::ArrayRef<OperandRule> imageOperandRules() { return kRules; }

}  // namespace stowage::runtime
