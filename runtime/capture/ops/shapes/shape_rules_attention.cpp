// SPDX-License-Identifier: Apache-2.0
//
// Fused attention. Queries, keys and values are [batch, heads, tokens, width].
// CPU rules are checked against the real op. Sources for CUDA, which cannot run where this is
// tested: layouts of flash, efficient and cuDNN results measured on an H200 with libtorch 2.11
// (flash and cuDNN follow the query, efficient is [batch, tokens, heads, width]; the logsumexp of
// cuDNN is [batch, heads, tokens, 1]); the rest from libtorch's _meta_registrations.py and
// attention.cu: seeds of the efficient kernel are host numbers in eager mode.
#include <algorithm>
#include <array>

#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {
namespace {

int64_t roundUpTo(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// [batch, heads, tokens, width] laid out as [batch, tokens, heads, width].
OutputTensor tokensFirst(int64_t batch, int64_t heads, int64_t tokens, int64_t width,
                         c10::ScalarType dtype) {
  return freshStrided({batch, heads, tokens, width},
                      {tokens * heads * width, width, heads * width, 1}, dtype);
}

/// The query's order of dimensions, with the width of the values.
OutputTensor likeQuery(const at::Tensor& query, int64_t width) {
  if (query.size(3) == width) return freshLike(query);
  std::array<int64_t, 4> order = {0, 1, 2, 3};
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return query.stride(a) > query.stride(b); });
  std::vector<int64_t> sizes = query.sizes().vec(), strides(4);
  sizes[3] = width;
  int64_t stride = 1;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    strides[static_cast<size_t>(*it)] = stride;
    stride *= sizes[static_cast<size_t>(*it)];
  }
  return freshStrided(sizes, strides, query.scalar_type());
}

OutputTensor onHost(OutputTensor tensor) {
  tensor.device = c10::Device(c10::kCPU);
  return tensor;
}

/// _scaled_dot_product_flash_attention_for_cpu(query, key, value, ...)
Outputs flashOnCpu(const TracedCall& call) {
  const at::Tensor& query = call.tensor(0);
  const int64_t batch = query.size(0), heads = query.size(1), tokens = query.size(2);
  const c10::ScalarType type = query.scalar_type() == c10::kDouble ? c10::kDouble : c10::kFloat;
  return outputs(
      {freshLike(query), freshStrided({batch, heads, tokens}, {tokens * heads, 1, heads}, type)});
}

/// ..._for_cpu_backward(grad_out, query, key, value, ...): gradients [batch, tokens, heads, width].
Outputs flashBackwardOnCpu(const TracedCall& call) {
  const auto gradient = [&](size_t index) {
    const at::Tensor& t = call.tensor(index);
    return tokensFirst(t.size(0), t.size(1), t.size(2), t.size(3), t.scalar_type());
  };
  return outputs({gradient(1), gradient(2), gradient(3)});
}

/// ..._backward(grad_out, query, key, value, ...): gradients in the layout of their tensors.
Outputs gradientsLikeInputs(const TracedCall& call) {
  return outputs({freshLike(call.tensor(1)), freshLike(call.tensor(2)), freshLike(call.tensor(3))});
}

/// _scaled_dot_product_flash_attention(query, key, value, dropout, causal, debug_mask, scale)
Outputs flash(const TracedCall& call) {
  const at::Tensor& query = call.tensor(0);
  Outputs all;
  all.push_back(tensorOutput(freshLike(query)));
  all.push_back(tensorOutput(fresh({query.size(0), query.size(1), query.size(2)}, c10::kFloat)));
  all.push_back(tensorOutput(undefinedOutput()));
  all.push_back(tensorOutput(undefinedOutput()));
  all.push_back(plainOutput(query.size(2)));
  all.push_back(plainOutput(call.tensor(1).size(2)));
  all.push_back(tensorOutput(fresh({2}, c10::kUInt64)));
  all.push_back(tensorOutput(fresh({}, c10::kUInt64)));
  all.push_back(tensorOutput(fresh({0}, query.scalar_type())));
  return all;
}

