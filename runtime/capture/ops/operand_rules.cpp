// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/ops/operand_rules.h"

#include <ATen/core/jit_type.h>
#include <llvm/ADT/StringMap.h>

#include <optional>

#include "ir/base/affix.h"
#include "runtime/capture/ops/op_facts.h"
#include "runtime/capture/ops/operand_checks.h"

namespace stowage::runtime {
namespace {

const llvm::StringMap<OperandCheck>& allRules() {
  static const auto* const kRules = [] {
    auto* rules = new llvm::StringMap<OperandCheck>();
    for (const llvm::ArrayRef<OperandRule> table :
         {optimizerOperandRules(), normOperandRules(), imageOperandRules(), lossOperandRules(),
          otherOperandRules()}) {
      for (const OperandRule& rule : table) rules->insert({rule.op, rule.check});
    }
    return rules;
  }();
  return *kRules;
}

/// Lists are worked on side by side.
void checkLists(const TracedCall& call) {
  std::optional<size_t> length;
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (!call.args[i].isTensorList()) continue;
    const size_t found = call.args[i].toTensorVector().size();
    TORCH_CHECK(found > 0 && found == length.value_or(found), "found ", found, " tensors in ",
                call.op.schema().arguments()[i].name(), ", expected ", length.value_or(1));
    length = found;
  }
}

}  // namespace

OperandCheck findOperandRule(llvm::StringRef op) {
  if (ir::startsWith(op, "aten._foreach_")) return checkLists;
  const auto found = allRules().find(op.take_front(op.rfind('.')));
  return found == allRules().end() ? nullptr : found->second;
}

void checkOperands(const TracedCall& call) {
  const auto& arguments = call.op.schema().arguments();
  const bool needsFirst =
      !arguments.empty() && arguments[0].type()->kind() == c10::TypeKind::TensorType;
  TORCH_CHECK(!needsFirst || call.hasTensor(0), "found no ", arguments[0].name(),
              ", expected a tensor");
  if (call.op.operandRule != nullptr) call.op.operandRule(call);
}

}  // namespace stowage::runtime
