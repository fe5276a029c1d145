// SPDX-License-Identifier: Apache-2.0
//
// Pooling, padding, sampling, folding and shuffling of images. What keeps channels last differs
// from op to op and from CPU to CUDA; each row of the table was run on both (an H200,
// libtorch 2.11). Pooling in two dimensions, adaptive max pooling, average pooling and resampling
// need no rule.
#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {
namespace {

OutputTensor like(const at::Tensor& tensor, std::vector<int64_t> sizes) {
  return inFormat(sizes, tensor.suggest_memory_format(), tensor.scalar_type());
}

/// In the format of `tensor` on the CPU, row-major on CUDA.
OutputTensor likeOnCpu(const TracedCall& call, const at::Tensor& tensor,
                       std::vector<int64_t> sizes) {
  return call.device.is_cuda() ? fresh(sizes, tensor.scalar_type()) : like(tensor, sizes);
}

/// `sizes` with its last dimensions set.
std::vector<int64_t> withLast(const at::Tensor& tensor, llvm::ArrayRef<int64_t> last) {
  std::vector<int64_t> sizes = tensor.sizes().vec();
  TORCH_CHECK(sizes.size() > last.size(), "found an image of ", sizes.size(), " dimensions");
  std::copy(last.begin(), last.end(), sizes.end() - static_cast<std::ptrdiff_t>(last.size()));
  return sizes;
}

/// reflection_pad2d(self, padding) and its like; padding starts with the last dimension.
Outputs pad(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  const std::vector<int64_t> padding = call.args[1].toIntVector();
  std::vector<int64_t> sizes = self.sizes().vec();
  for (size_t i = 0; i < padding.size(); ++i) {
    TORCH_CHECK(i / 2 < sizes.size(), "found more padding than dimensions");
    sizes[sizes.size() - 1 - i / 2] += padding[i];
  }
  return outputs({likeOnCpu(call, self, sizes)});
}
/// reflection_pad2d_backward(grad, self, padding) and its like.
Outputs padBackward(const TracedCall& call) {
  const at::Tensor& self = call.tensor(1);
  return outputs({likeOnCpu(call, self, self.sizes().vec())});
}

/// _adaptive_avg_pool2d(self, size): keeps channels last; in three dimensions it does not.
Outputs adaptiveAverage2d(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  return outputs({like(self, withLast(self, call.args[1].toIntVector()))});
}
Outputs adaptiveAverage3d(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  return outputs({fresh(withLast(self, call.args[1].toIntVector()), self.scalar_type())});
}
/// _adaptive_avg_pool2d_backward(grad, self)
Outputs inFormatOfSecond(const TracedCall& call) {
  return outputs({freshInFormat(call.tensor(1))});
}
Outputs contiguousLikeSecond(const TracedCall& call) {
  return outputs({freshContiguous(call.tensor(1))});
}

struct Window {
  int64_t kernel, stride, padding, dilation;
};

int64_t windowsIn(int64_t length, const Window& window, bool roundUp) {
  TORCH_CHECK(window.stride > 0, "found stride ", window.stride, ", expected a positive one");
  const int64_t room = length + 2 * window.padding - window.dilation * (window.kernel - 1) - 1;
  int64_t count = (room + (roundUp ? window.stride - 1 : 0)) / window.stride + 1;
  // The last window starts inside the image or its left padding.
  if (roundUp && (count - 1) * window.stride >= length + window.padding) --count;
  return count;
}

/// max_pool3d_with_indices(self, kernel, stride, padding, dilation, ceil_mode)
Outputs maxPool3d(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  const auto listAt = [&](size_t argument, size_t i) {
    const std::vector<int64_t> values = call.args[argument].toIntVector();
    return values.size() == 1 ? values[0] : values.at(i);
  };
  const size_t strides = call.args[2].toIntVector().empty() ? 1 : 2;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < 3; ++i) {
    const Window window = {.kernel = listAt(1, i),
                           .stride = listAt(strides, i),
                           .padding = listAt(3, i),
                           .dilation = listAt(4, i)};
    sizes.push_back(windowsIn(self.size(static_cast<int64_t>(i) - 3), window, call.boolean(5)));
  }
  const OutputTensor values = like(self, withLast(self, sizes));
  OutputTensor where = values;
  where.shape.dtype = c10::kLong;
  return outputs({values, where});
}

/// max_unpool2d(self, indices, size), max_unpool3d(self, indices, size, ...)
Outputs maxUnpool2d(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  return outputs({likeOnCpu(call, self, withLast(self, call.args[2].toIntVector()))});
}
Outputs maxUnpool3d(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  return outputs({fresh(withLast(self, call.args[2].toIntVector()), self.scalar_type())});
}

/// grid_sampler_2d(input [n, c, ...], grid [n, ..., dims], ...)
Outputs sample(const TracedCall& call) {
  const at::Tensor& input = call.tensor(0);
  const at::Tensor& grid = call.tensor(1);
  std::vector<int64_t> sizes = {input.size(0), input.size(1)};
  for (int64_t d = 1; d + 1 < grid.dim(); ++d) sizes.push_back(grid.size(d));
  return outputs({fresh(sizes, input.scalar_type())});
}
/// grid_sampler_2d_backward(grad, input, grid, ..., mask)
Outputs sampleBackward(const TracedCall& call) {
  const bool wantsInput = call.args[6].toBoolList()[0];
  return outputs({wantsInput ? freshContiguous(call.tensor(1)) : undefinedOutput(),
                  freshContiguous(call.tensor(2))});
}
/// cudnn_grid_sampler_backward(input, grid, grad) (GridSampler.cpp in cudnn)
Outputs cudnnSampleBackward(const TracedCall& call) {
  return outputs({freshContiguous(call.tensor(0)), freshContiguous(call.tensor(1))});
}

