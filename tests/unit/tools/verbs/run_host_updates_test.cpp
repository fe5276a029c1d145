// SPDX-License-Identifier: Apache-2.0
//
// Updates on the host as the users of `stowage` meet them, from plan to run. On the CPU backend the
// host's kernels are the device's, so even the bits are those of the unplanned run.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"

namespace stowage::tests {
namespace {

class RunHostUpdates : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_.at(name); }
  void capture(const std::string& model) const {
    const Outcome captured =
        stowage("capture " + model + " --bucket 512KiB -fq -o " + at("step.stow"));
    ASSERT_EQ(captured.code, 0) << captured.text;
  }
  Outcome plan(const std::string& more) const {
    return stowage("plan " + at("step.stow") + " -f -o " + at("plan.json") + " " + more);
  }

 private:
  const ScratchFolder folder_{"stowage_host_updates"};
};

// What bfloat16 products allocate depends on the processor.
TEST_F(RunHostUpdates, TrainInTheBudgetWithTheBitsOfTheUnplannedRun) {
  for (const std::string& model :
       {std::string("llama --set optimizer=stowage_adamw"), std::string("gpt2 --set clip=1"),
        std::string("gpt2 --set optimizer=sgd --set micro_batches=2"),
        std::string("llama --set optimizer=stowage_adamw --set precision=bfloat16 "
                    "--set master_weights=on")}) {
    capture(model);
    for (const std::string budget : {"50%peak", "35%peak"}) {
      const Outcome planned = plan("--allow host-step --budget " + budget);
      ASSERT_EQ(planned.code, 0) << model << "\n" << planned.text;
      EXPECT_TRUE(planned.says("on host    updates of ")) << model << "\n" << planned.text;
      EXPECT_EQ(stowage("verify " + at("plan.json")).code, 0) << model;
      EXPECT_TRUE(stowage("explain " + at("plan.json")).says("updates keep the host busy "))
          << model;
      const Outcome ran =
          stowage("run " + at("plan.json") + " --steps 6 --compare-unplanned --replan");
      EXPECT_TRUE(ran.code == 0 && ran.says("identical bits to the unplanned run") &&
                  ran.says(" as predicted"))
          << model << "\n"
          << ran.text;
    }
  }
}

// They change bits on a GPU, so nobody gets them unasked.
TEST_F(RunHostUpdates, OnlyOnRequest) {
  capture("llama");
  for (const std::string allow :
       {"", "--allow offload,recompute,in-place-reuse,reorder,row-blocks"}) {
    const Outcome planned = plan("--budget 50%peak --json " + allow);
    ASSERT_EQ(planned.code, 0) << planned.text;
    EXPECT_TRUE(planned.says("\"host_updated_bytes\": 0")) << planned.text;
  }
  const Outcome both = plan("--budget 50%peak --allow offload,host-step");
  EXPECT_TRUE(both.code == 0 && both.says("on host    updates of ")) << both.text;
  const Outcome half = plan("--budget 90%peak --host-updates 50 --json");
  EXPECT_TRUE(half.code == 0 && !half.says("\"host_updated_bytes\": 0")) << half.text;
  for (const std::string unclear : {"--allow offload", "--policy host-step-only"}) {
    EXPECT_EQ(plan("--budget 90%peak --host-updates 50 " + unclear).code, 2) << unclear;
  }
}

TEST_F(RunHostUpdates, ALoweredPlanAndACheckpointKeepThem) {
  capture("llama --set optimizer=stowage_adamw");
  ASSERT_EQ(plan("--allow host-step --budget 40%peak").code, 0);
  const Outcome lowered = stowage("lower " + at("plan.json") + " -f -o " + at("lowered.json"));
  ASSERT_EQ(lowered.code, 0) << lowered.text;
  EXPECT_TRUE(lowered.says("on host    updates of ")) << lowered.text;
  const std::string run = "run " + at("lowered.json") + " --save " + at("saved") + " ";
  const Outcome first = stowage(run + "--steps 3");
  ASSERT_EQ(first.code, 0) << first.text;
  // Under another budget, and with all updates on the device.
  ASSERT_EQ(plan("--budget 60%peak").code, 0);
  const Outcome second =
      stowage("run " + at("plan.json") + " --steps 3 --compare-unplanned --resume " + at("saved"));
  EXPECT_TRUE(second.code == 0 && second.says("identical bits to the unplanned run"))
      << second.text;
}

}  // namespace
}  // namespace stowage::tests
