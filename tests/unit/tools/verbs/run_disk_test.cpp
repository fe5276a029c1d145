// SPDX-License-Identifier: Apache-2.0
//
// The disk below the host as the users of `stowage` meet it, from plan to run and resume.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/disk_folder.h"
#include "tests/support/program.h"

namespace stowage::tests {
namespace {

class RunDisk : public DiskTest {
 protected:
  void SetUp() override {
    if (!takesDirectReads()) GTEST_SKIP() << "the folder is on no disk";
  }
  std::string at(const std::string& name) const { return files_.at(name); }
  void capture(const std::string& model) const {
    const Outcome captured =
        stowage("capture " + model + " --bucket 512KiB -fq -o " + at("step.stow"));
    ASSERT_EQ(captured.code, 0) << captured.text;
  }
  Outcome plan(const std::string& more) const {
    return stowage("plan " + at("step.stow") + " -f -o " + at("plan.json") + " " + more);
  }
  nlohmann::json planned(const std::string& more) const {
    const Outcome answer = plan("--json -q " + more);
    EXPECT_EQ(answer.code, 0) << answer.text;
    return nlohmann::json::parse(answer.text);
  }
  /// Half of the host memory that the plan takes where it is not limited, and a disk. The search
  /// tries that first, and takes long for plans with less on the host.
  std::string scarce(const std::string& budget) const {
    const int64_t host = planned(budget)["predicted"]["host_peak_bytes"];
    return budget + " --time-limit 1 --disk 1GiB --host " + std::to_string(host / 2) + "B";
  }
  Outcome run(const std::string& more) const {
    return stowage("run " + at("plan.json") + " --disk " + folder_.string() + " " + more);
  }

 private:
  const ScratchFolder files_{"stowage_run_disk"};
};

TEST_F(RunDisk, TrainsInHalfOfTheHostMemoryWithTheBitsOfTheUnplannedRun) {
  for (const std::string& model :
       {std::string("llama --set optimizer=stowage_adamw"),
        std::string("gpt2 --set clip=1 --set micro_batches=2"),
        std::string("llama --set precision=bfloat16 --set optimizer=stowage_adamw "
                    "--set master_weights=on")}) {
    capture(model);
    const nlohmann::json answer = planned(scarce("--budget 35%peak"));
    EXPECT_TRUE(answer.contains("disk") && answer["disk"]["read_bytes"] > 0) << model;
    EXPECT_EQ(stowage("verify " + at("plan.json")).code, 0) << model;
    const Outcome ran = run("--verify-disk --steps 6 --compare-unplanned --replan");
    EXPECT_TRUE(ran.code == 0 && ran.says("identical bits to the unplanned run") &&
                ran.says(" as predicted"))
        << model << "\n"
        << ran.text;
    EXPECT_TRUE(isEmpty()) << "of the disk's folder";
  }
}

TEST_F(RunDisk, PinsSendThereAndLoweringKeepsIt) {
  capture("llama --set optimizer=stowage_adamw");
  const Outcome answer = plan("--budget 80%peak --disk 1GiB --pin 'state:*=disk'");
  ASSERT_EQ(answer.code, 0) << answer.text;
  EXPECT_TRUE(answer.says("disk       writes ")) << answer.text;
  EXPECT_TRUE(stowage("explain " + at("plan.json") + " 'm(lm_head.weight)'").says("  disk "));
  const Outcome lowered = stowage("lower " + at("plan.json") + " -f -o " + at("lowered.json"));
  ASSERT_EQ(lowered.code, 0) << lowered.text;
  EXPECT_TRUE(lowered.says("disk       writes ")) << lowered.text;
  EXPECT_EQ(run("--steps 3 --compare-unplanned").code, 0);
}

TEST_F(RunDisk, ACheckpointGoesOnWithoutADisk) {
  capture("llama --set optimizer=stowage_adamw");
  ASSERT_EQ(plan(scarce("--budget 40%peak")).code, 0);
  const Outcome first = run("--steps 3 --save " + at("saved"));
  ASSERT_EQ(first.code, 0) << first.text;
  EXPECT_FALSE(first.says("keeps nothing on disk")) << first.text;
  ASSERT_EQ(plan("--budget 60%peak").code, 0);
  const Outcome second =
      stowage("run " + at("plan.json") + " --steps 3 --compare-unplanned --resume " + at("saved"));
  EXPECT_TRUE(second.code == 0 && second.says("identical bits to the unplanned run"))
      << second.text;
}

TEST_F(RunDisk, SaysWhatIsMissing) {
  capture("llama");
  const std::string flags = scarce("--budget 40%peak");
  ASSERT_EQ(plan(flags).code, 0);
  const Outcome nowhere = stowage("run " + at("plan.json") + " --steps 1");
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_TRUE(nowhere.says("expected --disk DIR")) << nowhere.text;
  const Outcome missing = stowage("run " + at("plan.json") + " --steps 1 --disk " + at("no"));
  EXPECT_NE(missing.code, 0);
  EXPECT_TRUE(missing.says(at("no"))) << missing.text;
  const Outcome tiny = plan("--budget 40%peak --disk 1GiB --host 4KiB");
  EXPECT_EQ(tiny.code, 1);
  EXPECT_TRUE(tiny.says("of host memory, expected at least ")) << tiny.text;
  EXPECT_EQ(plan("--budget 40%peak --disk 50%").code, 2);
}

TEST_F(RunDisk, SaysThatItIsNotUsed) {
  capture("llama");
  ASSERT_EQ(plan("--budget 60%peak").code, 0);
  const Outcome ran = run("--steps 1");
  EXPECT_TRUE(ran.code == 0 && ran.says("note: the plan keeps nothing on disk")) << ran.text;
}

}  // namespace
}  // namespace stowage::tests
