// SPDX-License-Identifier: Apache-2.0
//
// The second half of StepBuilder: gradients and optimizers.

#include <algorithm>
#include <cassert>

#include "tests/support/step_builder.h"

namespace stowage::tests {

using ir::Argument;
using ir::DType;
using ir::Node;
using ir::NoneArg;
using ir::NumberList;
using ir::Role;
using ir::ScalarArg;
using ir::TensorType;
using ir::ValueArg;
using ir::ValueId;
using ir::ValueList;
using ir::WrappedNumberArg;

// --- gradients ------------------------------------------------------------------------------

void StepBuilder::zeroGradients() {
  if (!options_.persistentGradients) return;
  enter("zero_grad");
  for (const Var& parameter : parameters_) {
    const ValueId gradient = state("grad", parameter, Role::kGradient, options_.dtype);
    gradients_[static_cast<size_t>(parameter.index)] = Gradient{.value = gradient, .owned = true};
    call("aten.zero_.default", {ValueArg{gradient}}, {gradient},
         {{.value = gradient, .whole = true}});
  }
}

void StepBuilder::backward(Var loss) {
  phase_ = ir::Phase::kBackward;
  const ValueId one = callLike("aten.ones_like.default",
                               {ValueArg{loss.value}, NoneArg{}, NoneArg{}, NoneArg{}, NoneArg{},
                                ir::EnumArg{"memory_format", "preserve"}},
                               loss.value);
  accumulate(loss, one, true);
  for (size_t i = tape_.size(); i-- > 0;) {
    const auto gradient = gradients_[static_cast<size_t>(tape_[i].output)];
    if (!gradient) continue;
    enter(tape_[i].path);
    tape_[i].backward(gradient->value);
  }
  tape_.clear();
  phase_ = ir::Phase::kForward;
}

void StepBuilder::accumulate(Var target, ValueId gradient, bool owned) {
  if (!target.needsGrad) return;
  if (target.isParameter) return accumulateParameter(target, gradient, owned);
  std::optional<Gradient>& held = gradients_[static_cast<size_t>(target.index)];
  if (!held) {
    held = Gradient{.value = gradient, .owned = owned};
    return;
  }
  if (options_.inPlaceAccumulation && held->owned) {
    call("aten.add_.Tensor", {ValueArg{held->value}, ValueArg{gradient}, int64_t{1}}, {held->value},
         {{.value = held->value}});
    return;
  }
  held = Gradient{
      .value = callLike("aten.add.Tensor", {ValueArg{held->value}, ValueArg{gradient}, int64_t{1}},
                        target.value),
      .owned = true};
}

void StepBuilder::accumulateParameter(Var target, ValueId gradient, bool owned) {
  std::optional<Gradient>& held = gradients_[static_cast<size_t>(target.index)];
  if (held) {
    call("aten.add_.Tensor", {ValueArg{held->value}, ValueArg{gradient}, int64_t{1}}, {held->value},
         {{.value = held->value}});
    return;
  }
  if (!owned) gradient = callLike("aten.clone.default", {ValueArg{gradient}, NoneArg{}}, gradient);
  held = Gradient{.value = gradient, .owned = true};
  const std::string name = builder_.storage(builder_.value(target.value).storage).name;
  ir::Storage& storage = builder_.storage(builder_.value(gradient).storage);
  storage.name = "grad(" + name + ")";
  storage.role = Role::kGradient;
}

std::vector<std::pair<Var, ValueId>> StepBuilder::trained() {
  std::vector<std::pair<Var, ValueId>> found;
  for (const Var& parameter : parameters_) {
    const auto& gradient = gradients_[static_cast<size_t>(parameter.index)];
    if (gradient) found.emplace_back(parameter, gradient->value);
  }
  return found;
}

// --- updates --------------------------------------------------------------------------------

ValueId StepBuilder::state(const std::string& kind, Var parameter, Role role, DType dtype) {
  const std::string owner = builder_.storage(builder_.value(parameter.value).storage).name;
  ir::Storage storage{.name = kind + "(" + owner + ")", .role = role, .persistent = true};
  const bool isCounter = role == Role::kStepCounter;
  if (isCounter && options_.hostStepCounters) storage.home = ir::Space::kHost;
  const TensorType shape = type(parameter.value);
  std::vector<int64_t> sizes;
  if (!isCounter) sizes.assign(shape.sizes.begin(), shape.sizes.end());
  return addStorageWithValue(std::move(storage), dtype, std::move(sizes));
}

void StepBuilder::clipGradients(double maxNorm) {
  phase_ = ir::Phase::kOptimizer;
  enter("clip");
  const auto pairs = trained();
  ValueList gradients;
  ValueList norms;
  std::vector<ValueId> normValues;
  std::vector<Node::Write> writes;
  for (const auto& [parameter, gradient] : pairs) {
    gradients.push_back({gradient});
    writes.push_back({.value = gradient});
    normValues.push_back(fresh("aten._foreach_norm", options_.dtype, {}));
    norms.push_back({normValues.back()});
  }
  call("aten._foreach_norm.Scalar", {gradients, int64_t{2}, NoneArg{}}, normValues);
  const ValueId stacked = fresh("aten.stack", options_.dtype, {static_cast<int64_t>(pairs.size())});
  call("aten.stack.default", {norms, int64_t{0}}, {stacked});
  const ValueId total = fresh("aten.linalg_vector_norm", options_.dtype, {});
  ir::Storage& storage = builder_.storage(builder_.value(total).storage);
  storage.name = "grad_norm";
  storage.role = Role::kOutput;
  storage.output = true;
  call("aten.linalg_vector_norm.default",
       {ValueArg{stacked}, int64_t{2}, NoneArg{}, false, NoneArg{}}, {total});
  const ValueId shifted = callLike(
      "aten.add.Tensor", {ValueArg{total}, WrappedNumberArg{.value = 1e-6}, int64_t{1}}, total);
  const ValueId inverse = callLike("aten.reciprocal.default", {ValueArg{shifted}}, total);
  const ValueId factor =
      callLike("aten.mul.Tensor", {ValueArg{inverse}, WrappedNumberArg{.value = maxNorm}}, total);
  const ValueId clamped = callLike("aten.clamp.default", {ValueArg{factor}, NoneArg{}, 1.0}, total);
  call("aten._foreach_mul_.Tensor", {gradients, ValueArg{clamped}}, {}, writes);
}

void StepBuilder::updateSgd(ir::ScalarId negativeLr, double momentum, double weightDecay) {
  phase_ = ir::Phase::kOptimizer;
  enter("sgd");
  for (const auto& [parameter, gradient] : trained()) {
    ValueId direction = gradient;
    if (weightDecay != 0) {
      direction = callLike("aten.add.Tensor",
                           {ValueArg{gradient}, ValueArg{parameter.value}, weightDecay}, gradient);
    }
    if (momentum != 0) {
      const ValueId buffer = state("m", parameter, Role::kState, options_.dtype);
      call("aten.mul_.Tensor", {ValueArg{buffer}, WrappedNumberArg{.value = momentum}}, {buffer},
           {{.value = buffer}});
      call("aten.add_.Tensor", {ValueArg{buffer}, ValueArg{direction}, int64_t{1}}, {buffer},
           {{.value = buffer}});
      direction = buffer;
    }
    call("aten.add_.Tensor",
         {ValueArg{parameter.value}, ValueArg{direction}, ScalarArg{negativeLr}}, {parameter.value},
         {{.value = parameter.value}});
  }
}

void StepBuilder::updateAdam(ir::ScalarId stepSize, ir::ScalarId biasCorrection) {
  phase_ = ir::Phase::kOptimizer;
  enter("adam");
  for (const auto& [parameter, gradient] : trained()) {
    const ValueId m = state("m", parameter, Role::kState, options_.dtype);
    const ValueId v = state("v", parameter, Role::kState, options_.dtype);
    call("aten.lerp_.Scalar", {ValueArg{m}, ValueArg{gradient}, 0.1}, {m}, {{.value = m}});
    call("aten.mul_.Tensor", {ValueArg{v}, WrappedNumberArg{.value = 0.999}}, {v}, {{.value = v}});
    call("aten.addcmul_.default", {ValueArg{v}, ValueArg{gradient}, ValueArg{gradient}, 0.001}, {v},
         {{.value = v}});
    const ValueId root = callLike("aten.sqrt.default", {ValueArg{v}}, v);
    const ValueId denominator = callLike(
        "aten.div.Tensor", {ValueArg{root}, WrappedNumberArg{.value = biasCorrection}}, root);
    call("aten.add_.Tensor", {ValueArg{denominator}, WrappedNumberArg{.value = 1e-8}, int64_t{1}},
         {denominator}, {{.value = denominator}});
    call("aten.addcdiv_.default",
         {ValueArg{parameter.value}, ValueArg{m}, ValueArg{denominator}, ScalarArg{stepSize}},
         {parameter.value}, {{.value = parameter.value}});
  }
}

void StepBuilder::updateFusedAdamW(ir::ScalarId lr, int bucket) {
  phase_ = ir::Phase::kOptimizer;
  enter("adamw");
  const auto pairs = trained();
  for (size_t begin = 0; begin < pairs.size(); begin += static_cast<size_t>(bucket)) {
    const size_t end = std::min(pairs.size(), begin + static_cast<size_t>(bucket));
    ValueList parameters, gradients, m, v, steps;
    std::vector<Node::Write> counted, writes;
    const auto addTo = [](ValueList& list, ValueId value, std::vector<Node::Write>& written) {
      list.push_back({value});
      written.push_back({.value = value});
    };
    for (size_t i = begin; i < end; ++i) {
      const Var& parameter = pairs[i].first;
      addTo(parameters, parameter.value, writes);
      gradients.push_back({pairs[i].second});
      addTo(m, state("m", parameter, Role::kState, options_.dtype), writes);
      addTo(v, state("v", parameter, Role::kState, options_.dtype), writes);
      addTo(steps, state("step", parameter, Role::kStepCounter, DType::kF32), counted);
    }
    call("aten._foreach_add_.Scalar", {steps, int64_t{1}}, {}, counted);
    call("aten._fused_adamw_.default",
         {parameters, gradients, m, v, ValueList{}, steps, ScalarArg{lr}, 0.9, 0.95, 0.1, 1e-8,
          false, false, NoneArg{}, NoneArg{}},
         {}, writes);
  }
}

void StepBuilder::updateMasters(ir::ScalarId negativeLr) {
  phase_ = ir::Phase::kOptimizer;
  enter("masters");
  for (const auto& [parameter, gradient] : trained()) {
    const ValueId master = state("master", parameter, Role::kMaster, DType::kF32);
    const ValueId wide = convert(gradient, DType::kF32);
    call("aten.add_.Tensor", {ValueArg{master}, ValueArg{wide}, ScalarArg{negativeLr}}, {master},
         {{.value = master}});
    call("aten.copy_.default", {ValueArg{parameter.value}, ValueArg{master}, false},
         {parameter.value}, {{.value = parameter.value, .whole = true}});
  }
}

}  // namespace stowage::tests
