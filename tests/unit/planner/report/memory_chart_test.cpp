// SPDX-License-Identifier: Apache-2.0
#include "planner/report/memory_chart.h"

#include <gtest/gtest.h>

namespace stowage::planner {
namespace {

using namespace stowage::literals;  // NOLINT: for sizes

std::string draw(const MemoryChart& chart) {
  std::string text;
  llvm::raw_string_ostream os(text);
  drawMemory(chart, os);
  return os.str();
}

MemoryPoint pointAt(int64_t ms, int64_t parametersMiB, int64_t activationsMiB) {
  MemoryPoint point{.start = Nanoseconds(ms * 1'000'000), .bytes = {}};
  point.bytes[0] = parametersMiB << 20;
  point.bytes[3] = activationsMiB << 20;
  return point;
}

// Panels begin at x = 70 and 500 and are 380 wide; bytes run from y = 320 up to 76. The axes end at
// 10 MiB (24.4 pixels each) and at 100 ms (3.8 pixels each).
MemoryChart sample() {
  return {.title = "'a <b>'",
          .unplanned = {.points = {pointAt(0, 2, 0), pointAt(50, 2, 8)},
                        .stepTime = Nanoseconds(80'000'000)},
          .planned = {.points = {pointAt(0, 2, 3)}, .stepTime = Nanoseconds(100'000'000)},
          .budget = 5_MiB};
}

TEST(MemoryChart, StacksTheGroupsOverTime) {
  const std::string text = draw(sample());
  // Parameters: from 70 to 70 + 80 * 3.8 = 374, at 320 - 2 * 24.4.
  EXPECT_NE(text.find("<path fill=\"#1f5fa8\" d=\"M70 271.2H374V320.0H70Z\"/>"), std::string::npos)
      << text;
  // Activations, on top of them: nothing before 50 ms = 190 pixels, then up to 10 MiB.
  EXPECT_NE(text.find("<path fill=\"#2e8540\" d=\"M70 271.2H260V76.0H374V271.2H70Z\"/>"),
            std::string::npos)
      << text;
  // The plan: 5 MiB all the way.
  EXPECT_NE(text.find("<path fill=\"#2e8540\" d=\"M500 198.0H880V271.2H500Z\"/>"),
            std::string::npos)
      << text;
}

TEST(MemoryChart, SaysPeaksStepsAndBudget) {
  const std::string text = draw(sample());
  for (const char* words :
       {">everything kept: peak 10.00 MiB, step 80.00 ms<",
        ">planned: peak 5.00 MiB, step 100.00 ms<", ">budget 5.00 MiB<", ">device bytes (MiB)<",
        ">time in the step (ms)<", ">activations<", "'a &lt;b&gt;'"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words;
  }
}

// Bug: a control character in a name made a picture that no reader of XML takes.
TEST(MemoryChart, TakesAnyBytesAsAName) {
  MemoryChart chart = sample();
  chart.title = "a\x1b&\xff";
  EXPECT_NE(draw(chart).find(R"(>a\x1b&amp;\xff<)"), std::string::npos) << draw(chart);
}

TEST(MemoryChart, DrawsAStepOfNothing) {
  MemoryChart chart = sample();
  chart.unplanned = {};
  chart.planned = {};
  EXPECT_NE(draw(chart).find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace stowage::planner
