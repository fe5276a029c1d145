// SPDX-License-Identifier: Apache-2.0
//
// Convolutions. libtorch's own kernel without data stops at `convolution_overrideable`.
// Layout on CUDA: results are channels last when input or weight is, as cuDNN is asked to do
// (ConvUtils.h of libtorch 2.11: cudnn_conv_suggest_memory_format). On the CPU libtorch is asked
// which kernel it takes: that depends on oneDNN and on the number of threads.
#include <ATen/Parallel.h>
#include <ATen/native/ConvUtils.h>
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

/// What cuDNN is asked for.
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

/// Arguments `first` and on: stride, padding, dilation, transposed, output_padding, groups.
Convolution convolutionAt(const TracedCall& call, size_t first) {
  return {.stride = call.args[first].toIntVector(),
          .padding = call.args[first + 1].toIntVector(),
          .dilation = call.args[first + 2].toIntVector(),
          .outputPadding = call.args[first + 4].toIntVector(),
          .transposed = call.boolean(first + 3),
          .groups = call.integer(first + 5)};
}

/// The kernel that libtorch takes on the CPU, and the format that it computes in.
struct KernelOnCpu {
  at::native::ConvBackend kernel;
  c10::MemoryFormat format;
};

/// The plan's number of threads, while it lives.
class ThreadsOfPlan {
 public:
  explicit ThreadsOfPlan(int planned) : before_(at::get_num_threads()) {
    if (planned > 0 && planned != before_) at::set_num_threads(planned);
  }
  ~ThreadsOfPlan() {
    if (at::get_num_threads() != before_) at::set_num_threads(before_);
  }
  ThreadsOfPlan(const ThreadsOfPlan&) = delete;
  ThreadsOfPlan& operator=(const ThreadsOfPlan&) = delete;

 private:
  int before_;
};

KernelOnCpu kernelOnCpu(const at::Tensor& input, const at::Tensor& weight, const Convolution& conv,
                        const ir::Target& target) {
  // A signal is made row-major first.
  if (input.dim() < 4) return {at::native::ConvBackend::Empty, c10::MemoryFormat::Contiguous};
  const ThreadsOfPlan threads(target.intraOpThreads);
  const auto sym = [](const std::vector<int64_t>& list) { return c10::fromIntArrayRefSlow(list); };
  const at::native::ConvBackend kernel = at::native::select_conv_backend(
      input, weight, std::nullopt, sym(conv.stride), sym(conv.padding), sym(conv.dilation),
      conv.transposed, sym(conv.outputPadding), conv.groups, std::nullopt);
  return {kernel, at::native::_determine_backend_memory_format(input, weight, kernel)};
}

/// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Outputs convolution(const TracedCall& call) {
  const at::Tensor& input = call.tensor(0);
  const at::Tensor& weight = call.tensor(1);
  const Convolution conv = convolutionAt(call, 3);
  const c10::MemoryFormat format = call.device.is_cpu()
                                       ? kernelOnCpu(input, weight, conv, call.target).format
                                       : formatFor(input, weight);
  return outputs({inFormat(outputSizes(input, weight, conv), format, input.scalar_type())});
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

/// Kernels without a library lay out the weight's gradient as the weight is, once it is in the
/// format that they compute in. A weight of 1 x 1 is in every format.
c10::MemoryFormat formatOfWeightGradient(const at::Tensor& weight, const KernelOnCpu& cpu) {
  const bool isPlain = cpu.kernel == at::native::ConvBackend::Slow2d ||
                       cpu.kernel == at::native::ConvBackend::SlowTranspose2d;
  return isPlain && weight.is_contiguous(cpu.format) ? weight.suggest_memory_format() : cpu.format;
}

/// convolution_backward(grad_output, input, weight, bias_sizes, ..., output_mask)
Outputs convolutionBackward(const TracedCall& call) {
  const at::Tensor& input = call.tensor(1);
  const at::Tensor& weight = call.tensor(2);
  const c10::List<bool> mask = call.args[10].toBoolList();
  c10::MemoryFormat format = formatFor(input, weight), ofWeight = format;
  if (call.device.is_cpu()) {
    const KernelOnCpu cpu = kernelOnCpu(input, weight, convolutionAt(call, 4), call.target);
    format = cpu.format;
    ofWeight = formatOfWeightGradient(weight, cpu);
  }
  const int64_t channels = call.tensor(0).size(1);
  return outputs(
      {mask[0] ? inFormat(input.sizes().vec(), format, input.scalar_type()) : undefinedOutput(),
       mask[1] ? inFormat(weight.sizes().vec(), ofWeight, weight.scalar_type()) : undefinedOutput(),
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
