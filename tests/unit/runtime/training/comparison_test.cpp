// SPDX-License-Identifier: Apache-2.0
#include "runtime/training/comparison.h"

#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "ir/text/parser.h"
#include "tests/support/or_fail.h"

namespace stowage::runtime {
namespace {

constexpr const char* kBody = R"({
parameter %w : f32[8]
input %i host : i64[8]
backward "":
  %g : f32[8] = aten._embedding_bag_dense_backward.default(%w, %i)
  %h : f32[8] = aten._scaled_dot_product_flash_attention_backward.default(%g, %w)
  %k : f32[8] = aten.mul.Tensor(%h, %w)
})";

ir::Graph graphOf(bool deterministic) {
  const std::string head =
      std::string("graph @g version=1") + (deterministic ? "" : " nondeterministic");
  return tests::orFail(ir::parseGraph(head + " " + kBody));
}

/// Losses, and one tensor per letter, of that value.
TrainingRecord recordOf(const std::vector<double>& losses,
                        const std::vector<std::pair<std::string, double>>& state) {
  TrainingRecord record;
  for (const double loss : losses) record.add(at::scalar_tensor(loss, at::kFloat));
  for (const auto& [name, value] : state)
    record.state.emplace_back(name, digestOf(at::full({4}, value)));
  return record;
}

/// What the comparison says when unplanned trainings give `unplanned`, one after the other.
Comparison compare(bool deterministic, const TrainingRecord& planned,
                   std::deque<TrainingRecord> unplanned) {
  const auto train = [&]() -> ir::Expected<TrainingRecord> {
    EXPECT_FALSE(unplanned.empty()) << "trained more often than there are records";
    TrainingRecord record = std::move(unplanned.front());
    unplanned.pop_front();
    return record;
  };
  auto comparison = compareWithUnplanned(graphOf(deterministic), planned, train);
  EXPECT_TRUE(unplanned.empty()) << "trained less often than there are records";
  if (!comparison) throw std::runtime_error(ir::describe(comparison.takeError()));
  return std::move(*comparison);
}

TEST(Comparison, EveryByteCountsInDeterministicMode) {
  const TrainingRecord planned = recordOf({2, 1}, {{"a", 1}, {"b", 2}});
  const Comparison same = compare(true, planned, {planned});
  EXPECT_EQ(same.difference, "");
  EXPECT_FALSE(same.repeated);
  EXPECT_EQ(compare(true, planned, {recordOf({2, 1.5}, {{"a", 1}, {"b", 3}})}).difference,
            "the loss of step 2");
  EXPECT_EQ(compare(true, planned, {recordOf({2, 1}, {{"a", 1}, {"b", 3}})}).difference,
            "'b' after the last step");
  EXPECT_EQ(compare(true, planned, {recordOf({2, 1}, {{"a", 1}, {"c", 2}})}).difference,
            "state 'b', which one of them lacks");
  EXPECT_EQ(compare(true, planned, {recordOf({2, 1}, {{"a", 1}})}).difference,
            "state 'b', which one of them lacks");
  EXPECT_EQ(compare(true, planned, {recordOf({2}, {{"a", 1}, {"b", 2}})}).difference,
            "the number of steps");
}

TEST(Comparison, WithoutItWhatLibtorchRepeatsCounts) {
  const TrainingRecord first = recordOf({2, 1}, {{"a", 1}, {"b", 2}});
  const TrainingRecord second = recordOf({2, 1.5}, {{"a", 1}, {"b", 3}});
  const Comparison same = compare(false, recordOf({2, 1.2}, {{"a", 1}, {"b", 8}}), {first, second});
  EXPECT_EQ(same.difference, "");
  ASSERT_TRUE(same.repeated);
  EXPECT_EQ(same.repeated->compared, 4U);
  EXPECT_EQ(same.repeated->equal, 2U);
  EXPECT_EQ(
      same.repeated->ops,
      (std::vector<std::string>{"aten._embedding_bag_dense_backward.default (1)",
                                "aten._scaled_dot_product_flash_attention_backward.default (1)"}));
}

