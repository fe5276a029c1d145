// SPDX-License-Identifier: Apache-2.0
//
// For writing operand rules (operand_rules.h): a call's arguments by the names of its schema, and
// what can be asked of a tensor. All checks throw c10::Error that names the argument, what was
// found and what was expected. An absent tensor passes each.
#ifndef STOWAGE_RUNTIME_CAPTURE_OPS_OPERAND_CHECKS_H_
#define STOWAGE_RUNTIME_CAPTURE_OPS_OPERAND_CHECKS_H_

#include <ATen/core/Tensor.h>
#include <llvm/ADT/ArrayRef.h>

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {

/// Of every overload: "aten._fused_adam_".
struct OperandRule {
  std::string_view op;
  OperandCheck check;
};

// The tables, one per file of rules.
llvm::ArrayRef<OperandRule> optimizerOperandRules();
llvm::ArrayRef<OperandRule> normOperandRules();
llvm::ArrayRef<OperandRule> imageOperandRules();
llvm::ArrayRef<OperandRule> lossOperandRules();
llvm::ArrayRef<OperandRule> otherOperandRules();

class Operands {
 public:
  explicit Operands(const TracedCall& call) : call_(call) {}

  bool has(std::string_view name) const;
  /// Of an argument that the schema has.
  const c10::IValue& at(std::string_view name) const;
  /// Undefined when absent.
  at::Tensor tensor(std::string_view name) const;
  std::vector<at::Tensor> list(std::string_view name) const { return at(name).toTensorVector(); }

  void checkSizes(std::string_view name, at::IntArrayRef expected) const;
  /// As many elements, one behind the other.
  void checkRow(std::string_view name, int64_t elements) const;
  void checkContiguous(std::string_view name) const;
  /// Every element has a place of its own.
  void checkNotExpanded(std::string_view name) const;
  void checkDimensions(std::string_view name, int64_t least, int64_t most) const;
  void checkListLength(std::string_view name, int64_t length) const;

 private:
  const TracedCall& call_;
};

/// An operand that another op has returned, or the gradient of what it returned.
struct SavedOperand {
  enum class Layout : uint8_t { kAny, kContiguous };
  std::string_view argument;
  size_t result;
  Layout layout = Layout::kAny;
};

/// The operands of a backward op look like what the forward op ("aten.native_layer_norm.default")
/// returns for the arguments of the same names; `renamed` gives {forward's, backward's} where they
/// differ. Other arguments of the forward op are its defaults, or plain numbers.
void checkSaved(const TracedCall& backward, std::string_view forward,
                std::initializer_list<SavedOperand> saved,
                std::initializer_list<std::pair<std::string_view, std::string_view>> renamed = {});

/// What `op` returns for `args`, one for each argument of its schema.
Outputs outputsOf(const TracedCall& beside, std::string_view op,
                  const std::vector<c10::IValue>& args);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_OPS_OPERAND_CHECKS_H_
