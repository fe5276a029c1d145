// SPDX-License-Identifier: Apache-2.0
//
// Walks the table of shape rules and fails when no row checks a rule; and walks the ops that a
// training step may meet and libtorch's own kernels without data do not answer: each has a rule, or
// is answered by libtorch's kernel and checked all the same, or is refused for a stated reason.

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/capture/op_facts.h"
#include "tests/support/op_agreement.h"
#include "tests/unit/runtime/capture_rule_checks.h"

namespace stowage::tests {
namespace {

using runtime::OpFacts;
using runtime::ResultsBy;

const std::set<std::string>& checkedOps() {
  static const bool kDone = [] {
    for (const auto check : {checkConvolutions,  checkNormalisations,
                             checkAttention,     checkLosses,
                             checkActivations,   checkPointwise,
                             checkReductions,    checkIndexing,
                             checkPooling,       checkMatrices,
                             checkPadding,       checkImagePooling,
                             checkSampling,      checkFoldingAndShuffling,
                             checkChoices,       checkScans,
                             checkRandomOps,     checkEmbeddingBags,
                             checkMoreLosses,    checkBatchNormOverloads,
                             checkSmallMatrices, checkPlainConvolutions,
                             checkUpdates,       checkOpsOfCudaAlone}) {
      check();
    }
    return true;
  }();
  static_cast<void>(kDone);
  return agreedOps();
}

/// Rules that only refuse: their texts are in capture_refusal_test.cpp.
const std::set<std::string> kRefusing = {"aten._ctc_loss.Tensor"};
/// Answers a host value and no tensor: told by the test of its refusal.
const std::set<std::string> kHostValues = {"aten._use_cudnn_ctc_loss.default"};

TEST(CaptureRuleCoverage, EveryRuleHasARow) {
  for (const runtime::NamedRule& rule : runtime::allShapeRules()) {
    if (kRefusing.count(rule.op) != 0 || kHostValues.count(rule.op) != 0) continue;
    EXPECT_EQ(checkedOps().count(rule.op), 1u) << rule.op << " has a rule that no row checks";
  }
}

TEST(CaptureRuleCoverage, EveryRuleIsOfAnOp) {
  for (const runtime::NamedRule& rule : runtime::allShapeRules()) {
    const std::string name = rule.op;
    const size_t last = name.rfind('.');
    const std::string overload = name.substr(last + 1);
    EXPECT_TRUE(c10::Dispatcher::singleton().findSchema(
        {"aten::" + name.substr(5, last - 5), overload == "default" ? "" : overload}))
        << name;
  }
}

}  // namespace
}  // namespace stowage::tests
