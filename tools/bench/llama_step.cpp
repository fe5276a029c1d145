// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/llama_step.h"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace stowage::tools {

namespace {

using ir::DType;
using ir::Role;
using ir::ValueId;
using Sizes = llvm::SmallVector<int64_t, 4>;

/// What forward leaves for backward, by layer.
struct Layer {
  ValueId in, middle;                      // of the residual stream
  ValueId normed, normed2, scale, scale2;  // scales: reciprocal roots
  ValueId query, key, value, attended, logSums;
  ValueId gate, up, activated, product;
};

struct Weights {
  ValueId norm, norm2, query, key, value, out, gate, up, down;
};

class StepMaker {
 public:
  explicit StepMaker(const LlamaShape& shape) : shape_(shape), builder_("llama") {}

  ir::Graph make() {
    const int64_t h = shape_.hidden;
    embedding_ = weight("embedding", {shape_.vocabulary, h});
    for (int i = 0; i < shape_.layers; ++i) makeWeights("layers." + std::to_string(i) + ".");
    finalNorm_ = weight("norm", {h});
    head_ = weight("head", {shape_.vocabulary, h});
    const ValueId tokens = declare("tokens", Role::kInput, DType::kI64, {shape_.tokens});
    phase_ = ir::Phase::kForward;
    ValueId x = op("aten.embedding.default", {embedding_, tokens}, {shape_.tokens, h});
    for (const Weights& weights : weights_) x = forward(x, weights);
    backwardFromLoss(x, tokens);
    phase_ = ir::Phase::kOptimizer;
    for (const auto& [value, gradient] : gradients_) update(value, gradient);
    return std::move(builder_).finish();
  }

 private:
  ValueId declare(const std::string& name, Role role, DType dtype, Sizes sizes) {
    ir::TensorType type{.dtype = dtype, .sizes = sizes, .strides = {}};
    type.strides.resize(sizes.size());
    int64_t stride = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
      type.strides[i] = stride;
      stride *= sizes[i];
    }
    const bool persistent = role == Role::kParameter || role == Role::kState;
    const ir::StorageId storage = builder_.addStorage(
        {.name = name, .bytes = type.extentBytes(), .role = role, .persistent = persistent});
    return builder_.addValue({.name = "v" + std::to_string(storage.index()),
                              .storage = storage,
                              .type = std::move(type)});
  }
  const ir::Value& valueOf(ValueId id) { return builder_.value(id); }
  ValueId weight(const std::string& name, Sizes sizes) {
    return declare(name, Role::kParameter, DType::kBF16, std::move(sizes));
  }
  ValueId fresh(Sizes sizes, DType dtype = DType::kBF16) {
    return declare("a" + std::to_string(count_++), Role::kActivation, dtype, std::move(sizes));
  }

  void launch(const std::string& name, const std::vector<ValueId>& args,
              const std::vector<ValueId>& results, const std::vector<ValueId>& writes = {}) {
    ir::Node node{.op = name};
    for (const ValueId value : args) node.args.push_back(ir::ValueArg{value});
    node.results.assign(results.begin(), results.end());
    for (const ValueId value : writes) node.writes.push_back({value, false});
    node.phase = phase_;
    builder_.addNode(std::move(node));
  }
  ValueId op(const std::string& name, const std::vector<ValueId>& args, Sizes sizes,
             DType dtype = DType::kBF16) {
    const ValueId result = fresh(std::move(sizes), dtype);
    launch(name, args, {result});
    return result;
  }
  ValueId like(const std::string& name, const std::vector<ValueId>& args) {
    const Sizes sizes(valueOf(args[0]).type.sizes.begin(), valueOf(args[0]).type.sizes.end());
    return op(name, args, sizes, valueOf(args[0]).type.dtype);
  }

  void makeWeights(const std::string& prefix) {
    const int64_t h = shape_.hidden;
    const int64_t keys = h / shape_.heads * shape_.keyHeads;
    weights_.push_back({.norm = weight(prefix + "norm", {h}),
                        .norm2 = weight(prefix + "norm2", {h}),
                        .query = weight(prefix + "q", {h, h}),
                        .key = weight(prefix + "k", {keys, h}),
                        .value = weight(prefix + "v", {keys, h}),
                        .out = weight(prefix + "o", {h, h}),
                        .gate = weight(prefix + "gate", {shape_.wide, h}),
                        .up = weight(prefix + "up", {shape_.wide, h}),
                        .down = weight(prefix + "down", {h, shape_.wide})});
  }

