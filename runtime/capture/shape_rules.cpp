// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/shape_rules.h"

#include <ATen/ExpandUtils.h>

#include <algorithm>
#include <map>

#include "ir/type.h"

namespace stowage::runtime {
namespace {

using RuleMap = std::map<llvm::StringRef, ShapeRule>;

RuleMap collectRules() {
  RuleMap rules;
  for (const llvm::ArrayRef<NamedRule> table :
       {attentionRules(), convolutionRules(), indexRules(), lossRules(), normRules(),
        optimizerRules(), pointwiseRules()}) {
    for (const NamedRule& row : table) rules.emplace(row.op, row.rule);
  }
  return rules;
}

const RuleMap& rules() {
  static const RuleMap kRules = collectRules();
  return kRules;
}

}  // namespace

ShapeRule findShapeRule(llvm::StringRef op) {
  const auto found = rules().find(op);
  return found == rules().end() ? nullptr : found->second;
}

std::vector<NamedRule> allShapeRules() {
  std::vector<NamedRule> all;
  for (const auto& [op, rule] : rules()) all.push_back({op.data(), rule});
  return all;
}

OutputTensor fresh(llvm::ArrayRef<int64_t> sizes, c10::ScalarType dtype) {
  const auto strides = ir::findContiguousStrides(sizes);
  TORCH_CHECK(strides, "found sizes that no tensor has");
  return freshStrided(sizes, *strides, dtype);
}

OutputTensor freshStrided(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
                          c10::ScalarType dtype) {
  OutputTensor output;
  output.kind = OutputTensor::Kind::kFresh;
  output.shape = {.sizes = c10::DimVector(sizes.begin(), sizes.end()),
                  .strides = c10::DimVector(strides.begin(), strides.end()),
                  .offset = 0,
                  .dtype = dtype};
  return output;
}

OutputTensor freshLike(const at::Tensor& tensor) { return freshLike(tensor, tensor.scalar_type()); }

OutputTensor freshLike(const at::Tensor& tensor, c10::ScalarType dtype) {
  const llvm::ArrayRef<int64_t> sizes(tensor.sizes().data(), tensor.sizes().size());
  if (tensor.is_non_overlapping_and_dense()) {
    return freshStrided(sizes, {tensor.strides().data(), tensor.strides().size()}, dtype);
  }
  const std::vector<int64_t> strides = at::infer_dense_strides(tensor.sizes(), tensor.strides());
  return freshStrided(sizes, strides, dtype);
}

OutputTensor undefinedOutput() { return {}; }

OutputTensor itself(const at::Tensor& tensor) {
  OutputTensor output;
  output.kind = OutputTensor::Kind::kArgument;
  output.base = tensor;
  return output;
}

Outputs outputs(std::initializer_list<OutputTensor> tensors) {
  Outputs all;
  for (const OutputTensor& tensor : tensors) {
    Output output;
    output.tensors.push_back(tensor);
    all.push_back(std::move(output));
  }
  return all;
}

}  // namespace stowage::runtime
