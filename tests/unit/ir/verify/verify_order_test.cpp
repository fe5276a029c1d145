// SPDX-License-Identifier: Apache-2.0
//
// The verifier's order: by hand on a few commands, and on made-up ones against the definition,
// followed edge by edge. Also that the verifier's files see nothing but what they may.
#include "ir/verify/verify_order.h"

#include <gtest/gtest.h>

#include <checkout_folders.h>

#include <algorithm>
#include <regex>
#include <set>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/source_files.h"

namespace stowage::tests {
namespace {

using ir::CommandId;
using ir::Stream;
using ir::verifier::CommandInstance;
using ir::verifier::HappensBefore;
using ir::verifier::Ordering;

ir::Command command(Stream stream, llvm::ArrayRef<int32_t> wait = {},
                    llvm::ArrayRef<int32_t> prev = {}) {
  ir::Command made;
  made.stream = stream;
  for (const int32_t id : wait) made.wait.push_back(CommandId(id));
  for (const int32_t id : prev) made.prev.push_back(CommandId(id));
  return made;
}

CommandInstance at(int step, int32_t id) { return {step, CommandId(id)}; }

TEST(VerifyOrder, StreamsAreFirstInFirstOutIntoTheNextStep) {
  ir::Schedule schedule;
  schedule.commands = {command(Stream::kCompute), command(Stream::kHostToDevice),
                       command(Stream::kCompute)};
  const HappensBefore order(schedule, Ordering::kStreams);
  EXPECT_TRUE(order.isBefore(at(0, 0), at(0, 2)));
  EXPECT_TRUE(order.isBefore(at(0, 2), at(1, 0)));
  EXPECT_FALSE(order.isBefore(at(0, 0), at(0, 1)));
  EXPECT_FALSE(order.isBefore(at(0, 1), at(1, 0)));
  EXPECT_FALSE(order.isBefore(at(0, 2), at(0, 2)));
}

TEST(VerifyOrder, EnqueueOrderAloneOrdersNothingAcrossStreams) {
  ir::Schedule schedule;
  schedule.commands = {command(Stream::kCompute), command(Stream::kHostToDevice)};
  EXPECT_FALSE(HappensBefore(schedule, Ordering::kStreams).isBefore(at(0, 0), at(0, 1)));
  EXPECT_TRUE(HappensBefore(schedule, Ordering::kEnqueue).isBefore(at(0, 0), at(0, 1)));
  EXPECT_TRUE(HappensBefore(schedule, Ordering::kEnqueue).isBefore(at(0, 1), at(1, 0)));
}

TEST(VerifyOrder, WaitsReachAcrossStreamsAndSteps) {
  ir::Schedule schedule;
  schedule.commands = {command(Stream::kCompute, {}, {2}), command(Stream::kDeviceToHost, {0}),
                       command(Stream::kHostToDevice, {1})};
  const HappensBefore order(schedule, Ordering::kStreams);
  EXPECT_TRUE(order.isBefore(at(0, 0), at(0, 2)));  // through c1
  EXPECT_TRUE(order.isBefore(at(0, 1), at(1, 0)));  // through c2
  EXPECT_FALSE(order.isBefore(at(0, 2), at(0, 0)));
}

TEST(VerifyOrder, AJoinedStepEndsBeforeTheNextBegins) {
  ir::Schedule schedule;
  schedule.commands = {command(Stream::kCompute), command(Stream::kHostToDevice)};
  schedule.joined = true;
  const HappensBefore order(schedule, Ordering::kStreams);
  EXPECT_TRUE(order.isBefore(at(0, 1), at(1, 0)));
  EXPECT_FALSE(order.isBefore(at(0, 0), at(0, 1)));
}

TEST(VerifyOrder, WaitsThatPointForwardsCountForNothing) {
  ir::Schedule schedule;
  schedule.commands = {command(Stream::kCompute, {1}), command(Stream::kHostToDevice)};
  EXPECT_FALSE(HappensBefore(schedule, Ordering::kStreams).isBefore(at(0, 1), at(0, 0)));
}

ir::Schedule randomCommands(Random& random) {
  ir::Schedule schedule;
  schedule.joined = random.chance(20);
  const auto count = static_cast<int32_t>(random.between(1, 30));
  for (int32_t i = 0; i < count; ++i) {
    ir::Command made = command(static_cast<Stream>(random.between(0, ir::kStreamCount - 1)));
    for (int32_t other = 0; other < count; ++other) {
      if (other < i && random.chance(8)) made.wait.push_back(CommandId(other));
      if (!schedule.joined && random.chance(4)) made.prev.push_back(CommandId(other));
    }
    schedule.commands.push_back(made);
  }
  return schedule;
}

/// The command instances that `instance` waits for directly. An instance has the number
/// step * commands + command.
std::set<size_t> edgesInto(const ir::Schedule& schedule, size_t instance) {
  const size_t count = schedule.commands.size();
  const ir::Command& command = schedule.commands[instance % count];
  const size_t begin = instance / count * count;
  std::set<size_t> edges;
  for (size_t other = 0; other < instance; ++other) {
    if (schedule.commands[other % count].stream == command.stream) edges.insert(other);
    if (schedule.joined && other < begin) edges.insert(other);
  }
  for (const CommandId wait : command.wait) edges.insert(begin + wait.index());
  for (const CommandId prev : command.prev) {
    if (begin > 0) edges.insert(begin - count + prev.index());
  }
  return edges;
}

TEST(VerifyOrder, AgreesWithTheDefinition) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    const ir::Schedule schedule = randomCommands(random);
    const size_t count = schedule.commands.size();
    const HappensBefore order(schedule, Ordering::kStreams);
    std::vector<std::set<size_t>> before(2 * count);
    for (size_t instance = 0; instance < 2 * count; ++instance) {
      for (const size_t edge : edgesInto(schedule, instance)) {
        before[instance].insert(edge);
        before[instance].insert(before[edge].begin(), before[edge].end());
      }
      for (size_t other = 0; other < 2 * count; ++other) {
        const CommandInstance a{static_cast<int>(other / count), CommandId(other % count)};
        const CommandInstance b{static_cast<int>(instance / count), CommandId(instance % count)};
        ASSERT_EQ(order.isBefore(a, b), before[instance].count(other) > 0)
            << "round " << round << ": instance " << other << " before " << instance;
      }
    }
  }
}

TEST(VerifyOrder, TheVerifierSeesOnlyWhatItMay) {
  const std::set<std::string> allowed = {
      "ir/graph/graph.h",        "ir/graph/collectives.h",    "ir/schedule/schedule.h",
      "ir/graph/op_table.h",     "ir/schedule/target.h",      "ir/schedule/disk_block.h",
      "ir/costs/cost_table.h",   "ir/schedule/fingerprint.h", "ir/base/interval.h",
      "ir/base/ids.h",           "ir/base/units.h",           "ir/graph/type.h",
      "ir/base/error.h",         "ir/verify/verify.h",        "ir/verify/verify_internal.h",
      "ir/verify/verify_order.h"};
  const std::regex include(R"(^#include "([^"]+)\")");
  int files = 0;
  for (const SourceFile& source : readSources(STOWAGE_SOURCE_DIR, {".h", ".cpp"})) {
    if (!source.path.starts_with("ir/verify")) continue;
    ++files;
    for (const std::string& line : source.lines) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      EXPECT_TRUE(allowed.count(match[1]) > 0) << source.path << " includes " << match[1];
    }
  }
  EXPECT_GE(files, 10);
}

}  // namespace
}  // namespace stowage::tests
