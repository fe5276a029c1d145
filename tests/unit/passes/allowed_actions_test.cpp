// SPDX-License-Identifier: Apache-2.0
//
// The words of what a plan may do.
#include "passes/allowed_actions.h"

#include <gtest/gtest.h>

#include "passes/plan_step.h"
#include "tests/support/or_fail.h"

namespace stowage::passes {
namespace {

using tests::orFail;

constexpr AllowedActions kNothing = {.offload = false,
                                     .recompute = false,
                                     .inPlaceReuse = false,
                                     .reorder = false,
                                     .rowBlocks = false};

TEST(AllowedActions, AListAllowsWhatItNamesAndNothingElse) {
  EXPECT_EQ(orFail(parseAllowed("none")), kNothing);
  AllowedActions some = kNothing;
  some.offload = some.rowBlocks = true;
  EXPECT_EQ(orFail(parseAllowed("offload, row-blocks")), some);
  EXPECT_EQ(orFail(parseAllowed("offload,recompute,in-place-reuse,reorder,row-blocks")),
            AllowedActions());
  some.hostStep = true;
  EXPECT_EQ(orFail(parseAllowed("row-blocks,host-step,offload")), some);
}

TEST(AllowedActions, HostStepAloneComesOnTopOfAll) {
  EXPECT_EQ(orFail(parseAllowed("host-step")), AllowedActions{.hostStep = true});
  AllowedActions alone = kNothing;
  alone.hostStep = true;
  EXPECT_NE(orFail(parseAllowed("host-step")), alone);
}

TEST(AllowedActions, OtherWordsAreRefused) {
  const auto refusalOf = [](const char* list) {
    ir::Expected<AllowedActions> allowed = parseAllowed(list);
    return allowed ? std::string("allowed") : ir::takePayload(allowed.takeError()).text();
  };
  EXPECT_EQ(
      refusalOf("offload,host_step"),
      "unknown word 'host_step', did you mean 'host-step'?; expected a comma list of offload, "
      "recompute, in-place-reuse, reorder, row-blocks, host-step, none");
  EXPECT_NE(refusalOf("").find("unknown word ''"), std::string::npos);
  EXPECT_EQ(refusalOf("none,offload"),
            "found 'none,offload', expected none by itself or a list without it");
}

TEST(AllowedActions, AreThoseOfThePlanner) {
  PlanStepOptions options = {.budget = Bytes(7)};
  options.allowed.disk = true;
  options.limits.host = Bytes(8);
  setAllowed(kNothing, options);
  EXPECT_EQ(options.allowed,
            (planner::Allowed{
                .offload = false, .disk = true, .recompute = false, .inPlaceReuse = false}));
  EXPECT_EQ(options.orders, std::vector<Order>{Order::kProgram});
  EXPECT_TRUE(options.rowBlocks.empty() && options.hostUpdates.empty());
  EXPECT_EQ(options.limits.host, Bytes(8));
  setAllowed({.hostStep = true}, options);
  EXPECT_EQ(options.orders, PlanStepOptions().orders);
  EXPECT_EQ(options.rowBlocks, PlanStepOptions().rowBlocks);
  EXPECT_EQ(options.hostUpdates.size(), kHostShares.size());
  setAllowed({}, options);
  EXPECT_TRUE(options.hostUpdates.empty());
}

}  // namespace
}  // namespace stowage::passes
