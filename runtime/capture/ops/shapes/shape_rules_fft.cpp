// SPDX-License-Identifier: Apache-2.0
//
// Fourier transforms. libtorch's CPU kernels (mkl/SpectralOps.cpp of libtorch 2.11) bring the
// dimensions that are not transformed to the front, ordered by the operand's strides, transform a
// row-major copy and permute its dimensions back: the result keeps that permuted layout.
// Checked against the real ops on the CPU. cuFFT lays results out in its own way: no rule.
#include <ATen/Context.h>
#include <c10/core/WrapDimMinimal.h>

#include <algorithm>
#include <numeric>

#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {
namespace {

using Dims = std::vector<int64_t>;

void checkKnown() {
  TORCH_CHECK_NOT_IMPLEMENTED(at::hasMKL(),
                              "this libtorch is built without MKL, whose layouts are known here");
}

Dims dimsOf(const TracedCall& call) {
  Dims dims = call.args[1].toIntVector();
  for (int64_t& dim : dims) dim = c10::maybe_wrap_dim(dim, call.tensor(0).dim());
  return dims;
}

/// Outermost first, as libtorch orders them: dimensions of equal strides keep their order.
template <typename Iterator>
void sortByStride(const Dims& strides, Iterator begin, Iterator end) {
  std::sort(begin, end, [&](int64_t a, int64_t b) {
    return strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)];
  });
}

/// One transform of an operand with `strides` over `dims`, which are in the order of the kernel.
OutputTensor transformed(const Dims& strides, const Dims& sizes, const Dims& dims,
                         c10::ScalarType dtype) {
  Dims order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto batchEnd = std::partition(order.begin(), order.end(), [&](int64_t dim) {
    return std::find(dims.begin(), dims.end(), dim) == dims.end();
  });
  sortByStride(strides, order.begin(), batchEnd);
  std::copy(dims.begin(), dims.end(), batchEnd);
  Dims made(sizes.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const auto dim = static_cast<size_t>(order[i]);
    made[dim] = stride;
    stride *= sizes[dim];
  }
  return freshStrided(sizes, made, dtype);
}

/// _fft_r2c(self, dims, normalization, onesided)
Outputs realToComplex(const TracedCall& call) {
  checkKnown();
  const at::Tensor& self = call.tensor(0);
  Dims dims = dimsOf(call), sizes = self.sizes().vec();
  if (call.boolean(3)) {
    int64_t& last = sizes[static_cast<size_t>(dims.back())];
    last = last / 2 + 1;
  }
  const Dims strides = self.strides().vec();
  sortByStride(strides, dims.begin(), dims.end() - 1);
  return outputs({transformed(strides, sizes, dims, c10::toComplexType(self.scalar_type()))});
}

/// _fft_c2c(self, dims, normalization, forward)
OutputTensor complexToComplex(const at::Tensor& self, Dims dims) {
  if (dims.empty()) return freshLike(self);
  const Dims strides = self.strides().vec();
  sortByStride(strides, dims.begin(), dims.end());
  return transformed(strides, self.sizes().vec(), dims, self.scalar_type());
}
Outputs complexToComplex(const TracedCall& call) {
  checkKnown();
  return outputs({complexToComplex(call.tensor(0), dimsOf(call))});
}

/// _fft_c2r(self, dims, normalization, last_dim_size): all but the last one from complex to
/// complex.
Outputs complexToReal(const TracedCall& call) {
  checkKnown();
  const at::Tensor& self = call.tensor(0);
  const Dims dims = dimsOf(call);
  Dims sizes = self.sizes().vec(), strides = self.strides().vec();
  if (dims.size() > 1) {
    const auto& shape = complexToComplex(self, {dims.begin(), dims.end() - 1}).shape;
    strides.assign(shape.strides.begin(), shape.strides.end());
  }
  sizes[static_cast<size_t>(dims.back())] = call.integer(3);
  return outputs(
      {transformed(strides, sizes, {dims.back()}, c10::toRealValueType(self.scalar_type()))});
}

constexpr bool kOnlyForCpu = true;
constexpr NamedRule kRules[] = {
    {"aten._fft_c2c.default", complexToComplex, kOnlyForCpu},
    {"aten._fft_c2r.default", complexToReal, kOnlyForCpu},
    {"aten._fft_r2c.default", realToComplex, kOnlyForCpu},
};

}  // namespace

llvm::ArrayRef<NamedRule> fftRules() { return kRules; }

}  // namespace stowage::runtime