  // A transposed view of the weight, as linear layers read it.
  ValueId transposed(ValueId matrix) {
    ir::Value view = valueOf(matrix);
    std::swap(view.type.sizes[0], view.type.sizes[1]);
    std::swap(view.type.strides[0], view.type.strides[1]);
    view.name = "t" + std::to_string(count_++);
    return builder_.addValue(std::move(view));
  }
  ValueId linear(ValueId x, ValueId matrix) {
    const Sizes sizes = {valueOf(x).type.sizes[0], valueOf(matrix).type.sizes[0]};
    return op("aten.mm.default", {x, transposed(matrix)}, sizes);
  }

  std::pair<ValueId, ValueId> norm(ValueId x, ValueId gain) {
    const Sizes sizes = {shape_.tokens, shape_.hidden};
    const ValueId wide = op("aten._to_copy.default", {x}, sizes, DType::kF32);
    const ValueId squares = op("aten.pow.Tensor_Scalar", {wide}, sizes, DType::kF32);
    const ValueId mean = op("aten.mean.dim", {squares}, {shape_.tokens, 1}, DType::kF32);
    const ValueId scale = like("aten.rsqrt.default", {mean});
    const ValueId scaled = op("aten.mul.Tensor", {wide, scale}, sizes, DType::kF32);
    const ValueId narrow = op("aten._to_copy.default", {scaled}, sizes);
    return {like("aten.mul.Tensor", {narrow, gain}), scale};
  }

  ValueId rotate(ValueId x) {
    const ValueId half = like("aten.neg.default", {x});
    const ValueId turned = like("aten.cat.default", {half, x});
    const ValueId sine = like("aten.mul.Tensor", {turned});
    const ValueId cosine = like("aten.mul.Tensor", {x});
    return like("aten.add.Tensor", {cosine, sine});
  }

  ValueId forward(ValueId x, const Weights& w) {
    Layer l{.in = x};
    std::tie(l.normed, l.scale) = norm(x, w.norm);
    l.query = rotate(linear(l.normed, w.query));
    l.key = rotate(linear(l.normed, w.key));
    l.value = linear(l.normed, w.value);
    l.attended = fresh({shape_.tokens, shape_.hidden});
    l.logSums = fresh({shape_.heads, shape_.tokens}, DType::kF32);
    launch("aten._scaled_dot_product_flash_attention.default",
           {inHeads(l.query), inHeads(l.key), inHeads(l.value)}, {inHeads(l.attended), l.logSums});
    l.middle = like("aten.add.Tensor", {x, linear(l.attended, w.out)});
    std::tie(l.normed2, l.scale2) = norm(l.middle, w.norm2);
    l.gate = linear(l.normed2, w.gate);
    l.up = linear(l.normed2, w.up);
    l.activated = like("aten.silu.default", {l.gate});
    l.product = like("aten.mul.Tensor", {l.activated, l.up});
    layers_.push_back(l);
    return like("aten.add.Tensor", {l.middle, linear(l.product, w.down)});
  }

  ValueId inHeads(ValueId x) {
    ir::Value view = valueOf(x);
    const int64_t size = shape_.hidden / shape_.heads;
    const int64_t heads = view.type.sizes[1] / size;
    view.type.strides = {shape_.tokens * heads * size, size, heads * size, 1};
    view.type.sizes = {1, heads, shape_.tokens, size};
    view.name = "t" + std::to_string(count_++);
    return builder_.addValue(std::move(view));
  }

  void backwardFromLoss(ValueId x, ValueId tokens) {
    const auto [normed, scale] = norm(x, finalNorm_);
    const ValueId logits = linear(normed, head_);
    const Sizes sizes = {shape_.tokens, shape_.vocabulary};
    const ValueId wide = op("aten._to_copy.default", {logits}, sizes, DType::kF32);
    const ValueId logs = like("aten._log_softmax.default", {wide});
    const ValueId loss = op("aten.nll_loss_forward.default", {logs, tokens}, {1}, DType::kF32);
    builder_.storage(valueOf(loss).storage).output = true;
    phase_ = ir::Phase::kBackward;
    const ValueId picked = like("aten.nll_loss_backward.default", {logs, tokens});
    const ValueId soft = like("aten._log_softmax_backward_data.default", {picked, logs});
    const ValueId narrow = op("aten._to_copy.default", {soft}, sizes);
    ValueId grad = backwardLinear(narrow, normed, head_);
    grad = backwardNorm(grad, x, scale, finalNorm_);
    for (size_t i = layers_.size(); i-- > 0;) grad = backward(grad, layers_[i], weights_[i]);
    const ValueId dense = gradientOf(embedding_);
    launch("aten.embedding_dense_backward.default", {grad, tokens}, {dense});
  }

