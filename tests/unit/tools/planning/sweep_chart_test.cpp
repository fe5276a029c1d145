// SPDX-License-Identifier: Apache-2.0
#include "tools/planning/sweep_chart.h"

#include <gtest/gtest.h>

namespace stowage::tools {
namespace {

using namespace stowage::literals;  // NOLINT: for sizes

std::string draw(const SweepChart& chart) {
  std::string text;
  llvm::raw_string_ostream os(text);
  drawSweep(chart, os);
  return os.str();
}

size_t countOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

SweepPoint pointOf(Bytes budget, int64_t stepMs, int64_t boundMs) {
  return {.budget = budget,
          .plan = SweepPoint::Plan{.stepTime = Nanoseconds(stepMs * 1'000'000),
                                   .bound = Nanoseconds(boundMs * 1'000'000),
                                   .computeTime = Nanoseconds(40'000'000)}};
}

// The picture is 720 x 440; budgets run from x = 80 to 700, times from y = 380 up to 60. Here the
// budgets' axis goes from 0 to 10 MiB in steps of 2, 62 pixels per MiB; the times' from 0 to 100 ms
// in steps of 20, 3.2 pixels per ms.
SweepChart sample() {
  return {.title = "'a <b> & c'",
          .unplanned = 10_MiB,
          .points = {pointOf(10_MiB, 40, 40),
                     pointOf(5_MiB, 100, 50),
                     {.budget = 1_MiB, .plan = std::nullopt}}};
}

TEST(SweepChart, PutsPlansAndBoundsWhereTheirNumbersAre) {
  const std::string text = draw(sample());
  // 5 MiB: 80 + 310; 100 ms: 380 - 320; 50 ms: 380 - 160. 10 MiB: 700; 40 ms: 380 - 128.
  EXPECT_NE(text.find("points=\"390.0,60.0 700.0,252.0\""), std::string::npos) << text;
  EXPECT_NE(text.find("points=\"390.0,220.0 700.0,252.0\""), std::string::npos) << text;
  EXPECT_NE(text.find("<circle cx=\"390.0\" cy=\"60.0\""), std::string::npos) << text;
  EXPECT_EQ(countOf(text, "<circle "), 2U);
  EXPECT_NE(text.find("5.00 MiB: 100.00 ms a step, bound 50.00 ms"), std::string::npos) << text;
  EXPECT_NE(text.find("1.00 MiB: nothing fits"), std::string::npos) << text;
}

TEST(SweepChart, NamesAxesWithTheirUnits) {
  const std::string text = draw(sample());
  for (const char* words :
       {">device budget (MiB)<", ">step time (ms)<", ">lower bound<", ">plan (predicted)<",
        ">unlimited memory<", ">10</text>", ">100</text>"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words;
  }
}

TEST(SweepChart, IsSelfContainedAndSafe) {
  const std::string text = draw(sample());
  EXPECT_EQ(text.find("<svg xmlns=\"http://www.w3.org/2000/svg\""), 0U);
  EXPECT_EQ(text.substr(text.size() - 7), "</svg>\n");
  EXPECT_NE(text.find("'a &lt;b&gt; &amp; c'"), std::string::npos) << text;
  EXPECT_EQ(countOf(text, "http"), 1U);  // the namespace
  EXPECT_EQ(countOf(text, "nan") + countOf(text, "inf"), 0U);
  EXPECT_EQ(draw(sample()), text);
}

TEST(SweepChart, DrawsEvenWhenNothingFits) {
  const std::string text =
      draw({.title = "t", .unplanned = 4_KiB, .points = {{.budget = 1_KiB, .plan = std::nullopt}}});
  EXPECT_EQ(countOf(text, "<circle "), 0U);
  EXPECT_EQ(countOf(text, "nan") + countOf(text, "inf"), 0U);
  EXPECT_NE(text.find("device budget (KiB)"), std::string::npos);
}

}  // namespace
}  // namespace stowage::tools
