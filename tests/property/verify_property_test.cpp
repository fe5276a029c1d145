// SPDX-License-Identifier: Apache-2.0
//
// The verifier accepts what is right: schedules made at random, from seeds that the failure names.
#include <gtest/gtest.h>

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_schedule.h"
#include "tests/support/sample_graph.h"

namespace stowage::tests {
namespace {

std::string describeViolations(const std::vector<ir::Violation>& violations) {
  std::string text;
  for (const ir::Violation& violation : violations) {
    text += "V" + std::to_string(violation.rule) + ": " + violation.message + "\n";
  }
  return text;
}

ir::Target smallTarget() {
  ir::Target target;
  target.profile = "cpu";
  target.alignBytes = 64;
  target.reserved = {{.what = "workspace", .bytes = Bytes(256)}};
  return target;
}

void expectClean(const ir::Graph& graph, uint64_t seed) {
  const ir::Target target = smallTarget();
  const ir::Schedule schedule = makeRandomSchedule(graph, target, randomStyle(seed));
  const auto violations = ir::verify({.graph = graph, .schedule = schedule, .target = target});
  ASSERT_TRUE(violations.empty()) << "seed " << seed << "\n"
                                  << describeViolations(violations) << ir::toText(graph, schedule);
}

/// The schedule as the lowering passes had it one level earlier, and earlier still.
void lowerLevel(ir::Schedule& schedule) {
  if (schedule.level == ir::Level::kSynced) {
    schedule.level = ir::Level::kPlaced;
    for (ir::Command& command : schedule.commands) {
      command.wait.clear();
      command.prev.clear();
    }
  } else if (schedule.level == ir::Level::kPlaced) {
    schedule.level = ir::Level::kCopied;
    schedule.arenas.clear();
    schedule.reserved.clear();
    schedule.predicted = {};
    for (ir::Residency& residency : schedule.residencies) residency.offset = ir::kUnplaced;
    for (ir::Command& command : schedule.commands) command.temp.offset = ir::kUnplaced;
  } else {
    schedule.level = ir::Level::kOrdered;
    std::erase_if(schedule.commands, [](const ir::Command& command) {
      return command.kind == ir::CommandKind::kCopy;
    });
  }
}

TEST(VerifyProperty, AcceptsEachLevelOnTheWay) {
  const ir::Target target = smallTarget();
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const ir::Graph graph = makeRandomStep(seed, {.maxLayers = 2});
    ir::Schedule schedule = makeRandomSchedule(graph, target, randomStyle(seed));
    for (int level = 0; level < 3; ++level) {
      lowerLevel(schedule);
      const auto violations = ir::verify({.graph = graph, .schedule = schedule, .target = target});
      ASSERT_TRUE(violations.empty())
          << "seed " << seed << " at " << ir::levelName(schedule.level) << "\n"
          << describeViolations(violations) << ir::toText(graph, schedule);
    }
  }
}

TEST(VerifyProperty, AcceptsRandomSchedulesOfTheSample) {
  auto graph = ir::parseGraph(kSampleGraph);
  ASSERT_TRUE(static_cast<bool>(graph)) << ir::describe(graph.takeError());
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ASSERT_NO_FATAL_FAILURE(expectClean(*graph, seed));
  }
}

TEST(VerifyProperty, AcceptsRandomSchedulesOfRandomSteps) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ASSERT_NO_FATAL_FAILURE(expectClean(makeRandomStep(seed, {.maxLayers = 3}), seed));
  }
}

TEST(VerifyProperty, AcceptsRandomSchedulesOfTinyGraphs) {
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    ASSERT_NO_FATAL_FAILURE(expectClean(makeTinyGraph(seed), seed));
  }
}

}  // namespace
}  // namespace stowage::tests
