// SPDX-License-Identifier: Apache-2.0
//
// The text form of schedules, and every example of tools/docs/text-form.md.

#include <gtest/gtest.h>

#include <checkout_folders.h>

#include <fstream>
#include <sstream>

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"

namespace stowage::ir {
namespace {

constexpr const char* kGraph =
    "graph @g version=1 {\n"
    "  input %x : f32[4]\n"
    "  parameter %w : f32[4]\n"
    "  %h : f32[4] = aten.mul.Tensor(%x, %w)\n"
    "  %w = aten.add_.Tensor(inout %w, %h, 1)\n"
    "}\n";
constexpr const char* kHeader =
    "schedule @g level=placed graph=\"xxh3:1\" target=\"xxh3:2\" ops=7 mode=no_update joined {\n";

Module parsed(const std::string& text) {
  Expected<Module> module = parseModule(text);
  if (module) return std::move(*module);
  ADD_FAILURE() << describe(module.takeError()) << "\nin\n" << text;
  return {};
}

std::string failure(const std::string& body) {
  Expected<Module> module = parseModule(kGraph + (kHeader + body) + "}\n", "f.ir");
  return module ? "no error" : describe(module.takeError());
}

Schedule fullSchedule() {
  const auto r = [](int index) { return ResidencyId(index); };
  const auto c = [](int index) { return CommandId(index); };
  Schedule schedule{
      .level = Level::kPlaced,
      .graphFingerprint = "xxh3:1",
      .targetFingerprint = "xxh3:2",
      .opTableVersion = 7,
      .arenas = {{Space::kDevice, Bytes(4096)},
                 {Space::kHost, Bytes(512)},
                 {Space::kDisk, Bytes(8192)}},
      .reserved = {{.what = "cublas", .stream = 0, .offset = Bytes(0), .bytes = Bytes(64)}},
      .graphMode = GraphMode::kNoUpdate,
      .joined = true};
  schedule.decisions = {{StorageId(1), 1, 4, GapAction::kDisk, true, "cheap\"est"},
                        {StorageId(2), 0, 1, GapAction::kRecompute, false, ""}};
  schedule.residencies = {{StorageId(0), Space::kHost, 0},
                          {StorageId(0), Space::kDevice, kUnplaced},
                          {StorageId(1), Space::kDevice, 512},
                          {StorageId(2), Space::kDevice, 1024}};
  schedule.boundary = {{StorageId(0), {r(0)}, false}, {StorageId(1), {r(2)}, true}};
  schedule.commands = {{.kind = CommandKind::kCopy,
                        .stream = Stream::kHostToDevice,
                        .from = r(0),
                        .to = r(1),
                        .prev = {c(2)}},
                       {.node = NodeId(0),
                        .in = {r(1), r(2)},
                        .out = {r(3)},
                        .temp = {kUnplaced, Bytes(64)},
                        .rngSlot = 0,
                        .wait = {c(0)}},
                       {.node = NodeId(0),
                        .recompute = 2,
                        .in = {r(1), r(2)},
                        .out = {r(3)},
                        .temp = {512, Bytes(0)},
                        .takes = r(1),
                        .wait = {c(0), c(1)},
                        .prev = {c(1), c(3)}},
                       {.stream = Stream::kHostCompute, .node = NodeId(1)}};
  schedule.predicted = {.peakBytes = Bytes(1),
                        .hostPeakBytes = Bytes(2),
                        .stepTime = Nanoseconds(3),
                        .bound = Nanoseconds(4),
                        .computeTime = Nanoseconds(5),
                        .bytesOut = Bytes(6),
                        .bytesIn = Bytes(7)};
  return schedule;
}

TEST(ScheduleText, EveryFieldIsWrittenAndReadBack) {
  const Graph graph = parsed(kGraph).graph;
  const Schedule schedule = fullSchedule();
  const std::string text = toText(graph, schedule);
  const Module module = parsed(text);
  ASSERT_TRUE(module.schedule.has_value());
  EXPECT_EQ(*module.schedule, schedule);
  EXPECT_EQ(toText(module.graph, *module.schedule), text);
  EXPECT_EQ(*parsed(toText(graph, schedule, {.comments = true})).schedule, schedule);
  EXPECT_EQ(
      text.substr(text.find("schedule")),
      kHeader + std::string("  arena device 4096\n"
                            "  arena host 512\n"
                            "  arena disk 8192\n"
                            "  reserved \"cublas\" stream=0 offset=0 bytes=64\n"
                            "  claim peak_bytes=1 host_peak_bytes=2 step_ns=3 bound_ns=4 "
                            "compute_ns=5 out_bytes=6 in_bytes=7\n"
                            "  decide %w [1,4) disk pinned \"cheap\\\"est\"\n"
                            "  decide %h [0,1) recompute\n"
                            "  residency r0 %x host 0\n"
                            "  residency r1 %x device @-\n"
                            "  residency r2 %w device 512\n"
                            "  residency r3 %h device 1024\n"
                            "  boundary %x at [r0]\n"
                            "  boundary %w at [r2] dirty\n"
                            "  c0 = copy r0 -> r1 on h2d prev [c2]\n"
                            "  c1 = run n0 on compute in [r1, r2] out [r3] temp @-+64 rng 0 wait "
                            "[c0]\n"
                            "  c2 = run n0 recompute 2 on compute in [r1, r2] out [r3] temp 512+0 "
                            "takes r1 wait [c0, c1] prev [c1, c3]\n"
                            "  c3 = run n1 on host\n"
                            "}\n"));
}

TEST(ScheduleText, WaitsMayPointForwardButNotAtNothing) {
  EXPECT_EQ(failure("  c0 = run n0 on compute wait [c1]\n  c1 = run n1 on compute\n"), "no error");
  EXPECT_EQ(failure("  c0 = run n0 on compute wait [c0] prev [c2]\n  c1 = run n1 on compute\n"),
            "f.ir:8:42: found 'c2', expected one of 2 commands");
}

TEST(ScheduleText, BrokenReferencesAreRefusedWithTheirPlace) {
  EXPECT_EQ(failure("  residency r1 %x host 0\n"), "f.ir:8:13: found 'r1', expected r0");
  EXPECT_EQ(failure("  residency r0 %y host 0\n"),
            "f.ir:8:16: found '%y', expected a value that is declared above");
  EXPECT_EQ(failure("  residency r0 %x moon 0\n"), "f.ir:8:19: found 'moon', expected a space");
  EXPECT_EQ(failure("  residency r0 %x host -1\n"),
            "f.ir:8:24: found '-1', expected an offset or @- that is not negative");
  EXPECT_EQ(failure("  boundary %x at [r0]\n"),
            "f.ir:8:19: found 'r0', expected one of 0 residencies");
  EXPECT_EQ(failure("  c1 = run n0 on compute\n"), "f.ir:8:3: found 'c1', expected c0");
  EXPECT_EQ(failure("  c0 = run n2 on compute\n"),
            "f.ir:8:12: found 'n2', expected one of 2 nodes");
  EXPECT_EQ(failure("  c0 = walk n0 on compute\n"),
            "f.ir:8:8: found 'walk', expected 'run' or 'copy'");
  EXPECT_EQ(failure("  c0 = run n0 on air\n"), "f.ir:8:18: found 'air', expected a stream");
  EXPECT_EQ(failure("  c0 = run n0 recompute 4294967296 on air\n"),
            "f.ir:8:25: found '4294967296', expected a number of a recompute");
  EXPECT_EQ(failure("  c0 = run n99999999999999999999 on air\n"),
            "f.ir:8:12: found 'n99999999999999999999', expected a node like n0");
  EXPECT_EQ(failure("  arena device 5 host\n"), "f.ir:8:18: found 'host', expected a new line");
  EXPECT_EQ(failure("  residency r0 %x host 0\n  arena device 5\n"),
            "f.ir:9:3: found 'arena', expected a command like c0");
  EXPECT_EQ(failure("  [\n"),
            "f.ir:8:3: found '[', expected '}' or the next part of a schedule (arena, reserved, "
            "claim, decide, residency, boundary, commands, in that order)");
}

TEST(ScheduleText, BelongsToItsGraph) {
  Expected<Module> module =
      parseModule(std::string(kGraph) + "schedule @other level=ordered graph=\"\"", "f.ir");
  EXPECT_EQ(describe(module.takeError()),
            "f.ir:7:10: found a schedule of '@other', expected one of '@g'");
}

// Fenced blocks of a README, in order.
std::vector<std::string> readExamples(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> examples;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("```", 0) == 0) {
      inside = !inside;
      if (inside) examples.emplace_back();
    } else if (inside) {
      examples.back() += line + "\n";
    }
  }
  return examples;
}

TEST(Readme, ExamplesAreCanonicalAndProven) {
  const std::vector<std::string> examples =
      readExamples(STOWAGE_SOURCE_DIR "/tools/docs/text-form.md");
  ASSERT_EQ(examples.size(), 2u) << "a graph and its schedule";
  const Module module = parsed(examples[0] + examples[1]);
  ASSERT_TRUE(module.schedule.has_value());
  EXPECT_EQ(toText(module.graph, *module.schedule), examples[0] + examples[1]);
  const std::vector<Violation> violations =
      verify({.graph = module.graph, .schedule = *module.schedule, .target = Target{}});
  for (const Violation& violation : violations) ADD_FAILURE() << violation.message;
}

}  // namespace
}  // namespace stowage::ir
