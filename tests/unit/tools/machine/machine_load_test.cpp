// SPDX-License-Identifier: Apache-2.0
#include "tools/machine/machine_load.h"

#include <gtest/gtest.h>

namespace stowage::tools {
namespace {

using ir::CostSource;

std::string offPrediction(int64_t predicted, int64_t measured,
                          CostSource costs = CostSource::kMeasured) {
  return describeOffPrediction({.predicted = Nanoseconds(predicted),
                                .measured = Nanoseconds(measured),
                                .commands = 0,
                                .costs = costs});
}

TEST(MachineLoad, StepsUpToTwiceOrHalfAreAsPredicted) {
  for (const int64_t measured : {500'000, 700'000, 1'000'000, 1'999'999, 2'000'000}) {
    EXPECT_EQ(offPrediction(1'000'000, measured), "") << measured;
  }
  EXPECT_NE(offPrediction(1'000'000, 2'000'002), "");
  EXPECT_NE(offPrediction(1'000'000, 499'998), "");
}

TEST(MachineLoad, SaysBothTimesAndWhatToDo) {
  EXPECT_EQ(offPrediction(10'000'000, 30'000'000),
            "a step took 30.00 ms, predicted 10.00 ms: the plan's costs do not describe this "
            "machine as it is now; it was busy when they were measured, or is now; profile the "
            "step again");
  EXPECT_EQ(offPrediction(30'000'000, 10'000'000, CostSource::kRoofline),
            "a step took 10.00 ms, predicted 30.00 ms: the plan's costs were not measured on this "
            "machine; profile the step and plan again");
}

TEST(MachineLoad, LaunchOverheadOfManySmallCommandsIsNoBusyMachine) {
  StepComparison step = {
      .predicted = Nanoseconds(416'810), .measured = Nanoseconds(4'410'000), .commands = 329};
  EXPECT_EQ(describeOffPrediction(step), "");
  step.measured = Nanoseconds(8'000'000);
  EXPECT_NE(describeOffPrediction(step), "");
}

TEST(MachineLoad, AReferenceThatWasHeldUpIsNoGain) {
  StepComparison step = {.predicted = Nanoseconds(20'000'000), .measured = Nanoseconds(40'000'000)};
  EXPECT_EQ(describeSlowReference(step), "");
  step.measured = Nanoseconds(1'000'000);
  EXPECT_EQ(describeSlowReference(step), "");
  step.measured = Nanoseconds(1'490'000'000);
  EXPECT_EQ(
      describeSlowReference(step),
      "a step of plain libtorch took 1.49 s, the planned one, which has its ops to do as well, "
      "is predicted to take 20.00 ms: this machine was busy, and what the planned step seems "
      "to gain is no gain");
  step.commands = 80'000;  // 20 us each
  EXPECT_EQ(describeSlowReference(step), "");
  step = {.predicted = Nanoseconds(1), .measured = Nanoseconds(5), .costs = CostSource::kRoofline};
  EXPECT_EQ(describeSlowReference(step), "");
  EXPECT_EQ(describeSlowReference({.predicted = Nanoseconds(0), .measured = Nanoseconds(5)}), "");
}

TEST(MachineLoad, NothingIsSaidOfWhatIsNotKnown) {
  EXPECT_EQ(offPrediction(1'000'000, 0), "");
  EXPECT_EQ(offPrediction(0, 1'000'000), "");
}

TEST(MachineLoad, MediansFarAboveTheShortestAreABusyMachine) {
  const auto scatter = [](int64_t medians, int64_t shortest) {
    return describeScatter(Nanoseconds(medians), Nanoseconds(shortest));
  };
  EXPECT_EQ(scatter(0, 0), "");
  EXPECT_EQ(scatter(10'000'000, 10'000'000), "");
  EXPECT_EQ(scatter(15'000'000, 10'000'000), "");
  EXPECT_EQ(scatter(16'000'000, 10'000'000),
            "this machine is busy: the ops' median times add up to 16.00 ms, their shortest to "
            "10.00 ms; measured times will be too long; profile again when it is idle");
}

}  // namespace
}  // namespace stowage::tools
