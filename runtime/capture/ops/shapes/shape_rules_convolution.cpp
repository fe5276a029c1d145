// SPDX-License-Identifier: Apache-2.0
//
// Convolutions. libtorch's own kernel without data stops at `convolution_overrideable`.
// Layout: results are channels last when input or weight is, as both oneDNN and cuDNN are asked to
// do (Convolution.cpp, ConvUtils.h of libtorch 2.11: mkldnn_conv_use_channels_last,
// cudnn_conv_suggest_memory_format); checked against the real op on the CPU.
#include <c10/core/MemoryFormat.h>

#include "runtime/capture/ops/shape_rules.h"

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
  return outputs(
      {inFormat(outputSizes(input, weight, conv), formatFor(input, weight), input.scalar_type())});
}

/// The lists of a convolution by a certain backend, by place in its schema; -1: it has none.
struct Places {
  int stride, padding, dilation, outputPadding, groups;
  bool transposed = false;
};

std::vector<int64_t> sizesBy(const TracedCall& call, const Places& places) {
  const auto listAt = [&](int place, int64_t otherwise) {
    return place < 0 ? std::vector<int64_t>{otherwise}
                     : call.args[static_cast<size_t>(place)].toIntVector();
  };
  const Convolution conv{
      .stride = listAt(places.stride, 1),
      .padding = listAt(places.padding, 0),
      .dilation = listAt(places.dilation, 1),
      .outputPadding = listAt(places.outputPadding, 0),
      .transposed = places.transposed,
      .groups = places.groups < 0 ? 1 : call.integer(static_cast<size_t>(places.groups))};
  return outputSizes(call.tensor(0), call.tensor(1), conv);
}

/// What cuDNN is asked for (ConvShared.cpp).
Outputs byCudnn(const TracedCall& call, const Places& places) {
  const at::Tensor& input = call.tensor(0);
  return outputs(
      {inFormat(sizesBy(call, places), formatFor(input, call.tensor(1)), input.scalar_type())});
}
/// cudnn_convolution(self, weight, padding, stride, dilation, groups, ...)
Outputs cudnnConvolution(const TracedCall& call) { return byCudnn(call, {3, 2, 4, -1, 5}); }
/// cudnn_convolution_transpose(self, weight, padding, output_padding, stride, dilation, groups,
/// ...)
Outputs cudnnTransposed(const TracedCall& call) { return byCudnn(call, {4, 2, 5, 3, 6, true}); }
/// cudnn_convolution_relu(self, weight, bias, stride, padding, dilation, groups)
Outputs cudnnRelu(const TracedCall& call) { return byCudnn(call, {3, 4, 5, -1, 6}); }
/// cudnn_convolution_add_relu(self, weight, z, alpha, bias, stride, padding, dilation, groups)
Outputs cudnnAddRelu(const TracedCall& call) { return byCudnn(call, {5, 6, 7, -1, 8}); }

/// _conv_depthwise2d, conv_depthwise3d (self, weight, kernel, bias, stride, padding, dilation),
/// which exist on CUDA alone, and slow_conv3d_forward, on the CPU alone: row-major.
Outputs depthwise(const TracedCall& call) {
  return outputs({fresh(sizesBy(call, {4, 5, 6, -1, -1}), call.tensor(0).scalar_type())});
}
Outputs slow3d(const TracedCall& call) {
  return outputs({fresh(sizesBy(call, {4, 5, -1, -1, -1}), call.tensor(0).scalar_type())});
}

/// Kept in the input's format on the CPU, row-major on CUDA.
OutputTensor slowResult(const TracedCall& call, const std::vector<int64_t>& sizes) {
  const at::Tensor& input = call.tensor(0);
  return call.device.is_cuda()
             ? fresh(sizes, input.scalar_type())
             : inFormat(sizes, input.suggest_memory_format(), input.scalar_type());
}
/// _slow_conv2d_forward(self, weight, kernel, bias, stride, padding)
Outputs slow2d(const TracedCall& call) {
  return outputs({slowResult(call, sizesBy(call, {4, 5, -1, -1, -1}))});
}
/// slow_conv_dilated2d(self, weight, kernel, bias, stride, padding, dilation)
Outputs slowDilated(const TracedCall& call) {
  return outputs({slowResult(call, sizesBy(call, {4, 5, 6, -1, -1}))});
}
/// _slow_conv2d_backward.output_mask(grad, self, weight, kernel, stride, padding, mask): the CPU
/// takes row-major tensors alone.
Outputs slow2dBackward(const TracedCall& call) {
  const c10::List<bool> mask = call.args[6].toBoolList();
  const at::Tensor& weight = call.tensor(2);
  const auto whenWanted = [&](size_t i, const OutputTensor& tensor) {
    return mask[i] ? tensor : undefinedOutput();
  };
  return outputs({whenWanted(0, freshContiguous(call.tensor(1))),
                  whenWanted(1, freshContiguous(weight)),
                  whenWanted(2, fresh({call.tensor(0).size(1)}, weight.scalar_type()))});
}

/// convolution_backward(grad_output, input, weight, bias_sizes, ..., output_mask)
Outputs convolutionBackward(const TracedCall& call) {
  const at::Tensor& input = call.tensor(1);
  const at::Tensor& weight = call.tensor(2);
  const c10::List<bool> mask = call.args[10].toBoolList();
  const c10::MemoryFormat format = formatFor(input, weight);
  const int64_t channels = call.tensor(0).size(1);
  return outputs(
      {mask[0] ? inFormat(input.sizes().vec(), format, input.scalar_type()) : undefinedOutput(),
       mask[1] ? inFormat(weight.sizes().vec(), format, weight.scalar_type()) : undefinedOutput(),
       mask[2] ? fresh({channels}, weight.scalar_type()) : undefinedOutput()});
}

constexpr NamedRule kRules[] = {
    {"aten._conv_depthwise2d.default", depthwise},
    {"aten._slow_conv2d_backward.output_mask", slow2dBackward},
    {"aten._slow_conv2d_forward.default", slow2d},
    {"aten.conv_depthwise3d.default", depthwise},
    {"aten.convolution.default", convolution},
    {"aten.convolution_backward.default", convolutionBackward},
    {"aten.cudnn_convolution.default", cudnnConvolution},
    {"aten.cudnn_convolution_add_relu.default", cudnnAddRelu},
    {"aten.cudnn_convolution_relu.default", cudnnRelu},
    {"aten.cudnn_convolution_transpose.default", cudnnTransposed},
    {"aten.slow_conv3d_forward.default", slow3d},
    {"aten.slow_conv_dilated2d.default", slowDilated},
    {"aten.slow_conv_dilated3d.default", slowDilated},
};

}  // namespace

llvm::ArrayRef<NamedRule> convolutionRules() { return kRules; }

}  // namespace stowage::runtime
