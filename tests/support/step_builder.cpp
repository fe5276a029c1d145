// SPDX-License-Identifier: Apache-2.0
#include "tests/support/step_builder.h"

#include <cassert>

namespace stowage::tests {

using ir::Argument;
using ir::DType;
using ir::EnumArg;
using ir::Node;
using ir::NoneArg;
using ir::NumberList;
using ir::Role;
using ir::TensorType;
using ir::ValueArg;
using ir::ValueId;
using ir::ValueList;
using ir::WrappedNumberArg;

namespace {

TensorType denseType(DType dtype, const std::vector<int64_t>& sizes) {
  return {.dtype = dtype,
          .sizes = {sizes.begin(), sizes.end()},
          .strides = ir::contiguousStrides(sizes)};
}

// "native_layer_norm" of "aten.native_layer_norm.default"
std::string shortName(const std::string& op) {
  const size_t begin = op.find('.') + 1;
  return op.substr(begin, op.find('.', begin) - begin);
}

}  // namespace

StepBuilder::StepBuilder(StepOptions options)
    : options_(std::move(options)),
      builder_(options_.name, {.producer = "tests", .device = "cpu", .target = "cpu"}) {}

// --- declarations ---------------------------------------------------------------------------

ValueId StepBuilder::addStorageWithValue(ir::Storage storage, DType dtype,
                                         std::vector<int64_t> sizes) {
  const TensorType type = denseType(dtype, sizes);
  storage.bytes = type.extentBytes();
  const std::string name = uniqueName("v");
  return builder_.addValue(
      {.name = name, .storage = builder_.addStorage(std::move(storage)), .type = type});
}

ValueId StepBuilder::input(const std::string& name, DType dtype, std::vector<int64_t> sizes) {
  return addStorageWithValue({.name = name, .role = Role::kInput}, dtype, std::move(sizes));
}

Var StepBuilder::parameter(const std::string& name, std::vector<int64_t> sizes, bool frozen) {
  Var var{.value = addStorageWithValue(
              {.name = name, .role = frozen ? Role::kFrozen : Role::kParameter, .persistent = true},
              options_.dtype, std::move(sizes)),
          .index = varCount_++,
          .needsGrad = !frozen,
          .isParameter = true};
  gradients_.resize(static_cast<size_t>(varCount_));
  if (!frozen) parameters_.push_back(var);
  return var;
}

ValueId StepBuilder::buffer(const std::string& name, std::vector<int64_t> sizes, DType dtype) {
  return addStorageWithValue({.name = name, .role = Role::kBuffer, .persistent = true}, dtype,
                             std::move(sizes));
}

ir::ScalarId StepBuilder::scalar(const std::string& name, double value) {
  return builder_.addScalar({.name = name, .value = value});
}

void StepBuilder::enter(const std::string& path) { path_ = path; }

Var StepBuilder::asVar(ValueId value) {
  gradients_.emplace_back();
  return {.value = value, .index = varCount_++};
}

// --- emitting -------------------------------------------------------------------------------

std::string StepBuilder::uniqueName(const std::string& base) {
  return base + std::to_string(nameUses_[base]++);
}

ValueId StepBuilder::fresh(const std::string& op, DType dtype, std::vector<int64_t> sizes) {
  const std::string phase =
      phase_ == ir::Phase::kForward ? "" : phaseName(phase_) + std::string(":");
  return addStorageWithValue({.name = uniqueName(phase + path_ + "/" + shortName(op) + ".")}, dtype,
                             std::move(sizes));
}

ValueId StepBuilder::view(ValueId base, TensorType type) {
  const ir::StorageId storage = builder_.value(base).storage;
  const std::string name = uniqueName("v");
  return builder_.addValue({.name = name, .storage = storage, .type = std::move(type)});
}

ValueId StepBuilder::transposed(ValueId matrix) {
  const auto [entry, isNew] = transposes_.try_emplace(matrix.raw());
  if (isNew) {
    TensorType flipped = type(matrix);
    std::swap(flipped.sizes[0], flipped.sizes[1]);
    std::swap(flipped.strides[0], flipped.strides[1]);
    entry->second = view(matrix, std::move(flipped));
  }
  return entry->second;
}

ValueId StepBuilder::slice(ValueId matrix, int64_t begin, int64_t end) {
  TensorType part = type(matrix);
  part.offset += begin * part.strides[1];
  part.sizes[1] = end - begin;
  return view(matrix, std::move(part));
}

void StepBuilder::call(const std::string& op, std::vector<Argument> args,
                       std::vector<ValueId> results, std::vector<Node::Write> writes) {
  builder_.addNode({.op = op,
                    .args = std::move(args),
                    .results = {results.begin(), results.end()},
                    .writes = {writes.begin(), writes.end()},
                    .phase = phase_,
                    .scope = builder_.internScope(path_)});
}

ValueId StepBuilder::callLike(const std::string& op, std::vector<Argument> args, ValueId like) {
  const TensorType shape = type(like);
  const ValueId out = fresh(op, shape.dtype, {shape.sizes.begin(), shape.sizes.end()});
  call(op, std::move(args), {out});
  return out;
}

ValueId StepBuilder::convert(ValueId value, DType dtype) {
  const TensorType shape = type(value);
  const ValueId out = fresh("aten._to_copy", dtype, {shape.sizes.begin(), shape.sizes.end()});
  call("aten._to_copy.default",
       {ValueArg{value}, EnumArg{"dtype", dtypeName(dtype)}, NoneArg{}, NoneArg{}, NoneArg{}, false,
        NoneArg{}},
       {out});
  return out;
}

Var StepBuilder::result(ValueId value, std::vector<Var> inputs,
                        std::function<void(ValueId)> backward) {
  Var out = asVar(value);
  for (const Var& in : inputs) out.needsGrad = out.needsGrad || in.needsGrad;
  if (out.needsGrad) {
    tape_.push_back({.output = out.index, .path = path_, .backward = std::move(backward)});
  }
  return out;
}

// --- forward --------------------------------------------------------------------------------

Var StepBuilder::linear(Var x, Var weight, std::optional<Var> bias) {
  const ValueId weightT = transposed(weight.value);
  const std::string op = bias ? "aten.addmm.default" : "aten.mm.default";
  const ValueId out = fresh(op, options_.dtype, {rows(x), type(weight.value).sizes[0]});
  if (bias) {
    call(op, {ValueArg{bias->value}, ValueArg{x.value}, ValueArg{weightT}, int64_t{1}, int64_t{1}},
         {out});
  } else {
    call(op, {ValueArg{x.value}, ValueArg{weightT}}, {out});
  }
  std::vector<Var> inputs = {x, weight};
  if (bias) inputs.push_back(*bias);
  return result(out, inputs, [this, x, weight, bias](ValueId gradient) {
    if (x.needsGrad) {
      accumulate(x,
                 callLike("aten.mm.default", {ValueArg{gradient}, ValueArg{weight.value}}, x.value),
                 true);
    }
    if (weight.needsGrad) {
      accumulate(weight,
                 callLike("aten.mm.default", {ValueArg{transposed(gradient)}, ValueArg{x.value}},
                          weight.value),
                 true);
    }
    if (bias && bias->needsGrad) {
      const ValueId sum =
          callLike("aten.sum.dim_IntList",
                   {ValueArg{gradient}, NumberList{int64_t{0}}, false, NoneArg{}}, bias->value);
      accumulate(*bias, sum, true);
    }
  });
}

Var StepBuilder::pointwise(const std::string& op, Var x) {
  std::vector<Argument> extra;
  if (op == "gelu") extra.emplace_back(std::string("none"));
  std::vector<Argument> args = {ValueArg{x.value}};
  args.insert(args.end(), extra.begin(), extra.end());
  const ValueId out = callLike("aten." + op + ".default", args, x.value);
  return result(out, {x}, [this, op, x, out, extra](ValueId gradient) {
    // What the derivative looks at: the result where that is enough, else the operand.
    const bool usesResult = op == "relu" || op == "tanh" || op == "sigmoid";
    std::vector<Argument> backwardArgs = {ValueArg{gradient}, ValueArg{usesResult ? out : x.value}};
    backwardArgs.insert(backwardArgs.end(), extra.begin(), extra.end());
    if (op == "relu") backwardArgs.emplace_back(int64_t{0});
    const std::string name = op == "relu" ? "threshold" : op;
    accumulate(x, callLike("aten." + name + "_backward.default", backwardArgs, x.value), true);
  });
}

Var StepBuilder::reluInPlace(Var x) {
  call("aten.relu_.default", {ValueArg{x.value}}, {x.value}, {{.value = x.value}});
  return result(x.value, {x}, [this, x](ValueId gradient) {
    accumulate(x,
               callLike("aten.threshold_backward.default",
                        {ValueArg{gradient}, ValueArg{x.value}, int64_t{0}}, x.value),
               true);
  });
}

Var StepBuilder::add(Var a, Var b) {
  const ValueId out =
      callLike("aten.add.Tensor", {ValueArg{a.value}, ValueArg{b.value}, int64_t{1}}, a.value);
  return result(out, {a, b}, [this, a, b](ValueId gradient) {
    accumulate(a, gradient, false);
    accumulate(b, gradient, false);
  });
}

Var StepBuilder::multiply(Var a, Var b) {
  const auto product = [this](ValueId left, ValueId right) {
    return callLike("aten.mul.Tensor", {ValueArg{left}, ValueArg{right}}, left);
  };
  const ValueId out = product(a.value, b.value);
  return result(out, {a, b}, [this, a, b, product](ValueId gradient) {
    if (a.needsGrad) accumulate(a, product(gradient, b.value), true);
    if (b.needsGrad) accumulate(b, product(gradient, a.value), true);
  });
}

Var StepBuilder::scale(Var x, ValueId row) {
  const ValueId out = callLike("aten.mul.Tensor", {ValueArg{x.value}, ValueArg{row}}, x.value);
  return result(out, {x}, [this, x, row](ValueId gradient) {
    accumulate(x, callLike("aten.mul.Tensor", {ValueArg{gradient}, ValueArg{row}}, x.value), true);
  });
}

Var StepBuilder::softmax(Var x) {
  const ValueId out =
      callLike("aten._softmax.default", {ValueArg{x.value}, int64_t{1}, false}, x.value);
  return result(out, {x}, [this, x, out](ValueId gradient) {
    accumulate(x,
               callLike("aten._softmax_backward_data.default",
                        {ValueArg{gradient}, ValueArg{out}, int64_t{1},
                         EnumArg{"dtype", dtypeName(type(x.value).dtype)}},
                        x.value),
               true);
  });
}

Var StepBuilder::dropout(Var x, double probability) {
  const std::string op = "aten.native_dropout.default";
  const ValueId out = fresh(op, type(x.value).dtype, {rows(x), columnCount(x)});
  const ValueId mask = fresh(op, DType::kBool, {rows(x), columnCount(x)});
  call(op, {ValueArg{x.value}, probability, true}, {out, mask});
  return result(out, {x}, [this, x, mask, probability](ValueId gradient) {
    accumulate(x,
               callLike("aten.native_dropout_backward.default",
                        {ValueArg{gradient}, ValueArg{mask}, 1 / (1 - probability)}, x.value),
               true);
  });
}

Var StepBuilder::layerNorm(Var x, Var weight, Var bias) {
  const std::string op = "aten.native_layer_norm.default";
  const DType dtype = type(x.value).dtype;
  const NumberList shape = {columnCount(x)};
  const ValueId out = fresh(op, dtype, {rows(x), columnCount(x)});
  const ValueId mean = fresh(op, dtype, {rows(x), 1});
  const ValueId rstd = fresh(op, dtype, {rows(x), 1});
  call(op, {ValueArg{x.value}, shape, ValueArg{weight.value}, ValueArg{bias.value}, 1e-5},
       {out, mean, rstd});
  return result(out, {x, weight, bias}, [=, this](ValueId gradient) {
    const std::string name = "aten.native_layer_norm_backward.default";
    const auto grad = [&](Var of) {
      const TensorType like = type(of.value);
      return of.needsGrad ? fresh(name, like.dtype, {like.sizes.begin(), like.sizes.end()})
                          : ValueId();
    };
    const std::vector<ValueId> grads = {grad(x), grad(weight), grad(bias)};
    call(name,
         {ValueArg{gradient}, ValueArg{x.value}, shape, ValueArg{mean}, ValueArg{rstd},
          ValueArg{weight.value}, ValueArg{bias.value},
          NumberList{x.needsGrad, weight.needsGrad, bias.needsGrad}},
         grads);
    if (x.needsGrad) accumulate(x, grads[0], true);
    if (weight.needsGrad) accumulate(weight, grads[1], true);
    if (bias.needsGrad) accumulate(bias, grads[2], true);
  });
}

BatchNormState StepBuilder::batchNormState(const std::string& name, int64_t width) {
  return {.runningMean = buffer(name + ".running_mean", {width}, options_.dtype),
          .runningVar = buffer(name + ".running_var", {width}, options_.dtype),
          .batches = buffer(name + ".num_batches_tracked", {}, DType::kI64)};
}

Var StepBuilder::batchNorm(Var x, Var weight, Var bias, const BatchNormState& state) {
  const std::string op = "aten.native_batch_norm.default";
  const int64_t width = columnCount(x);
  const DType dtype = options_.dtype;
  const auto [runningMean, runningVar, batches] = state;
  call("aten.add_.Tensor",
       {ValueArg{batches}, WrappedNumberArg{.dtype = DType::kI64, .value = int64_t{1}}, int64_t{1}},
       {batches}, {{.value = batches}});
  const ValueId out = fresh(op, dtype, {rows(x), width});
  const ValueId mean = fresh(op, dtype, {width});
  const ValueId invstd = fresh(op, dtype, {width});
  call(op,
       {ValueArg{x.value}, ValueArg{weight.value}, ValueArg{bias.value}, ValueArg{runningMean},
        ValueArg{runningVar}, true, 0.1, 1e-5},
       {out, mean, invstd}, {{.value = runningMean}, {.value = runningVar}});
  return result(out, {x, weight, bias},
                [=, this, runningMean = runningMean, runningVar = runningVar](ValueId gradient) {
                  const std::string backwardOp = "aten.native_batch_norm_backward.default";
                  const std::vector<ValueId> grads = {
                      x.needsGrad ? fresh(backwardOp, dtype, {rows(x), width}) : ValueId(),
                      fresh(backwardOp, dtype, {width}), fresh(backwardOp, dtype, {width})};
                  call(backwardOp,
                       {ValueArg{gradient}, ValueArg{x.value}, ValueArg{weight.value},
                        ValueArg{runningMean}, ValueArg{runningVar}, ValueArg{mean},
                        ValueArg{invstd}, true, 1e-5, NumberList{x.needsGrad, true, true}},
                       grads);
                  if (x.needsGrad) accumulate(x, grads[0], true);
                  accumulate(weight, grads[1], true);
                  accumulate(bias, grads[2], true);
                });
}

Var StepBuilder::embedding(Var weight, ValueId tokens) {
  const std::string op = "aten.embedding.default";
  const ValueId out =
      fresh(op, options_.dtype, {type(tokens).sizes[0], type(weight.value).sizes[1]});
  call(op, {ValueArg{weight.value}, ValueArg{tokens}, int64_t{-1}, false, false}, {out});
  return result(out, {weight}, [this, weight, tokens](ValueId gradient) {
    accumulate(weight,
               callLike("aten.embedding_dense_backward.default",
                        {ValueArg{gradient}, ValueArg{tokens}, type(weight.value).sizes[0],
                         int64_t{-1}, false},
                        weight.value),
               true);
  });
}

Var StepBuilder::columns(Var x, int64_t begin, int64_t end) {
  const ValueId part = slice(x.value, begin, end);
  return result(part, {x}, [this, x, begin, end](ValueId gradient) {
    accumulate(x,
               callLike("aten.slice_backward.default",
                        {ValueArg{gradient}, NumberList{rows(x), columnCount(x)}, int64_t{1}, begin,
                         end, int64_t{1}},
                        x.value),
               true);
  });
}

Var StepBuilder::concatenate(const std::vector<Var>& parts) {
  ValueList values;
  int64_t width = 0;
  for (const Var& part : parts) {
    values.push_back({part.value});
    width += columnCount(part);
  }
  const std::string op = "aten.cat.default";
  const ValueId out = fresh(op, type(parts[0].value).dtype, {rows(parts[0]), width});
  call(op, {values, int64_t{1}}, {out});
  return result(out, parts, [this, parts](ValueId gradient) {
    int64_t begin = 0;
    for (const Var& part : parts) {
      const int64_t end = begin + columnCount(part);
      if (part.needsGrad) accumulate(part, slice(gradient, begin, end), false);
      begin = end;
    }
  });
}

Var StepBuilder::crossEntropy(Var logits, ValueId target, const std::string& name) {
  const bool narrow = options_.dtype != DType::kF32;
  const ValueId wide = narrow ? convert(logits.value, DType::kF32) : logits.value;
  const ValueId logProbabilities =
      callLike("aten._log_softmax.default", {ValueArg{wide}, int64_t{1}, false}, wide);
  const std::string op = "aten.nll_loss_forward.default";
  const ValueId loss = fresh(op, DType::kF32, {});
  const ValueId totalWeight = fresh(op, DType::kF32, {});
  ir::Storage& storage = builder_.storage(builder_.value(loss).storage);
  storage.name = name;
  storage.role = Role::kOutput;
  storage.output = true;
  call(op, {ValueArg{logProbabilities}, ValueArg{target}, NoneArg{}, int64_t{1}, int64_t{-100}},
       {loss, totalWeight});
  return result(loss, {logits}, [=, this](ValueId gradient) {
    const ValueId picked =
        callLike("aten.nll_loss_backward.default",
                 {ValueArg{gradient}, ValueArg{logProbabilities}, ValueArg{target}, NoneArg{},
                  int64_t{1}, int64_t{-100}, ValueArg{totalWeight}},
                 logProbabilities);
    const ValueId wideGradient = callLike(
        "aten._log_softmax_backward_data.default",
        {ValueArg{picked}, ValueArg{logProbabilities}, int64_t{1}, EnumArg{"dtype", "f32"}},
        picked);
    accumulate(logits, narrow ? convert(wideGradient, options_.dtype) : wideGradient, true);
  });
}

void StepBuilder::reportMaximum(Var x, const std::string& name) {
  const std::string op = "aten.max.dim";
  const ValueId maximum = fresh(op, type(x.value).dtype, {rows(x)});
  const ValueId indices = fresh(op, DType::kI64, {rows(x)});
  ir::Storage& storage = builder_.storage(builder_.value(maximum).storage);
  storage.name = name;
  storage.output = true;  // an activation that is also delivered
  call(op, {ValueArg{x.value}, int64_t{1}, false}, {maximum, indices});
}

ir::Graph StepBuilder::finish() && { return std::move(builder_).finish(); }

}  // namespace stowage::tests