TEST(Comparison, TwoTrainingsThatAgreeByChanceDoNotCount) {
  const TrainingRecord first = recordOf({2, 1}, {{"a", 1}, {"b", 2}});
  const TrainingRecord agrees = recordOf({2, 1}, {{"a", 1}, {"b", 3}});
  const TrainingRecord differs = recordOf({2, 1.5}, {{"a", 1}, {"b", 2}});
  const Comparison same =
      compare(false, recordOf({2, 1.2}, {{"a", 1}, {"b", 8}}), {first, agrees, agrees, differs});
  EXPECT_EQ(same.difference, "");
  ASSERT_TRUE(same.repeated);
  EXPECT_EQ(same.repeated->trainings, 4);
  EXPECT_EQ(same.repeated->equal, 2U);
}

TEST(Comparison, WhatEveryTrainingRepeatsCounts) {
  const TrainingRecord first = recordOf({2, 1}, {{"a", 1}, {"b", 2}});
  std::deque<TrainingRecord> unplanned(8, first);
  unplanned.back() = recordOf({2, 1}, {{"a", 1}, {"b", 3}});
  const Comparison different = compare(false, recordOf({2, 1}, {{"a", 4}, {"b", 8}}), unplanned);
  EXPECT_EQ(different.difference, "'a' after the last step");
  EXPECT_EQ(different.repeated->trainings, 8);
}

TEST(Comparison, StepsCountFromTheTrainingsBegin) {
  TrainingRecord eager = recordOf({8, 4, 2, 1}, {});
  eager.dropBefore(2);
  TrainingRecord resumed = recordOf({2, 1.5}, {});
  resumed.firstStep = 2;
  EXPECT_EQ(compare(true, resumed, {eager}).difference, "the loss of step 4");
  std::deque<TrainingRecord> unrepeated(8, eager);
  unrepeated.front() = recordOf({2, 1.25}, {});
  unrepeated.front().firstStep = 2;
  resumed.losses.back() = 9;
  EXPECT_EQ(compare(false, resumed, unrepeated).difference,
            "the loss of step 4 is 9, far from 1 to 1.25");
}

TEST(Comparison, LossesThatAreNotRepeatedMustBeNear) {
  const auto trainings = [](double second) {
    std::deque<TrainingRecord> all(8, recordOf({second}, {}));
    all.front() = recordOf({1}, {});
    return all;
  };
  const std::deque<TrainingRecord> two = {recordOf({1}, {}), recordOf({1.25}, {})};
  EXPECT_EQ(compare(false, recordOf({3.5}, {}), two).difference, "");
  EXPECT_EQ(compare(false, recordOf({-1.25}, {}), two).difference, "");
  EXPECT_EQ(compare(false, recordOf({4}, {}), trainings(1.25)).difference,
            "the loss of step 1 is 4, far from 1 to 1.25");
  EXPECT_EQ(compare(false, recordOf({std::nan("")}, {}), trainings(1.25)).difference,
            "the loss of step 1 is nan, far from 1 to 1.25");
  // Two that happen to be close are held against more.
  EXPECT_EQ(compare(false, recordOf({1.5}, {}),
                    {recordOf({1}, {}), recordOf({1.001}, {}), recordOf({1.25}, {})})
                .difference,
            "");
}

TEST(Comparison, WhereAllOpsRepeatTwoTrainingsAreEnough) {
  const ir::Graph graph = tests::orFail(ir::parseGraph(
      "graph @g version=1 nondeterministic {\nparameter %w : f32[8]\nbackward \"\":\n"
      "  %k : f32[8] = aten.mul.Tensor(%w, %w)\n}"));
  int trainings = 0;
  const auto train = [&]() -> ir::Expected<TrainingRecord> {
    ++trainings;
    return recordOf({1}, {});
  };
  EXPECT_EQ(tests::orFail(compareWithUnplanned(graph, recordOf({2}, {}), train)).difference,
            "the loss of step 1");
  EXPECT_EQ(trainings, 2);
}

}  // namespace
}  // namespace stowage::runtime