/// _scaled_dot_product_efficient_attention(query, key, value, bias, compute_logsumexp, ...)
Outputs efficient(const TracedCall& call) {
  const at::Tensor& query = call.tensor(0);
  const int64_t batch = query.size(0), heads = query.size(1), tokens = query.size(2);
  const int64_t padded = call.boolean(4) ? roundUpTo(tokens, 32) : 0;
  return outputs({tokensFirst(batch, heads, tokens, call.tensor(2).size(3), query.scalar_type()),
                  fresh({batch, heads, padded}, c10::kFloat), onHost(fresh({}, c10::kLong)),
                  onHost(fresh({}, c10::kLong))});
}

/// ..._efficient_attention_backward(grad_out, query, key, value, bias, out, lse, seed, offset,
/// dropout, mask, ...)
Outputs efficientBackward(const TracedCall& call) {
  const auto gradient = [&](size_t index) {
    const at::Tensor& t = call.tensor(index);
    return tokensFirst(t.size(0), t.size(1), t.size(2), t.size(3), t.scalar_type());
  };
  OutputTensor bias = undefinedOutput();
  if (call.hasTensor(4) && call.args[10].toBoolList()[3]) {
    // Rows are padded to a multiple of 16 and then cut: a view of a larger storage.
    const at::Tensor& mask = call.tensor(4);
    TORCH_CHECK(mask.dim() > 0, "found a mask without dimensions");
    std::vector<int64_t> padded = mask.sizes().vec();
    padded.back() = roundUpTo(padded.back(), 16);
    const OutputTensor whole = fresh(padded, mask.scalar_type());
    bias =
        freshStrided(mask.sizes().vec(), {whole.shape.strides.data(), whole.shape.strides.size()},
                     mask.scalar_type());
    bias.storageBytes = extentOf(whole.shape);
  }
  return outputs({gradient(1), gradient(2), gradient(3), bias});
}

/// What cuDNN's attention returns, by either name.
Outputs cudnnResults(const TracedCall& call, bool hasLogSumExp) {
  const at::Tensor& query = call.tensor(0);
  const int64_t batch = query.size(0), heads = query.size(1), tokens = query.size(2);
  Outputs all;
  all.push_back(tensorOutput(likeQuery(query, call.tensor(2).size(3))));
  all.push_back(tensorOutput(hasLogSumExp ? fresh({batch, heads, tokens, 1}, c10::kFloat)
                                          : undefinedOutput()));
  all.push_back(tensorOutput(undefinedOutput()));
  all.push_back(tensorOutput(undefinedOutput()));
  all.push_back(plainOutput(tokens));
  all.push_back(plainOutput(call.tensor(1).size(2)));
  all.push_back(tensorOutput(fresh({}, c10::kLong)));
  all.push_back(tensorOutput(fresh({}, c10::kLong)));
  all.push_back(tensorOutput(undefinedOutput()));
  return all;
}

/// _scaled_dot_product_cudnn_attention(query, key, value, bias, compute_logsumexp, dropout, ...)
Outputs cudnn(const TracedCall& call) { return cudnnResults(call, call.boolean(4)); }

// The kernels below the ops above, for code that calls them itself: [batch, tokens, heads, width].
// Batches of unequal lengths in one tensor are refused: nothing here was checked on them.

void refusePacked(const TracedCall& call, size_t lengths) {
  TORCH_CHECK(!call.hasTensor(lengths),
              "it takes sequences of unequal lengths packed into one tensor; pad them instead");
}

/// _flash_attention_forward(query, key, value, lengths?, lengths?, max_q, max_k, ...)
Outputs flashKernel(const TracedCall& call) {
  refusePacked(call, 3);
  const at::Tensor& query = call.tensor(0);
  return outputs(
      {freshLike(query), fresh({query.size(0), query.size(2), query.size(1)}, c10::kFloat),
       fresh({2}, c10::kUInt64), fresh({}, c10::kUInt64), fresh({0}, query.scalar_type())});
}
/// _flash_attention_backward(grad, query, key, value, out, lse, lengths, lengths, ...)
Outputs flashKernelBackward(const TracedCall& call) {
  refusePacked(call, 6);
  return gradientsLikeInputs(call);
}

