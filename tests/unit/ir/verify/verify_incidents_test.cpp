// SPDX-License-Identifier: Apache-2.0
//
// Races that shipped in hand-written offloading, each as the same mistake in a schedule. They were
// silent there (a loss that still fell, wrong gradients); here each is refused by the rule that
// names it. The issue or pull request that reports the race stands with each.
#include <gtest/gtest.h>

#include "tests/unit/ir/verify/checked_case.h"
#include "tests/unit/ir/verify/verify_cases.h"

namespace stowage::tests {
namespace {

/// An activation goes to the host in forward and is back before backward begins, whose first launch
/// reads another one: the host's slot is written again in the next step.
constexpr const char* kSlot = R"ir(
graph @slot version=1 device="cpu" target="cpu" {
  parameter %w : f32[16]
forward "":
  %a : f32[16] = aten.mul.Tensor(%w, %w)
  %b : f32[16] = aten.mul.Tensor(%w, %w)
backward "":
  %c : f32[16] = aten.mul.Tensor(%a, %b)
}
schedule @slot level=synced graph="" target="" ops=0 mode=none flowing {
  arena device 384
  arena host 64
  reserved "workspace" stream=0 offset=0 bytes=64
  decide %a [0,2) host "hand"
  residency r0 %w device 64
  residency r1 %a device 128
  residency r2 %a host 0
  residency r3 %b device 192
  residency r4 %a device 256
  residency r5 %c device 320
  boundary %w at [r0] dirty
  c0 = run n0 on compute in [r0] out [r1]
  c1 = copy r1 -> r2 on d2h wait [c0]
  c2 = run n1 on compute in [r0] out [r3]
  c3 = copy r2 -> r4 on h2d wait [c1]
  c4 = run n2 on compute in [r4, r3] out [r5] wait [c3]
}
)ir";

/// What is named first; a wait that is missing in one step is missing across the step boundary,
/// too.
std::string firstRule(const char* text, const Patches& patches) {
  const std::string rules = rulesOf(text, patches);
  return rules.substr(0, rules.find_first_of(" \n"));
}

TEST(VerifyIncidents, TheSlotIsSoundAsItStands) { EXPECT_EQ(rulesOf(kSlot), ""); }

// pytorch/torchtitan#2581: the offload asked its own stream to wait for itself, which does
// nothing. It reads too early, and writes a slot that the last step's copy in may still read.
TEST(VerifyIncidents, AnOffloadThatWaitsForItsOwnStream) {
  EXPECT_EQ(rulesOf(kSlot, {{"on d2h wait [c0]", "on d2h"}}).substr(0, 7), "V10 V24");
}

// huggingface/trl#7195, first race: the event waited for was recorded on the stream that was
// current when the wrapper was built, not on the one that wrote the activation.
TEST(VerifyIncidents, AnOffloadThatWaitsForAnotherStream) {
  EXPECT_EQ(firstRule(kSlot, {{"on d2h wait [c0]", "on d2h prev [c3]"}}), "V10");
}

// huggingface/trl#7195, second race (axolotl-ai-cloud/axolotl#3833): what is copied was written
// after the event had been recorded.
TEST(VerifyIncidents, AnOffloadOfWhatIsWrittenAfterItsEvent) {
  EXPECT_EQ(rulesOf(kInPlace, {{"c3 = copy r2 -> r4 on d2h wait [c2]",
                                "c3 = copy r2 -> r4 on d2h wait [c0]"}}),
            "V10");
}

// NVIDIA/Megatron-LM#7398: a reload on the spot that does not wait for the copy that fills the
// slot.
TEST(VerifyIncidents, AReloadThatDoesNotWaitForItsOffload) {
  EXPECT_EQ(firstRule(kSlot, {{"on h2d wait [c1]", "on h2d"}}), "V10");
}

// meta-pytorch/torchtune#1867: the activation was freed, and its bytes given to another tensor,
// while the offload still read them.
TEST(VerifyIncidents, BytesFreedUnderAOffload) {
  EXPECT_EQ(rulesOf(kSlot, {{"residency r3 %b device 192", "residency r3 %b device 128"}}), "V13");
}

}  // namespace
}  // namespace stowage::tests
