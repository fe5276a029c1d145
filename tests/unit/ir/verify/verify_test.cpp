// SPDX-License-Identifier: Apache-2.0
//
// One schedule that keeps a rule and the smallest change that breaks it, and it alone, for each
// rule. Whether nothing slips through in larger schedules: tests/property/mutation_test.cpp.
#include "ir/verify/verify.h"

#include <gtest/gtest.h>

#include <functional>

#include "ir/graph/op_table.h"
#include "ir/schedule/fingerprint.h"
#include "tests/unit/ir/verify/checked_case.h"
#include "tests/unit/ir/verify/verify_cases.h"

namespace stowage::tests {
namespace {

using ir::CommandId;
using ir::ResidencyId;

TEST(Verify, AcceptsTheCases) {
  EXPECT_EQ(rulesOf(kOffload), "");
  EXPECT_EQ(rulesOf(kRecompute), "");
  EXPECT_EQ(rulesOf(kInPlace), "");
}

// --- what there is, and where it runs ---

TEST(Verify, V1WrongNumberOfOperands) {
  EXPECT_EQ(rulesOf(kOffload, {{"in [r9, r6]", "in [r9]"}}), "V1");
}

TEST(Verify, V1IdsOutOfRange) {
  const std::vector<std::function<void(ir::Schedule&)>> changes = {
      [](ir::Schedule& s) { s.residencies[0].storage = ir::StorageId(99); },
      [](ir::Schedule& s) { s.residencies[0].storage = ir::StorageId(); },
      [](ir::Schedule& s) { s.commands[1].node = ir::NodeId(99); },
      [](ir::Schedule& s) { s.commands[1].in[0] = ResidencyId(99); },
      [](ir::Schedule& s) { s.commands[1].wait = {CommandId(99)}; },
      [](ir::Schedule& s) { s.commands[1].prev = {CommandId()}; },
      [](ir::Schedule& s) { s.commands[4].takes = ResidencyId(99); },
      [](ir::Schedule& s) { s.commands[0].to = ResidencyId(); },
      [](ir::Schedule& s) { s.commands[0].in.push_back(ResidencyId(0)); },
      [](ir::Schedule& s) { s.boundary[0].at = {ResidencyId(99)}; },
      [](ir::Schedule& s) { s.boundary[1].storage = ir::StorageId(0); },
      [](ir::Schedule& s) { s.decisions[0].storage = ir::StorageId(99); },
      [](ir::Schedule& s) { s.decisions.push_back(s.decisions[0]); },
      [](ir::Schedule& s) { s.commands[1].stream = static_cast<ir::Stream>(9); },
      [](ir::Schedule& s) { s.commands[1].kind = static_cast<ir::CommandKind>(9); },
      [](ir::Schedule& s) { s.residencies[0].space = static_cast<ir::Space>(9); },
      [](ir::Schedule& s) { s.residencies[0].offset = INT64_MAX; },
      [](ir::Schedule& s) { s.commands[8].temp.bytes = Bytes(INT64_MAX); },
      [](ir::Schedule& s) { s.commands[8].temp.bytes = Bytes(-1); },
      [](ir::Schedule& s) { s.arenas[0].bytes = Bytes(-1); },
      [](ir::Schedule& s) { std::swap(s.arenas[0], s.arenas[1]); },
      [](ir::Schedule& s) { s.commands[1].recompute = -1; }};
  for (size_t i = 0; i < changes.size(); ++i) {
    CheckedCase checked = read(kOffload);
    changes[i](*checked.module.schedule);
    EXPECT_EQ(rulesOf(checked.input()), "V1") << "change " << i;
  }
}

TEST(Verify, V1AlignmentThatIsNoPowerOfTwo) {
  CheckedCase checked = read(kOffload);
  checked.target.alignBytes = 48;
  EXPECT_EQ(rulesOf(checked.input()), "V1");
}

TEST(Verify, V2OtherGraph) {
  EXPECT_EQ(rulesOf(kOffload, {{"graph=\"\"", "graph=\"xxh3:0123456789abcdef\""}}), "V2");
}

TEST(Verify, V3OtherTarget) {
  CheckedCase checked = read(kOffload);
  checked.target.intraOpThreads = 7;
  EXPECT_EQ(rulesOf(checked.input()), "V3");
}

TEST(Verify, V4OriginalTwice) {
  const Patch again{"out [r2]\n",
                    "out [r2]\n  c10 = run n3 on compute in [r6] out [r7] wait [c6]\n"};
  EXPECT_EQ(rulesOf(kOffload, {again, {"step_ns=60", "step_ns=70"}}), "V4");
}

TEST(Verify, V5RecomputeOfAnOpThatIsNotRecomputable) {
  const Patch unknown{"%b : f32[16] = aten.mul.Tensor(%a, %e)",
                      "%b : f32[16] = test.mul.Tensor(%a, %e)"};
  EXPECT_EQ(rulesOf(kRecompute, {unknown}), "V5");
}

TEST(Verify, V5RecomputeOutOfNumber) {
  EXPECT_EQ(rulesOf(kRecompute, {{"n2 recompute 1", "n2 recompute 2"}}), "V5");
}

TEST(Verify, V6DrawsOutOfOrder) {
  EXPECT_EQ(rulesOf(kRecompute, {{"c0 = run n0 on compute in [r0] out [r1, r2] rng 0",
                                  "c0 = run n1 on compute in [r0] out [r3, r4] rng 1 prev [c5]"},
                                 {"c1 = run n1 on compute in [r0] out [r3, r4] rng 1 prev [c5]\n",
                                  "c1 = run n0 on compute in [r0] out [r1, r2] rng 0\n"}}),
            "V6");
}

TEST(Verify, V6OutputNeverOnTheHost) {
  EXPECT_EQ(rulesOf(kInPlace, {{"%c : f32[16] =", "%c activation output : f32[16] ="}}), "V6");
}

TEST(Verify, V14WaitForLater) {
  EXPECT_EQ(rulesOf(kOffload, {{"out [r5]\n", "out [r5] wait [c3]\n"}}), "V14");
}

TEST(Verify, V15StreamsThatDoNotFit) {
  EXPECT_EQ(rulesOf(kInPlace, {{"copy r0 -> r8 on d2h", "copy r0 -> r8 on compute"}}), "V15");
  EXPECT_EQ(
      rulesOf(kOffload, {{"run n5 on compute", "run n5 on collective"},
                         {"in [r2, r10] out [r2]", "in [r2, r10] out [r2] wait [c8]"},
                         {"c1 = run n0 on compute in [r1, r2] out [r3] wait [c0] prev [c6]",
                          "c1 = run n0 on compute in [r1, r2] out [r3] wait [c0] prev [c6, c9]"}}),
      "V15");
}

TEST(Verify, V15OpOnTheHostWithBytesOfTheDevice) {
  EXPECT_EQ(rulesOf(kInPlace, {{"run n4 on compute in [r5] out [r5]",
                                "run n4 on host in [r5] out [r5] wait [c6]"},
                               {"c4 = run n2 on compute in [r0] out [r5] wait [c3]",
                                "c4 = run n2 on compute in [r0] out [r5] wait [c3] prev [c7]"}}),
            "V15");
}

TEST(Verify, V25WholeStepGraphs) {
  EXPECT_EQ(rulesOf(kOffload, {{"mode=none flowing", "mode=whole flowing"}}), "V25");
  EXPECT_EQ(rulesOf(kRecompute, {{"mode=none flowing", "mode=none joined"}}), "V25");
  EXPECT_EQ(rulesOf(kRecompute, {{"mode=none flowing", "mode=whole joined"}, {" prev [c5]", ""}}),
            "");
}

// What a graph holds was read on the host once, when it was recorded.
TEST(Verify, V25RecordedLaunchesThatReadChangingBytesOfTheHost) {
  const auto withRate = [](const char* mode, const Patch& reader, const Patch& run) {
    return rulesOf(kRecompute, {{"mode=none flowing", std::string("mode=") + mode + " flowing"},
                                {"  parameter %w", "  input %h host : f32[]\n  parameter %w"},
                                {"arena host 64", "arena host 128"},
                                {"  boundary %w",
                                 "  residency r13 %h host 64\n"
                                 "  boundary %h at [r13]\n  boundary %w"},
                                reader,
                                run});
  };
  const Patch inForward{"aten.mul.Tensor(%b, %e)", "aten.mul.Tensor(%b, %h)"};
  const Patch runForward{"run n3 on compute in [r5, r3]", "run n3 on compute in [r5, r13]"};
  EXPECT_EQ(withRate("none", inForward, runForward), "");
  EXPECT_EQ(withRate("no_update", inForward, runForward), "V25");
  const Patch inUpdate{"aten.add_.Tensor(inout %w, %d, 1)", "aten.add_.Tensor(inout %w, %h, 1)"};
  const Patch runUpdate{"run n6 on compute in [r0, r12]", "run n6 on compute in [r0, r13]"};
  EXPECT_EQ(withRate("no_update", inUpdate, runUpdate), "");
}

TEST(Verify, V25RecordedLaunchesThatLeaveResultsOnTheHost) {
  const auto withResult = [](const char* mode) {
    return rulesOf(kRecompute, {{"mode=none flowing", std::string("mode=") + mode + " flowing"},
                                {"%d : f32[16] =", "%d host : f32[16] ="},
                                {"arena host 64", "arena host 128"},
                                {"residency r12 %d device 384", "residency r12 %d host 64"}});
  };
  EXPECT_EQ(withResult("none"), "");
  EXPECT_EQ(withResult("no_update"), "V25");
}

TEST(Verify, V27StepScalarWithoutFeed) {
  CheckedCase checked = read(kOffload);
  ir::GraphBuilder builder(checked.module.graph);
  for (ir::Node node : checked.module.graph.nodes()) {
    for (ir::Argument& argument : node.args) {
      if (std::holds_alternative<ir::ScalarArg>(argument))
        argument = ir::ScalarArg{ir::ScalarId(5)};
    }
    builder.addNode(std::move(node));
  }
  checked.module.graph = std::move(builder).finish();
  checked.module.schedule->graphFingerprint = ir::fingerprint(checked.module.graph);
  EXPECT_EQ(rulesOf(checked.input()), "V27");
}

TEST(Verify, V28OtherOpTable) { EXPECT_EQ(rulesOf(kOffload, {{"ops=0", "ops=999"}}), "V28"); }

// --- what is read ---

TEST(Verify, V7StaleCopyOnTheHost) {
  EXPECT_EQ(rulesOf(kInPlace, {{"c5 = copy r4 -> r6", "c5 = copy r3 -> r6"}}), "V7");
}

TEST(Verify, V7UpdateBeforeALastReader) {
  // The recompute of n0 reads %w after n6 has changed it.
  EXPECT_EQ(rulesOf(kRecompute, {{"c6 = run n0 recompute 1 on compute in [r0] out [r9, r10] rng 0",
                                  "c6 = run n6 on compute in [r0, r13] out [r0]"},
                                 {"c9 = run n6 on compute in [r0, r12] out [r0]",
                                  "c9 = run n0 recompute 1 on compute in [r0] out [r9, r10] rng 0"},
                                 {"  boundary %w", "  residency r13 %d device 384\n  boundary %w"}})
                .substr(0, 2),
            "V7");
}

TEST(Verify, V8NothingCopiedIn) {
  // c0 fills a residency that nobody reads.
  EXPECT_EQ(rulesOf(kOffload, {{"copy r0 -> r1", "copy r0 -> r11"},
                               {"  boundary %x", "  residency r11 %x device 64\n  boundary %x"}}),
            "V8");
}

TEST(Verify, V9CopiesThatCannotBe) {
  EXPECT_EQ(rulesOf(kInPlace, {{"copy r4 -> r6 on h2d", "copy r4 -> r6 on d2h"}}), "V9");
  EXPECT_EQ(rulesOf(kInPlace, {{"copy r0 -> r8 on d2h", "copy r1 -> r8 on d2h"}}), "V9");
  EXPECT_EQ(rulesOf(kInPlace, {{"residency r8 %t host 128", "residency r8 %b host 128"},
                               {"c9 = copy r1 -> r8 on disk_read wait [c8]\n", ""},
                               {" prev [c9]", ""}}),
            "V9");
}

TEST(Verify, V9CopyOfNothing) {
  EXPECT_EQ(rulesOf(kInPlace, {{"copy r0 -> r8 on d2h", "copy r9 -> r10 on d2h"},
                               {"  boundary %t", "  residency r10 %b host 128\n  boundary %t"},
                               {"c9 = copy r1 -> r8 on disk_read wait [c8]\n", ""},
                               {" prev [c9]", ""}}),
            "V9");
}

TEST(Verify, V22InPlaceOnTwoResidencies) {
  EXPECT_EQ(rulesOf(kInPlace,
                    {{"run n4 on compute in [r5] out [r5]", "run n4 on compute in [r5] out [r9]"}}),
            "V22");
}

TEST(Verify, V23Boundary) {
  EXPECT_EQ(rulesOf(kOffload, {{"at [r2] dirty", "at [r2]"}}), "V23");
  EXPECT_EQ(rulesOf(kInPlace, {{"at [r0, r1]", "at [r0, r1] dirty"}}), "V23");
  EXPECT_EQ(rulesOf(kOffload, {{"boundary %w at [r2] dirty", "boundary %w"}}).substr(0, 6),
            "V8 V23");
}

TEST(Verify, V26WrongRngSlot) {
  EXPECT_EQ(rulesOf(kRecompute, {{"out [r9, r10] rng 0", "out [r9, r10] rng 1"}}), "V26");
  EXPECT_EQ(rulesOf(kRecompute, {{"out [r9, r10] rng 0", "out [r9, r10]"}}), "V26");
}

// --- order ---

TEST(Verify, V10ReadDuringAWrite) {
  EXPECT_EQ(rulesOf(kOffload, {{"temp 384+64 wait [c7]", "temp 384+64"}}), "V10");
}

TEST(Verify, V11WriteDuringARead) {
  EXPECT_EQ(rulesOf(kInPlace, {{"out [r2] wait [c1]", "out [r2]"}}), "V11");
}

TEST(Verify, V12TwoWritesAtOnce) {
  EXPECT_EQ(rulesOf(kInPlace, {{"disk_read wait [c8]", "disk_read"}}), "V12");
}

TEST(Verify, V24WaitOnTheStepBeforeDropped) {
  EXPECT_EQ(rulesOf(kOffload, {{"on h2d prev [c8]", "on h2d"}}), "V24");
  EXPECT_EQ(rulesOf(kOffload, {{"wait [c0] prev [c6]", "wait [c0]"}}), "V24");
}

// --- bytes ---

TEST(Verify, V13BytesOfALiveResidency) {
  EXPECT_EQ(rulesOf(kOffload, {{"%d device 320", "%d device 256"}}), "V13");
}

TEST(Verify, V13BytesReusedDuringAOffload) {
  EXPECT_EQ(rulesOf(kOffload, {{"out [r7] wait [c2]", "out [r7]"}}), "V13");
}

TEST(Verify, V13BytesHeldIntoTheNextStep) {
  // The scratch of c7 on bytes that %t keeps for ever.
  EXPECT_EQ(rulesOf(kInPlace, {{"%c device 320", "%c device 64"}}), "V13");
}

// A live range that begins late in a step, crosses the step boundary and serves the next step's
// first launch.
constexpr const char* kOverTheBoundary = R"ir(
graph @boundary version=1 device="cpu" target="cpu" {
  input %x "x" : f32[16]
  buffer %b "b" : f32[16]
forward "":
  %b = aten.add_.Tensor(inout %b, %x, 1)
  %y : f32[16] = aten.relu.default(%x)
  %b = aten.add_.Tensor(inout %b, %y, 1)
  %z : f32[16] = aten.mul.Tensor(%b, %x)
}
schedule @boundary level=ordered graph="" target="" ops=0 mode=none flowing {
  arena device 1024
  arena host 1024
  residency r0 %b device @-
  residency r1 %b device @-
  residency r2 %x device @-
  residency r3 %y device @-
  residency r4 %z device @-
  residency r5 %x host @-
  boundary %x at [r5]
  boundary %b at [r0] dirty
  c0 = run n0 on compute in [r0, r2] out [r0]
  c1 = run n1 on compute in [r2] out [r3]
  c2 = run n2 on compute in [r1, r3] out [r1]
  c3 = run n3 on compute in [r0, r2] out [r4]
}
)ir";

TEST(Verify, V7BeforeCopiesALiveRangeOverTheBoundaryIsFilledAgain) {
  EXPECT_EQ(rulesOf(kOverTheBoundary), "");
  EXPECT_EQ(rulesOf(kOverTheBoundary, {{"boundary %b at [r0]", "boundary %b at [r1]"}}), "V7");
}

TEST(Verify, V16PlacesOutsideOfTheArena) {
  EXPECT_EQ(rulesOf(kInPlace, {{"%c device 320", "%c device 448"}}), "V16");
  EXPECT_EQ(rulesOf(kInPlace,
                    {{"%c device 320", "%c device 304"}, {"r6 %a device 256", "r6 %a device 128"}}),
            "V16");
  EXPECT_EQ(rulesOf(kInPlace, {{"%c device 320", "%c device @-"}}), "V16");
}

TEST(Verify, V17TempRegions) {
  EXPECT_EQ(
      rulesOf(kOffload, {{"temp 384+64", "temp 320+64"}, {"peak_bytes=448", "peak_bytes=384"}}),
      "V17");
  CheckedCase checked = read(kOffload);
  checked.costs.nodes[4].temporary = Bytes(65);
  EXPECT_EQ(rulesOf(checked.input()), "V17");
}

TEST(Verify, V18ReservedRegions) {
  EXPECT_EQ(rulesOf(kOffload, {{"%d device 320", "%d device 0"}}), "V18");
  EXPECT_EQ(rulesOf(kOffload, {{"offset=0 bytes=64", "offset=0 bytes=32"}}), "V18");
}

TEST(Verify, V19HostAndDisk) {
  EXPECT_EQ(rulesOf(kOffload, {{"arena host 192", "arena host 191"}}), "V19");
  EXPECT_EQ(
      rulesOf(kInPlace, {{"arena disk 4096", "arena disk 8192"}, {"%t disk 0", "%t disk 512"}}),
      "V19");
  // Within the step, and over the step boundary to the next one.
  EXPECT_EQ(rulesOf(kInPlace, {{"%a host 64", "%a host 128"}}).substr(0, 8), "V19 V24\n");
}

TEST(Verify, V19BytesOfInputsAndOutputsAreTheirOwn) {
  // Nothing uses %a on the host while the caller reads the loss, as far as the waits tell.
  EXPECT_EQ(rulesOf(kOffload, {{"%l host 128", "%l host 64"},
                               {"host_peak_bytes=192", "host_peak_bytes=128"}}),
            "V19");
  EXPECT_EQ(rulesOf(kOffload, {{"%a host 64", "%a host 0"}}), "V19");
}

TEST(Verify, V19TheHostArenaIsWithinItsLimit) {
  CheckedCase checked = read(kOffload);
  checked.hostLimit = Bytes(192);
  EXPECT_EQ(rulesOf(checked.input()), "");
  checked.hostLimit = Bytes(191);
  EXPECT_EQ(rulesOf(checked.input()), "V19");
}

TEST(Verify, V20Claims) {
  EXPECT_EQ(rulesOf(kOffload, {{" peak_bytes=448", " peak_bytes=512"}}), "V20");
  EXPECT_EQ(rulesOf(kOffload, {{"in_bytes=128", "in_bytes=64"}}), "V20");
  CheckedCase checked = read(kOffload);
  checked.budget = Bytes(512);
  EXPECT_EQ(rulesOf(checked.input()), "V20");
}

TEST(Verify, V21InPlaceReuse) {
  const Patch unknown{"%c : f32[16] = aten.mul.Tensor(%b, %b)",
                      "%c : f32[16] = test.mul.Tensor(%b, %b)"};
  EXPECT_EQ(rulesOf(kOffload, {unknown}), "V21");
  const Patch copied{"c5 = run n3", "c5 = copy r5 -> r11 on d2h wait [c4]\n  c6 = run n3"};
  EXPECT_EQ(
      rulesOf(kOffload, {{"%c device 256", "%c device 320"}, {"%d device 320", "%d device 256"}}),
      "V21");
}

TEST(Verify, V30ImpossibleTimes) {
  EXPECT_EQ(rulesOf(kOffload, {{"bound_ns=60", "bound_ns=61"}}), "V30");
  EXPECT_EQ(rulesOf(kOffload, {{"compute_ns=60", "compute_ns=59"}}), "V30");
  EXPECT_EQ(rulesOf(kOffload, {{"step_ns=60 bound_ns=60", "step_ns=59 bound_ns=59"}}), "V30");
}

TEST(Verify, V31DecisionsThatTheCommandsContradict) {
  EXPECT_EQ(rulesOf(kOffload, {{"[1,4) host", "[1,4) recompute"}}), "V31");
  EXPECT_EQ(rulesOf(kOffload, {{"  decide %a [1,4) host \"hand\"\n", ""}}), "V31");
  EXPECT_EQ(rulesOf(kOffload, {{"[1,4) host", "[0,4) host"}}), "V31");
  EXPECT_EQ(rulesOf(kOffload, {{"decide %a", "decide %w [0,5) keep \"hand\"\n  decide %a"}}),
            "V31");
}

}  // namespace
}  // namespace stowage::tests
