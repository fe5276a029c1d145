// SPDX-License-Identifier: Apache-2.0
#include "tools/run/timeline_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/sample_plan.h"

namespace stowage::tests {
namespace {

using tools::MeasuredSteps;

/// Every command of the sample plan once per step, one after the other.
class TimelineFile : public testing::Test {
 protected:
  TimelineFile() {
    for (int64_t step = 1; step <= 3; ++step) {
      ir::StepTimes times{.step = step, .commands = {}};
      for (size_t i = 0; i < schedule().commands.size(); ++i) {
        const Nanoseconds begin(1'000'000 * step + 1000 * static_cast<int64_t>(i));
        times.commands.emplace_back(ir::CommandTimes{
            begin - Nanoseconds(200), begin - Nanoseconds(100), begin, begin + Nanoseconds(500)});
      }
      steps_.push_back(std::move(times));
    }
  }

  const ir::Schedule& schedule() const { return plan_.schedule; }
  MeasuredSteps measured() const {
    return {.graph = graph_, .schedule = schedule(), .steps = steps_, .predicted = std::nullopt};
  }
  static nlohmann::json write(const MeasuredSteps& measured) {
    std::string text;
    llvm::raw_string_ostream os(text);
    tools::writeTimeline(measured, os);
    return nlohmann::json::parse(os.str());
  }
  /// Slices by process and row.
  static std::map<std::pair<int, int>, int> countSlices(const nlohmann::json& trace) {
    std::map<std::pair<int, int>, int> counts;
    for (const auto& event : trace["traceEvents"]) {
      if (event["ph"] == "X") ++counts[{event["pid"], event["tid"]}];
    }
    return counts;
  }

  ir::Graph graph_ = makeSampleGraph();
  planner::PlanFile plan_ = makeSamplePlan();
  std::vector<ir::StepTimes> steps_;
};

TEST_F(TimelineFile, HoldsEveryCommandOnItsEngineAndOnTheLaunchThread) {
  const nlohmann::json trace = write(measured());
  const auto counts = countSlices(trace);
  std::map<int, int> expected;
  for (const ir::Command& command : schedule().commands)
    ++expected[static_cast<int>(command.stream)];
  for (const auto& [stream, count] : expected) EXPECT_EQ(counts.at({1, stream}), 3 * count);
  EXPECT_EQ(counts.at({1, ir::kStreamCount}), 3 * static_cast<int>(schedule().commands.size()));
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["ts"].get<double>(), 0);
    EXPECT_FALSE(event["name"].get<std::string>().empty());
  }
}

TEST_F(TimelineFile, PutsThePredictionBelow) {
  MeasuredSteps steps = measured();
  planner::Timeline predicted;
  for (size_t i = 0; i < schedule().commands.size(); ++i) {
    predicted.start.emplace_back(1000 * static_cast<int64_t>(i));
    predicted.end.emplace_back(1000 * static_cast<int64_t>(i) + 700);
  }
  steps.predicted = predicted;
  const nlohmann::json trace = write(steps);
  int slices = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["pid"] != 2) continue;
    ++slices;
    // Aligned with the measured step.
    const auto command = event["args"]["command"].get<int64_t>();
    const auto step = event["args"]["step"].get<int64_t>();
    const double first = steps_[0].commands[0]->launchBegin.value();
    EXPECT_DOUBLE_EQ(
        event["ts"].get<double>(),
        (1e6 * static_cast<double>(step) + 1000.0 * static_cast<double>(command) - first) / 1e3);
    EXPECT_DOUBLE_EQ(event["dur"].get<double>(), 0.7);
  }
  EXPECT_EQ(slices, 3 * static_cast<int>(schedule().commands.size()));
}

TEST_F(TimelineFile, IsAGzipFileWhenAskedFor) {
  const std::string text(100000, 'x');
  auto packed = tools::compressGzip(text);
  ASSERT_TRUE(bool(packed));
  EXPECT_LT(packed->size(), text.size() / 10);
  z_stream stream{};
  ASSERT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string back(text.size() + 1, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed->data()));
  stream.avail_in = static_cast<uInt>(packed->size());
  stream.next_out = reinterpret_cast<Bytef*>(back.data());
  stream.avail_out = static_cast<uInt>(back.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  back.resize(stream.total_out);
  (void)inflateEnd(&stream);
  EXPECT_EQ(back, text);
}

}  // namespace
}  // namespace stowage::tests