  ValueId gradientOf(ValueId weight) {
    const ir::Value& value = valueOf(weight);
    const std::string name = "grad(" + builder_.storage(value.storage).name + ")";
    const Sizes sizes(value.type.sizes.begin(), value.type.sizes.end());
    const ValueId gradient = declare(name, Role::kGradient, DType::kBF16, sizes);
    gradients_.push_back({weight, gradient});
    return gradient;
  }

  ValueId backwardLinear(ValueId grad, ValueId x, ValueId matrix) {
    launch("aten.mm.default", {transposed(grad), x}, {gradientOf(matrix)});
    return op("aten.mm.default", {grad, matrix},
              {valueOf(grad).type.sizes[0], valueOf(matrix).type.sizes[1]});
  }

  ValueId backwardNorm(ValueId grad, ValueId x, ValueId scale, ValueId gain) {
    const Sizes sizes = {shape_.tokens, shape_.hidden};
    const ValueId product = like("aten.mul.Tensor", {grad, x});
    launch("aten.sum.dim_IntList", {product}, {gradientOf(gain)});
    const ValueId gained = like("aten.mul.Tensor", {grad, gain});
    const ValueId wide = op("aten._to_copy.default", {gained}, sizes, DType::kF32);
    const ValueId direct = like("aten.mul.Tensor", {wide, scale});
    const ValueId again = op("aten.mul.Tensor", {wide, x}, sizes, DType::kF32);
    const ValueId sums = op("aten.sum.dim_IntList", {again}, {shape_.tokens, 1}, DType::kF32);
    const ValueId through = op("aten.mul.Tensor", {x, sums}, sizes, DType::kF32);
    const ValueId both = like("aten.add.Tensor", {direct, through});
    return op("aten._to_copy.default", {both}, sizes);
  }

  ValueId backward(ValueId grad, const Layer& l, const Weights& w) {
    const ValueId product = backwardLinear(grad, l.product, w.down);
    const ValueId up = like("aten.mul.Tensor", {product, l.activated});
    const ValueId activated = like("aten.mul.Tensor", {product, l.up});
    const ValueId gate = like("aten.silu_backward.default", {activated, l.gate});
    const ValueId normed2 = like("aten.add.Tensor", {backwardLinear(gate, l.normed2, w.gate),
                                                     backwardLinear(up, l.normed2, w.up)});
    const ValueId middle =
        like("aten.add.Tensor", {backwardNorm(normed2, l.middle, l.scale2, w.norm2), grad});
    const ValueId attended = backwardLinear(middle, l.attended, w.out);
    const ValueId query = like("aten.empty_like.default", {l.query});
    const ValueId key = like("aten.empty_like.default", {l.key});
    const ValueId value = like("aten.empty_like.default", {l.value});
    launch("aten._scaled_dot_product_flash_attention_backward.default",
           {inHeads(attended), inHeads(l.query), inHeads(l.key), inHeads(l.value),
            inHeads(l.attended), l.logSums},
           {}, {query, key, value});
    const ValueId fromQuery = backwardLinear(rotate(query), l.normed, w.query);
    const ValueId fromKey = backwardLinear(rotate(key), l.normed, w.key);
    const ValueId fromValue = backwardLinear(value, l.normed, w.value);
    const ValueId sum = like("aten.add.Tensor", {fromQuery, fromKey});
    const ValueId normed = like("aten.add.Tensor", {sum, fromValue});
    return like("aten.add.Tensor", {backwardNorm(normed, l.in, l.scale, w.norm), middle});
  }

  void update(ValueId weight, ValueId gradient) {
    const std::string name = builder_.storage(valueOf(weight).storage).name;
    const Sizes sizes(valueOf(weight).type.sizes.begin(), valueOf(weight).type.sizes.end());
    const ValueId m = declare("m(" + name + ")", Role::kState, DType::kF32, sizes);
    const ValueId v = declare("v(" + name + ")", Role::kState, DType::kF32, sizes);
    launch("aten._fused_adamw_.default", {weight, gradient, m, v}, {}, {weight, m, v});
  }

  LlamaShape shape_;
  ir::GraphBuilder builder_;
  ir::Phase phase_ = ir::Phase::kForward;
  int count_ = 0;
  ValueId embedding_, finalNorm_, head_;
  std::vector<Weights> weights_;
  std::vector<Layer> layers_;
  std::vector<std::pair<ValueId, ValueId>> gradients_;
};

}  // namespace

ir::Graph makeLlamaStep(const LlamaShape& shape) { return StepMaker(shape).make(); }

}  // namespace stowage::tools
