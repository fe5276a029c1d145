// SPDX-License-Identifier: Apache-2.0
//
// Calls of every op that the rows of the shape rules make, spoilt in one argument at a time. What
// the look at operands lets through is really called, on memory in which an access outside of a
// tensor is seen: an op whose kernel takes one operand's size for another's is found here, and
// needs a rule in runtime/capture/ops/operand_rules.cpp.

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <gtest/gtest.h>
#include <llvm/ADT/STLExtras.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/graph/op_table.h"
#include "runtime/capture/loaded/call_checks.h"
#include "runtime/capture/loaded/index_sources.h"
#include "runtime/capture/ops/call_results.h"
#include "runtime/capture/ops/op_facts.h"
#include "runtime/torch/torch_boundary.h"
#include "runtime/torch/torch_types.h"
#include "tests/support/call_mutants.h"
#include "tests/support/guarded_call.h"
#include "tests/support/op_agreement.h"
#include "tests/support/or_fail.h"
#include "tests/support/real_recorder.h"
#include "tests/unit/runtime/capture/ops/rule_checks.h"

namespace stowage::tests {
namespace {

using runtime::OpFacts;

/// Calls of the rows, a few of each op with other types.
class KeptCalls {
 public:
  void keep(const OpFacts& op, llvm::ArrayRef<c10::IValue> args) {
    std::string key = op.name;
    runtime::forEachTensor(args, [&](const at::Tensor& tensor) {
      key += std::string(" ") + c10::toString(tensor.scalar_type()) + std::to_string(tensor.dim()) +
             (tensor.is_contiguous() ? "" : "s");
    });
    int& count = countOf_[op.name];
    if (count >= kMostOfOneOp || !seen_.insert(key).second) return;
    ++count;
    std::vector<c10::IValue> copies =
        withTensors(args, [](const at::Tensor& tensor) { return tensor.detach().clone(); });
    calls.push_back({op.handle, std::move(copies)});
  }

  std::vector<KeptCall> calls;

 private:
  static constexpr int kMostOfOneOp = 3;
  std::set<std::string> seen_;
  std::map<std::string, int> countOf_;
};

const std::vector<KeptCall>& callsOfRows() {
  static const std::vector<KeptCall> kCalls = [] {
    at::set_num_threads(1);  // children have no others
    KeptCalls kept;
    observeRealCalls([&](const OpFacts& op, llvm::ArrayRef<c10::IValue> args) {
      if (op.resultsBy != runtime::ResultsBy::kComposite) kept.keep(op, args);
    });
    for (const auto check : kRuleChecks) check();
    observeRealCalls({});
    return std::move(kept.calls);
  }();
  return kCalls;
}

runtime::PermittedOps& permitted() {
  static runtime::PermittedOps ops;
  return ops;
}

bool isAccepted(const OpFacts& op, const CallMutant& mutant) {
  const ir::Target target;
  ir::Error error = runtime::callTorch("", [&] {
    const at::AutoDispatchBelowADInplaceOrView below;
    const std::vector<c10::IValue> args =
        withTensors(mutant.args, [](const at::Tensor& real) { return standIn(real, c10::kCPU); });
    runtime::findOutputs({.op = op, .args = args, .target = target, .device = c10::kCPU});
  });
  const bool accepted = !error;
  llvm::consumeError(std::move(error));
  return accepted;
}

/// What goes wrong in calls that nothing refused.
std::string findHarm(const c10::OperatorHandle& handle, std::vector<CallMutant> mutants) {
  const OpFacts op(handle);
  if (!permitted().allows(op.name) || op.refusal != nullptr) return "";
  // What it takes with the indices is a matter of the graph (index_sources.h).
  if (runtime::takesIndices(op.name)) {
    llvm::erase_if(mutants, [](const CallMutant& one) { return one.what.rfind("self ", 0) == 0; });
  }
  const std::vector<std::string> outcomes = callGuarded(
      handle, mutants, [&](const CallMutant& mutant) { return isAccepted(op, mutant); });
  std::string harm;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].empty()) harm += "\n" + op.name + ": " + mutants[i].what + ": " + outcomes[i];
  }
  return harm;
}

TEST(OperandRules, CallsThatAreAcceptedStayInsideOfTheirTensors) {
  for (const KeptCall& call : callsOfRows()) {
    const std::string harm = findHarm(call.op, spoilShapes(call));
    EXPECT_TRUE(harm.empty()) << harm;
  }
}

/// Every op that a file may call and no row calls, as well as it can be guessed.
TEST(OperandRules, GuessedCallsStayInsideOfTheirTensorsToo) {
  std::set<std::string> called;
  for (const KeptCall& call : callsOfRows()) called.insert(OpFacts(call.op).name);
  int guessed = 0;
  for (const ir::OpInfo& row : ir::allOps()) {
    if (!permitted().allows(row.op) || called.count(row.op) > 0) continue;
    const c10::OperatorHandle op = tests::orFail(runtime::findOperator(row.op));
    std::vector<CallMutant> mutants;
    for (const KeptCall& call : guessCalls(op)) {
      ++guessed;
      mutants.push_back({"as guessed", call.args});
      for (CallMutant& mutant : spoilShapes(call)) mutants.push_back(std::move(mutant));
    }
    const std::string harm = findHarm(op, std::move(mutants));
    EXPECT_TRUE(harm.empty()) << harm;
  }
  EXPECT_GT(guessed, 500);
}

TEST(OperandRules, ValuesOfIntegersAreNoWayOutside) {
  for (const KeptCall& call : callsOfRows()) {
    if (runtime::takesIndices(OpFacts(call.op).name)) continue;  // call_checks_test.cpp
    const std::string harm = findHarm(call.op, spoilValues(call));
    EXPECT_TRUE(harm.empty()) << harm;
  }
}

}  // namespace
}  // namespace stowage::tests
