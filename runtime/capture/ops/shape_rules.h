// SPDX-License-Identifier: Apache-2.0
//
// What results an op has, found from its arguments' shapes without running it. A rule is one
// function per op; the table below names those that need one because libtorch's own kernel for
// tensors without data is missing, fails, or answers for another device.
// An TracedCall -> one Output per return of the schema. Every rule that a CPU step can reach is
// checked against the real op (tests/unit/runtime/capture/ops/rules_test.cpp); for CUDA each
// carries its source. Invariants: rules read shapes, never data, and know nothing of recording.
#ifndef STOWAGE_RUNTIME_CAPTURE_OPS_SHAPE_RULES_H_
#define STOWAGE_RUNTIME_CAPTURE_OPS_SHAPE_RULES_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/MemoryFormat.h>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/schedule/target.h"
#include "runtime/capture/fake/fake_tensor.h"

namespace stowage::runtime {

struct OpFacts;

/// One tensor that an op returns.
struct OutputTensor {
  enum class Kind : uint8_t {
    kUndefined,
    kFresh,     // new memory
    kArgument,  // the tensor object `base` itself
    kView       // another view of `base`'s storage
  };
  Kind kind = Kind::kUndefined;
  TensorShape shape;                  // kFresh, kView
  at::Tensor base;                    // kArgument, kView
  std::optional<c10::Device> device;  // kFresh: other than the op's own
  int32_t storageGroup = -1;          // kFresh: equal numbers >= 0 share one storage
  int64_t storageBytes = 0;           // kFresh: when the storage is larger than the tensor
};

/// One return of the schema: a tensor, a list of tensors, or a host value.
struct Output {
  llvm::SmallVector<OutputTensor, 1> tensors;
  bool isList = false;
  c10::IValue plain;  // when `tensors` is empty and it is no list
};
using Outputs = llvm::SmallVector<Output, 2>;

struct TracedCall {
  const OpFacts& op;
  llvm::ArrayRef<c10::IValue> args;
  const ir::Target& target;
  c10::Device device;  // where fresh results are

  bool hasTensor(size_t i) const { return args[i].isTensor() && args[i].toTensor().defined(); }
  const at::Tensor& tensor(size_t i) const { return args[i].toTensor(); }
  int64_t integer(size_t i) const { return args[i].toInt(); }
  bool boolean(size_t i) const { return args[i].toBool(); }
  double number(size_t i) const { return args[i].toDouble(); }
};

using ShapeRule = Outputs (*)(const TracedCall& call);
using OperandCheck = void (*)(const TracedCall& call);  // operand_rules.h

struct NamedRule {
  const char* op;  // name in the IR
  ShapeRule rule;
  bool onlyForCpu = false;  // what CUDA returns was never compared
};

/// Null when the op needs no rule. The pointer stays valid for ever.
const NamedRule* findShapeRule(llvm::StringRef op);
/// All rules, in order of name: for the conformance test.
std::vector<NamedRule> allShapeRules();

// The tables, one per file of rules.
llvm::ArrayRef<NamedRule> attentionRules();
llvm::ArrayRef<NamedRule> convolutionRules();
llvm::ArrayRef<NamedRule> embeddingBagRules();
llvm::ArrayRef<NamedRule> fftRules();
llvm::ArrayRef<NamedRule> imageRules();
llvm::ArrayRef<NamedRule> indexRules();
llvm::ArrayRef<NamedRule> linalgRules();
llvm::ArrayRef<NamedRule> lossRules();
llvm::ArrayRef<NamedRule> matrixRules();
llvm::ArrayRef<NamedRule> normRules();
llvm::ArrayRef<NamedRule> optimizerRules();
llvm::ArrayRef<NamedRule> pointwiseRules();
llvm::ArrayRef<NamedRule> randomRules();
llvm::ArrayRef<NamedRule> reductionRules();
llvm::ArrayRef<NamedRule> syncNormRules();

// For writing rules.

/// Row-major, without gaps.
OutputTensor fresh(llvm::ArrayRef<int64_t> sizes, c10::ScalarType dtype);
OutputTensor freshStrided(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
                          c10::ScalarType dtype);
/// Like at::empty_like(tensor): keeps dense strides.
OutputTensor freshLike(const at::Tensor& tensor);
OutputTensor freshLike(const at::Tensor& tensor, c10::ScalarType dtype);
/// Row-major with the tensor's sizes and type.
OutputTensor freshContiguous(const at::Tensor& tensor);
/// Row-major or channels last.
OutputTensor inFormat(const std::vector<int64_t>& sizes, c10::MemoryFormat format,
                      c10::ScalarType dtype);
/// Channels last when the tensor is, else row-major.
OutputTensor freshInFormat(const at::Tensor& tensor);
/// Row-major, without the dimensions `dims` (all when empty), or with length 1 when `keep`.
OutputTensor reduced(const at::Tensor& self, llvm::ArrayRef<int64_t> dims, bool keep,
                     c10::ScalarType dtype);
/// What an elementwise kernel makes of two or three operands, broadcast, with the type `dtype`.
OutputTensor elementwise(const TracedCall& call, std::initializer_list<at::Tensor> operands,
                         c10::ScalarType dtype);
OutputTensor undefinedOutput();
Output plainOutput(c10::IValue value);
Output tensorOutput(OutputTensor tensor);
OutputTensor itself(const at::Tensor& tensor);
Outputs outputs(std::initializer_list<OutputTensor> tensors);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_OPS_SHAPE_RULES_H_
