// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/ops/shape_rules.h"

#include <ATen/ExpandUtils.h>

#include <algorithm>
#include <map>
#include <utility>

#include "ir/graph/type.h"

namespace stowage::runtime {
namespace {

using RuleMap = std::map<llvm::StringRef, const NamedRule*>;

RuleMap collectRules() {
  RuleMap rules;
  for (const llvm::ArrayRef<NamedRule> table :
       {attentionRules(), convolutionRules(), embeddingBagRules(), fftRules(), imageRules(),
        indexRules(), linalgRules(), lossRules(), matrixRules(), normRules(), optimizerRules(),
        pointwiseRules(), randomRules(), reductionRules(), syncNormRules()}) {
    for (const NamedRule& row : table) rules.emplace(row.op, &row);
  }
  return rules;
}

const RuleMap& rules() {
  static const RuleMap kRules = collectRules();
  return kRules;
}

}  // namespace

const NamedRule* findShapeRule(llvm::StringRef op) {
  const auto found = rules().find(op);
  return found == rules().end() ? nullptr : found->second;
}

std::vector<NamedRule> allShapeRules() {
  std::vector<NamedRule> all;
  for (const auto& [op, rule] : rules()) all.push_back(*rule);
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

OutputTensor freshContiguous(const at::Tensor& tensor) {
  return fresh({tensor.sizes().data(), tensor.sizes().size()}, tensor.scalar_type());
}

OutputTensor inFormat(const std::vector<int64_t>& sizes, c10::MemoryFormat format,
                      c10::ScalarType dtype) {
  if (format == c10::MemoryFormat::ChannelsLast) {
    return freshStrided(sizes, c10::get_channels_last_strides_2d(sizes), dtype);
  }
  if (format == c10::MemoryFormat::ChannelsLast3d) {
    return freshStrided(sizes, c10::get_channels_last_strides_3d(sizes), dtype);
  }
  return fresh(sizes, dtype);
}

OutputTensor freshInFormat(const at::Tensor& tensor) {
  return inFormat(tensor.sizes().vec(), tensor.suggest_memory_format(), tensor.scalar_type());
}

OutputTensor reduced(const at::Tensor& self, llvm::ArrayRef<int64_t> dims, bool keep,
                     c10::ScalarType dtype) {
  std::vector<int64_t> sizes;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool isGone = dims.empty() || std::any_of(dims.begin(), dims.end(), [&](int64_t dim) {
                          return dim == d || dim + self.dim() == d;
                        });
    if (!isGone) sizes.push_back(self.size(d));
    if (isGone && keep) sizes.push_back(1);
  }
  return fresh(sizes, dtype);
}

OutputTensor undefinedOutput() { return {}; }

Output plainOutput(c10::IValue value) {
  Output output;
  output.plain = std::move(value);
  return output;
}

Output tensorOutput(OutputTensor tensor) {
  Output output;
  output.tensors.push_back(std::move(tensor));
  return output;
}

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