/// _efficient_attention_forward(query, key, value, bias?, lengths?, lengths?, max_q?, max_k?,
/// dropout, mask, logsumexp, ...)
Outputs efficientKernel(const TracedCall& call) {
  refusePacked(call, 4);
  const at::Tensor& query = call.tensor(0);
  const int64_t tokens = query.size(1), heads = query.size(2);
  const int64_t padded = call.boolean(10) ? roundUpTo(tokens, 32) : 0;
  Outputs all =
      outputs({fresh({query.size(0), tokens, heads, call.tensor(2).size(3)}, query.scalar_type()),
               fresh({query.size(0), heads, padded}, c10::kFloat), onHost(fresh({}, c10::kLong)),
               onHost(fresh({}, c10::kLong))});
  all.push_back(plainOutput(tokens));
  all.push_back(plainOutput(call.tensor(1).size(1)));
  return all;
}
/// _efficient_attention_backward(grad, query, key, value, bias?, out, lengths?, lengths?, ...,
/// bias_requires_grad at 15)
Outputs efficientKernelBackward(const TracedCall& call) {
  refusePacked(call, 6);
  TORCH_CHECK(!call.boolean(15), "it asks for the gradient of a bias; use the op above it");
  return outputs({freshContiguous(call.tensor(1)), freshContiguous(call.tensor(2)),
                  freshContiguous(call.tensor(3)), undefinedOutput()});
}

/// _cudnn_attention_forward(query, key, value, bias?, lengths?, lengths?, max_q, max_k, logsumexp,
/// ...), [batch, heads, tokens, width]
Outputs cudnnKernel(const TracedCall& call) {
  refusePacked(call, 4);
  return cudnnResults(call, call.boolean(8));
}

/// _native_multi_head_attention(query, key, value, embed_dim, heads, ..., mask?, need_weights,
/// average_weights, ...): has no gradient.
Outputs multiHead(const TracedCall& call) {
  const at::Tensor& query = call.tensor(0);
  const int64_t batch = query.size(0), tokens = query.size(1);
  OutputTensor weights = undefinedOutput();
  if (call.boolean(10)) {
    weights = call.boolean(11)
                  ? fresh({batch, tokens, tokens}, query.scalar_type())
                  : fresh({batch, call.integer(4), tokens, tokens}, query.scalar_type());
  }
  return outputs({fresh({batch, tokens, call.integer(3)}, query.scalar_type()), weights});
}

constexpr NamedRule kRules[] = {
    {"aten._cudnn_attention_backward.default", gradientsLikeInputs},
    {"aten._cudnn_attention_forward.default", cudnnKernel},
    {"aten._efficient_attention_backward.default", efficientKernelBackward},
    {"aten._efficient_attention_forward.default", efficientKernel},
    {"aten._flash_attention_backward.default", flashKernelBackward},
    {"aten._flash_attention_forward.default", flashKernel},
    {"aten._native_multi_head_attention.default", multiHead},
    {"aten._scaled_dot_product_cudnn_attention.default", cudnn},
    {"aten._scaled_dot_product_cudnn_attention_backward.default", gradientsLikeInputs},
    {"aten._scaled_dot_product_efficient_attention.default", efficient},
    {"aten._scaled_dot_product_efficient_attention_backward.default", efficientBackward},
    {"aten._scaled_dot_product_flash_attention.default", flash},
    {"aten._scaled_dot_product_flash_attention_backward.default", gradientsLikeInputs},
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", flashOnCpu},
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward.default", flashBackwardOnCpu},
};

}  // namespace

llvm::ArrayRef<NamedRule> attentionRules() { return kRules; }

}  // namespace stowage::runtime
