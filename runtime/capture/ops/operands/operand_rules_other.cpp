// SPDX-License-Identifier: Apache-2.0
//
// Attention, transforms and what else takes operands on trust.
#include <algorithm>

#include "runtime/capture/ops/operand_checks.h"

namespace stowage::runtime {
namespace {

// [batch, heads, length, head size], the elements of a head one behind the other.
void checkAttention(const TracedCall& call) {
  const Operands operands(call);
  const at::Tensor query = operands.tensor("query");
  const at::Tensor key = operands.tensor("key"), value = operands.tensor("value");
  for (const std::string_view name : {"query", "key", "value"}) {
    operands.checkDimensions(name, 4, 4);
    TORCH_CHECK(operands.tensor(name).stride(-1) == 1 || operands.tensor(name).size(-1) == 1,
                "found ", name, " with strides ", operands.tensor(name).strides(),
                ", expected 1 in the last dimension");
    TORCH_CHECK(operands.tensor(name).scalar_type() == query.scalar_type(), "found ", name,
                " of type ", operands.tensor(name).scalar_type(), ", expected ",
                query.scalar_type(), " as of query");
  }
  TORCH_CHECK(key.size(0) == query.size(0) && key.size(3) == query.size(3) && key.size(1) > 0 &&
                  query.size(1) % key.size(1) == 0,
              "found key of sizes ", key.sizes(), ", expected batch and head size of query's ",
              query.sizes(), " and heads that divide its heads");
  TORCH_CHECK(value.sizes().slice(0, 3) == key.sizes().slice(0, 3), "found value of sizes ",
              value.sizes(), ", expected batch, heads and length of key's ", key.sizes());
}

void checkCpuAttention(const TracedCall& call) {
  checkAttention(call);
  const Operands operands(call);
  for (const std::string_view name : {"query", "key"}) {
    const at::IntArrayRef sizes = operands.tensor(name).sizes();
    TORCH_CHECK(operands.tensor(name).numel() > 0, "found ", name, " of sizes ", sizes,
                ", expected elements");
  }
  operands.checkSizes("value", operands.tensor("key").sizes());
}

void checkCpuAttentionBackward(const TracedCall& call) {
  checkSaved(call, "aten._scaled_dot_product_flash_attention_for_cpu.default",
             {{"grad_out", 0}, {"out", 0}, {"logsumexp", 1}});
  for (const std::string_view name : {"out", "logsumexp"}) Operands(call).checkNotExpanded(name);
}

void checkTransformDims(const Operands& operands) {
  const at::Tensor self = operands.tensor("self");
  std::vector<int64_t> dims = operands.at("dim").toIntVector();
  for (int64_t& dim : dims) {
    TORCH_CHECK(dim >= -self.dim() && dim < self.dim(), "found dim ", dim, " of a tensor with ",
                self.dim(), " dimensions");
    if (dim < 0) dim += self.dim();
  }
  std::sort(dims.begin(), dims.end());
  TORCH_CHECK(std::adjacent_find(dims.begin(), dims.end()) == dims.end(),
              "found a dimension twice in dim");
}

void checkSomeDim(const Operands& operands) {
  TORCH_CHECK(!operands.at("dim").toIntVector().empty(), "found no dim, expected at least one");
}

void checkTransform(const TracedCall& call) { checkTransformDims(Operands(call)); }

void checkTransformOfReal(const TracedCall& call) {
  checkTransformDims(Operands(call));
  checkSomeDim(Operands(call));
}

void checkTransformToReal(const TracedCall& call) {
  const Operands operands(call);
  checkTransformDims(operands);
  checkSomeDim(operands);
  const int64_t dim = operands.at("dim").toIntVector().back();
  const int64_t length = operands.at("last_dim_size").toInt();
  const at::Tensor self = operands.tensor("self");
  TORCH_CHECK(length >= 1 && self.size(dim) == length / 2 + 1, "found ", self.size(dim),
              " elements in dimension ", dim, ", expected half of last_dim_size ", length,
              " and one");
}

void checkReflectors(const TracedCall& call) { Operands(call).checkDimensions("input", 2, 64); }

void checkRotation(const TracedCall& call) { Operands(call).checkListLength("dims", 2); }

void checkShuffle(const TracedCall& call) {
  const int64_t factor = Operands(call).at("upscale_factor").toInt();
  TORCH_CHECK(factor >= 1 && factor <= INT16_MAX, "found upscale_factor ", factor,
              ", expected 1 to ", INT16_MAX);
}

/// The kernel cannot walk over a tensor that is one element.
void checkMedian(const TracedCall& call) {
  const at::Tensor self = Operands(call).tensor("self");
  const at::IntArrayRef strides = self.strides();
  const bool isOneElement = self.numel() > 1 && std::all_of(strides.begin(), strides.end(),
                                                            [](int64_t s) { return s == 0; });
  TORCH_CHECK(!isOneElement, "found self made of one element, expected a place for each");
}

void checkNoise(const TracedCall& call) {
  const Operands operands(call);
  operands.checkSizes("noise", operands.tensor("self").sizes());
  operands.checkNotExpanded("noise");
}

/// The kernel looks for the largest number of the type by counting when the range has no end.
void checkRange(const TracedCall& call) {
  constexpr int64_t kMost = int64_t{1} << 62;
  for (const c10::IValue& value : call.args) {
    TORCH_CHECK(!value.isInt() || (value.toInt() > -kMost && value.toInt() < kMost),
                "found a bound of ", value.isInt() ? value.toInt() : 0,
                ", expected one within +-2^62");
  }
}

void checkUnfoldBackward(const TracedCall& call) {
  const Operands operands(call);
  std::vector<int64_t> sizes = operands.at("input_sizes").toIntVector();
  const int64_t size = operands.at("size").toInt(), step = operands.at("step").toInt();
  int64_t dim = operands.at("dim").toInt();
  const auto rank = static_cast<int64_t>(sizes.size());
  if (dim < 0) dim += rank;
  TORCH_CHECK(
      dim >= 0 && dim < rank && step >= 1 && size >= 0 && size <= sizes[static_cast<size_t>(dim)],
      "found windows of ", size, " elements every ", step, " in dimension ", dim, " of sizes ",
      sizes);
  int64_t& length = sizes[static_cast<size_t>(dim)];
  length = (length - size) / step + 1;
  sizes.push_back(size);
  operands.checkSizes("grad_in", sizes);
}

constexpr OperandRule kRules[] = {
    {"aten._fft_c2c", checkTransform},
    {"aten._fft_c2r", checkTransformToReal},
    {"aten._fft_r2c", checkTransformOfReal},
    {"aten._scaled_dot_product_flash_attention_for_cpu", checkCpuAttention},
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward", checkCpuAttentionBackward},
    {"aten.linalg_householder_product", checkReflectors},
    {"aten.median", checkMedian},
    {"aten.nanmedian", checkMedian},
    {"aten.pixel_shuffle", checkShuffle},
    {"aten.random_", checkRange},
    {"aten.rot90", checkRotation},
    {"aten.rrelu_with_noise", checkNoise},
    {"aten.rrelu_with_noise_", checkNoise},
    {"aten.unfold_backward", checkUnfoldBackward},
};

}  // namespace

llvm::ArrayRef<OperandRule> otherOperandRules() { return kRules; }

}  // namespace stowage::runtime