/// im2col(self [n?, c, h, w], kernel, dilation, padding, stride) -> [n?, c * kernel, windows]
Outputs unfold(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4, "found an image of ", self.dim(),
              " dimensions, expected 3 or 4");
  const auto listAt = [&](size_t argument) { return call.args[argument].toIntVector(); };
  const std::vector<int64_t> kernel = listAt(1);
  int64_t windows = 1;
  for (size_t i = 0; i < 2; ++i) {
    const Window window = {.kernel = kernel.at(i),
                           .stride = listAt(4).at(i),
                           .padding = listAt(3).at(i),
                           .dilation = listAt(2).at(i)};
    windows *= windowsIn(self.size(static_cast<int64_t>(i) - 2), window, false);
  }
  std::vector<int64_t> sizes = {self.size(-3) * kernel[0] * kernel[1], windows};
  if (self.dim() == 4) sizes.insert(sizes.begin(), self.size(0));
  return outputs({fresh(sizes, self.scalar_type())});
}
/// col2im(self [n?, c * kernel, windows], size, kernel, ...): made in memory of the columns' size.
Outputs fold(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  const std::vector<int64_t> size = call.args[1].toIntVector();
  const std::vector<int64_t> kernel = call.args[2].toIntVector();
  std::vector<int64_t> sizes = {self.size(-2) / (kernel.at(0) * kernel.at(1)), size.at(0),
                                size.at(1)};
  if (self.dim() == 3) sizes.insert(sizes.begin(), self.size(0));
  OutputTensor image = fresh(sizes, self.scalar_type());
  image.storageBytes = static_cast<int64_t>(self.nbytes());
  return outputs({image});
}

/// pixel_shuffle(self [..., c * f * f, h, w], f), pixel_unshuffle(self, f)
Outputs shufflePixels(const TracedCall& call, bool apart) {
  const at::Tensor& self = call.tensor(0);
  const int64_t factor = call.integer(1);
  TORCH_CHECK(self.dim() >= 3 && factor > 0, "found ", self.dim(), " dimensions and factor ",
              factor, ", expected at least 3 and a positive one");
  std::vector<int64_t> sizes = self.sizes().vec();
  int64_t* last = sizes.data() + sizes.size() - 3;
  last[0] = apart ? last[0] / (factor * factor) : last[0] * factor * factor;
  for (const int i : {1, 2}) last[i] = apart ? last[i] * factor : last[i] / factor;
  return outputs(
      {self.dim() == 4 ? likeOnCpu(call, self, sizes) : fresh(sizes, self.scalar_type())});
}
Outputs pixelShuffle(const TracedCall& call) { return shufflePixels(call, true); }
Outputs pixelUnshuffle(const TracedCall& call) {
  // With no element the CPU returns a copy of another shape.
  TORCH_CHECK(call.tensor(0).numel() > 0, "found an image without elements");
  return shufflePixels(call, false);
}

/// channel_shuffle(self, groups)
Outputs channelShuffle(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  TORCH_CHECK(call.integer(1) > 1 || !call.device.is_cuda(),
              "shuffles one group, which CUDA answers with a view; leave it out");
  return outputs({likeOnCpu(call, self, self.sizes().vec())});
}

constexpr NamedRule kRules[] = {
    {"aten._adaptive_avg_pool2d.default", adaptiveAverage2d},
    {"aten._adaptive_avg_pool2d_backward.default", inFormatOfSecond},
    {"aten._adaptive_avg_pool3d.default", adaptiveAverage3d},
    {"aten._adaptive_avg_pool3d_backward.default", contiguousLikeSecond},
    {"aten.channel_shuffle.default", channelShuffle},
    {"aten.col2im.default", fold},
    {"aten.cudnn_grid_sampler.default", sample},
    {"aten.cudnn_grid_sampler_backward.default", cudnnSampleBackward},
    {"aten.grid_sampler_2d.default", sample},
    {"aten.grid_sampler_2d_backward.default", sampleBackward},
    {"aten.grid_sampler_3d.default", sample},
    {"aten.grid_sampler_3d_backward.default", sampleBackward},
    {"aten.im2col.default", unfold},
    {"aten.max_pool3d_with_indices.default", maxPool3d},
    {"aten.max_pool3d_with_indices_backward.default", inFormatOfSecond},
    {"aten.max_unpool2d.default", maxUnpool2d},
    {"aten.max_unpool3d.default", maxUnpool3d},
    {"aten.native_channel_shuffle.default", channelShuffle},
    {"aten.pixel_shuffle.default", pixelShuffle},
    {"aten.pixel_unshuffle.default", pixelUnshuffle},
    {"aten.reflection_pad2d.default", pad},
    {"aten.reflection_pad2d_backward.default", padBackward},
    {"aten.reflection_pad3d.default", pad},
    {"aten.reflection_pad3d_backward.default", padBackward},
    {"aten.replication_pad2d.default", pad},
    {"aten.replication_pad2d_backward.default", padBackward},
    {"aten.replication_pad3d.default", pad},
    {"aten.replication_pad3d_backward.default", padBackward},
};

}  // namespace

llvm::ArrayRef<NamedRule> imageRules() { return kRules; }

}  // namespace stowage::runtime
