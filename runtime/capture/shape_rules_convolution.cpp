// SPDX-License-Identifier: Apache-2.0
//
// Convolutions. libtorch's own kernel without data stops at `convolution_overrideable`.
// Layout: results are channels last when input or weight is, as both oneDNN and cuDNN are asked to
// do (Convolution.cpp, ConvUtils.h of libtorch 2.11: mkldnn_conv_use_channels_last,
// cudnn_conv_suggest_memory_format); checked against the real op on the CPU.
#include <c10/core/MemoryFormat.h>

#include "runtime/capture/shape_rules.h"

namespace stowage::runtime {
namespace {

struct Convolution {
  std::vector<int64_t> stride, padding, dilation, outputPadding;
  bool transposed = false;
  int64_t groups = 1;
};

int64_t at(const std::vector<int64_t>& values, size_t i) {
  return values.size() == 1 ? values[0] : values.at(i);
}

c10::MemoryFormat formatFor(const at::Tensor& input, const at::Tensor& weight) {
  const c10::MemoryFormat channelsLast =
      input.dim() == 5 ? c10::MemoryFormat::ChannelsLast3d : c10::MemoryFormat::ChannelsLast;
  const bool isChannelsLast = input.suggest_memory_format() == channelsLast ||
                              weight.suggest_memory_format() == channelsLast;
  return input.dim() >= 4 && isChannelsLast ? channelsLast : c10::MemoryFormat::Contiguous;
}

OutputTensor inFormat(const std::vector<int64_t>& sizes, c10::MemoryFormat format,
                      c10::ScalarType dtype) {
  if (format == c10::MemoryFormat::ChannelsLast) {
    return freshStrided(sizes, c10::get_channels_last_strides_2d(sizes), dtype);
  }
  if (format == c10::MemoryFormat::ChannelsLast3d) {
    return freshStrided(sizes, c10::get_channels_last_strides_3d(sizes), dtype);
  }
  return fresh(sizes, dtype);
}

std::vector<int64_t> outputSizes(const at::Tensor& input, const at::Tensor& weight,
                                 const Convolution& conv) {
  std::vector<int64_t> sizes = {input.size(0),
                                conv.transposed ? weight.size(1) * conv.groups : weight.size(0)};
  for (int64_t d = 2; d < input.dim(); ++d) {
    const auto i = static_cast<size_t>(d - 2);
    const int64_t kernel = at(conv.dilation, i) * (weight.size(d) - 1) + 1;
    const int64_t stride = at(conv.stride, i), padding = at(conv.padding, i);
    TORCH_CHECK(stride > 0, "found stride ", stride, ", expected a positive one");
    sizes.push_back(conv.transposed ? (input.size(d) - 1) * stride - 2 * padding + kernel +
                                          at(conv.outputPadding, i)
                                    : (input.size(d) + 2 * padding - kernel) / stride + 1);
  }
  return sizes;
}

/// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Outputs convolution(const TracedCall& call) {
  const at::Tensor& input = call.tensor(0);
  const at::Tensor& weight = call.tensor(1);
  const Convolution conv{.stride = call.args[3].toIntVector(),
                         .padding = call.args[4].toIntVector(),
                         .dilation = call.args[5].toIntVector(),
                         .outputPadding = call.args[7].toIntVector(),
                         .transposed = call.boolean(6),
                         .groups = call.integer(8)};
  return outputs({inFormat(outputSizes(input, weight, conv), formatFor(input, weight),
                           input.scalar_type())});
}

/// convolution_backward(grad_output, input, weight, bias_sizes, ..., output_mask)
Outputs convolutionBackward(const TracedCall& call) {
  const at::Tensor& input = call.tensor(1);
  const at::Tensor& weight = call.tensor(2);
  const c10::List<bool> mask = call.args[10].toBoolList();
  const c10::MemoryFormat format = formatFor(input, weight);
  const int64_t channels = call.tensor(0).size(1);
  return outputs({mask[0] ? inFormat(input.sizes().vec(), format, input.scalar_type())
                          : undefinedOutput(),
                  mask[1] ? inFormat(weight.sizes().vec(), format, weight.scalar_type())
                          : undefinedOutput(),
                  mask[2] ? fresh({channels}, weight.scalar_type()) : undefinedOutput()});
}

constexpr NamedRule kRules[] = {
    {"aten.convolution.default", convolution},
    {"aten.convolution_backward.default", convolutionBackward},
};

}  // namespace

llvm::ArrayRef<NamedRule> convolutionRules() { return kRules; }

}  // namespace stowage::runtime
