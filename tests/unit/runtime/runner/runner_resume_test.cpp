// SPDX-License-Identifier: Apache-2.0
//
// A training that was stopped, saved and taken up again by another runner goes on as if nothing had
// happened, bit for bit: with dropout, a learning rate that falls each step, and AdamW's counts.
#include <ATen/Context.h>
#include <gtest/gtest.h>
#include <llvm/ADT/STLExtras.h>
#include <sys/resource.h>
#include <torch/nn/module.h>
#include <torch/optim/adamw.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "ir/graph/liveness.h"
#include "passes/plan_step.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/files/safetensors.h"
#include "tests/support/keep_all_schedule.h"
#include "tests/support/or_fail.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/training_process.h"
#include "tools/cli/exit_code.h"
#include "tools/training/model_step.h"

namespace stowage::tests {
namespace {

const Planned& widePlan() {
  static const Planned planned = keepAll(settingsOf(32));
  return planned;
}

/// Made by the planner for 60 % of what the step needs when nothing is moved.
const Planned& tightPlan() {
  static const Planned made =
      planWith(settingsOf(32), [](const Planned& planned, const ir::CostTable& table) {
        std::vector<Bytes> temporaries;
        for (const ir::OpCost& cost : planned.costs.nodes) temporaries.push_back(cost.temporary);
        const std::vector<int64_t> bytes = ir::computeKeepAllBytes(planned.graph, 512, temporaries);
        const int64_t whole = *std::max_element(bytes.begin(), bytes.end());
        return orFail(passes::planStep(planned.graph, planned.target, table,
                                       {.budget = Bytes(whole * 6 / 10 / 512 * 512),
                                        .allowed = {},
                                        .pins = {},
                                        .pinnedRows = {},
                                        .orders = {passes::Order::kProgram},
                                        .rowBlocks = {}}))
            .schedule;
      });
  return made;
}

/// Clipped by norm, so that no update comes before the end of backward.
Settings clippedSettings() { return settingsOf(32, {"clip=1"}); }

const Planned& clippedPlan() {
  static const Planned planned = keepAll(clippedSettings());
  return planned;
}

/// The same with updates that run in the next step.
const Planned& deferredPlan() {
  static const Planned made = [] {
    ir::CostTable costs;
    Planned planned =
        planWith(clippedSettings(), [&](const Planned& whole, const ir::CostTable& table) {
          costs = table;
          return makeKeepAllSchedule(whole.graph, whole.target, &whole.costs);
        });
    passes::PlannedStep step = orFail(passes::planStep(planned.graph, planned.target, costs,
                                                       {.budget = Bytes(int64_t{1} << 26),
                                                        .allowed = {},
                                                        .pins = {},
                                                        .pinnedRows = {},
                                                        .orders = {passes::Order::kDeferred},
                                                        .rowBlocks = {}}));
    planned.costs = orFail(ir::resolveCosts(step.graph, costs));
    planned.schedule = std::move(step.schedule);
    planned.graph = std::move(step.graph);
    return planned;
  }();
  return made;
}

class RunnerResume : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.at(name); }

  /// Trains `before` steps, saves, and trains on in another process up to `all`.
  void expectSameAsStraight(int64_t before, int64_t all, const Planned& first,
                            const Planned& later) {
    Process straight(first);
    straight.train(0, all);
    {
      Process stopped(first);
      stopped.train(0, before);
      ASSERT_EQ(ir::describe(stopped.runner->save(path("out"))), "");
    }
    Process resumed(later);
    at::manual_seed(999);
    const runtime::ResumePoint point = orFail(resumed.runner->load(path("out")));
    EXPECT_EQ(point.steps, before);
    EXPECT_EQ(point.dataPosition, before);
    EXPECT_EQ(point.samePlan, &later == &first);
    resumed.train(before, all);
    EXPECT_EQ(resumed.runner->stepsDone(), all);
    straight.losses.erase(straight.losses.begin(), straight.losses.begin() + before);
    EXPECT_EQ(resumed.losses, straight.losses);
    EXPECT_EQ(resumed.state(), straight.state());
  }

 private:
  ScratchFolder folder_{"stowage_resume"};
};

TEST_F(RunnerResume, GoesOnBitForBit) { expectSameAsStraight(3, 6, widePlan(), widePlan()); }

TEST_F(RunnerResume, GoesOnAfterTheStepsThatCaptureSaw) {
  expectSameAsStraight(5, 7, widePlan(), widePlan());
}

TEST_F(RunnerResume, GoesOnUnderAnotherBudget) {
  ASSERT_LT(tightPlan().schedule.arenaBytes(ir::Space::kDevice),
            widePlan().schedule.arenaBytes(ir::Space::kDevice));
  expectSameAsStraight(3, 6, widePlan(), tightPlan());
}

TEST_F(RunnerResume, SavesWhatPendingUpdatesMake) {
  ASSERT_TRUE(llvm::any_of(deferredPlan().graph.nodes(), [](const ir::Node& node) {
    return node.phase == ir::Phase::kDeferred;
  }));
  expectSameAsStraight(3, 6, deferredPlan(), deferredPlan());
  expectSameAsStraight(3, 6, deferredPlan(), clippedPlan());
  expectSameAsStraight(2, 4, clippedPlan(), deferredPlan());
}

// Whoever looks at the state ends the last step; the next one is as if nobody had.
TEST_F(RunnerResume, LookingAtPendingStateChangesNothing) {
  Process straight(clippedPlan());
  straight.train(0, 5);
  Process looked(deferredPlan());
  for (int64_t i = 0; i < 5; ++i) {
    looked.train(i, i + 1);
    if (i == 1 || i == 2) {
      Process same(clippedPlan());
      same.train(0, i + 1);
      EXPECT_EQ(looked.state(), same.state()) << "after step " << i;
    }
  }
  EXPECT_EQ(looked.losses, straight.losses);
  EXPECT_EQ(looked.state(), straight.state());
}

TEST_F(RunnerResume, GoesOnWithAMomentum) {
  const Planned plan = keepAll(settingsOf(32, {"optimizer=sgd", "momentum=0.9"}));
  expectSameAsStraight(2, 4, plan, plan);
}

TEST_F(RunnerResume, GoesOnWithCountsAndMasterWeightsOnTheDevice) {
  const Planned plan = keepAll(
      settingsOf(32, {"optimizer=stowage_adamw", "master_weights=on", "precision=bfloat16"}));
  expectSameAsStraight(2, 6, plan, plan);
}

TEST_F(RunnerResume, TheGeneratorIsPartOfTheState) {
  Process stopped(widePlan());
  stopped.train(0, 3);
  ASSERT_EQ(ir::describe(stopped.runner->save(path("out"))), "");
  Process resumed(widePlan());
  orFail(resumed.runner->load(path("out")));
  at::manual_seed(999);  // what a resume that forgot the generator would run with
  resumed.train(3, 4);
  stopped.train(3, 4);
  EXPECT_NE(resumed.losses.back(), stopped.losses.back());
}

TEST_F(RunnerResume, FilesAreLaidOutAsTorchDoes) {
  Process run(widePlan());
  run.train(0, 2);
  ASSERT_EQ(ir::describe(run.runner->save(path("out"))), "");
  const auto optimizer =
      orFail(runtime::SafetensorsReader::open(path("out") + "/optimizer.safetensors"));
  for (const char* name : {"state.wte.weight.exp_avg", "state.wte.weight.exp_avg_sq",
                           "state.wte.weight.step", "generator.cpu"}) {
    EXPECT_NE(optimizer.find(name), nullptr) << name;
  }
  const auto model = orFail(runtime::SafetensorsReader::open(path("out") + "/model.safetensors"));
  ASSERT_NE(model.find("wte.weight"), nullptr);
  EXPECT_EQ(model.find("wte.weight")->sizes, (std::vector<int64_t>{64, 32}));
  size_t parameters = 0;
  for (const auto& item : run.step->training.module->named_parameters()) {
    EXPECT_NE(model.find(item.key()), nullptr) << item.key();
    ++parameters;
  }
  EXPECT_EQ(model.header().entries.size(), parameters);
}

TEST_F(RunnerResume, KnowsHowLongItsNumbersTake) {
  Process process(widePlan());
  process.train(0, 7);
  EXPECT_FALSE(process.runner->scalarsTime()) << "four of seven steps had them from the capture";
  process.train(7, 9);
  ASSERT_TRUE(process.runner->scalarsTime());
  EXPECT_GT(*process.runner->scalarsTime(), Nanoseconds(0));
}

TEST_F(RunnerResume, WeightsComeFromAModelFile) {
  Process source(widePlan());
  source.train(0, 2);
  ASSERT_EQ(ir::describe(source.runner->save(path("out"))), "");
  Process fresh(widePlan(), {.weights = {path("out") + "/model.safetensors"}});
  const auto trained = source.state();
  const auto loaded = fresh.state();
  EXPECT_EQ(loaded.at("wte.weight"), trained.at("wte.weight"));
  EXPECT_NE(loaded.at("m(wte.weight)"), trained.at("m(wte.weight)"));
}

TEST_F(RunnerResume, SaysEverythingThatDoesNotFit) {
  Process run(widePlan());
  ASSERT_EQ(ir::describe(run.runner->save(path("out"))), "");
  const Planned other = keepAll(settingsOf(48));
  std::unique_ptr<tools::ModelStep> step = captureAgain(other.target, other.settings);
  const runtime::RunnablePlan plan = {.graph = other.graph,
                                      .schedule = other.schedule,
                                      .target = other.target,
                                      .costs = &other.costs};
  const auto runner = orFail(runtime::Runner::create(*step->captured, plan));
  auto point = runner->load(path("out"));
  ASSERT_FALSE(static_cast<bool>(point));
  const ir::PlanError error = ir::takePayload(point.takeError());
  EXPECT_EQ(tools::exitCodeFor(error.code()), 3);
  EXPECT_EQ(error.location().file, path("out"));
  // Every parameter and both moments of it have the width in their shape, one note each.
  size_t parameters = step->training.module->parameters().size();
  EXPECT_EQ(error.notes().size(), parameters * 3);
  const std::string text = ir::describe(ir::makeError(error));
  EXPECT_NE(text.find("'wte.weight' is F32 [64,32], expected F32 [64,48]"), std::string::npos)
      << text;
}

TEST_F(RunnerResume, AStepsDoneRunnerTakesNoCheckpoint) {
  Process run(widePlan());
  run.train(0, 1);
  ASSERT_EQ(ir::describe(run.runner->save(path("out"))), "");
  auto point = run.runner->load(path("out"));
  ASSERT_FALSE(static_cast<bool>(point));
  EXPECT_NE(ir::describe(point.takeError()).find("steps already"), std::string::npos);
}

TEST_F(RunnerResume, AKilledSaveLeavesTheCheckpointBefore) {
  Process run(widePlan());
  run.train(0, 1);
  ASSERT_EQ(ir::describe(run.runner->save(path("out") + "/")), "");
  // Killed between the two renames; and killed while it wrote.
  std::filesystem::rename(path("out"), path("out.stowage-previous"));
  std::filesystem::create_directories(path("out.stowage-partial"));
  EXPECT_EQ(orFail(Process(widePlan()).runner->load(path("out"))).steps, 1);
  run.train(1, 2);
  ASSERT_EQ(ir::describe(run.runner->save(path("out"))), "");
  EXPECT_EQ(orFail(Process(widePlan()).runner->load(path("out"))).steps, 2);
  EXPECT_FALSE(std::filesystem::exists(path("out.stowage-partial")));
}

// Only what a checkpoint of ours consists of is ever removed.
TEST_F(RunnerResume, ASaveRemovesNothingThatIsNotACheckpoints) {
  Process run(widePlan());
  const auto write = [&](const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path(file)).parent_path());
    std::ofstream(path(file)) << text;
  };
  const std::string own = R"({"__metadata__":{"format":"pt"},"w":{}})";
  const std::string files[] = {"a/model.safetensors",
                               "b/model.safetensors.index.json",
                               "c/optimizer.safetensors",
                               "d/model.safetensors.tmp",
                               "e.stowage-partial/model.safetensors",
                               "f.stowage-previous/model.safetensors",
                               "g.stowage-partial/model.safetensors.tmp1",
                               "h/model.safetensors/w"};
  for (const std::string& file : files) {
    write(file, std::string("12345678") + own);
    const std::string folder = path(file.substr(0, 1));
    const ir::PlanError refused = ir::takePayload(run.runner->save(folder));
    EXPECT_EQ(refused.code(), ir::ErrorCode::kInvalidArgument) << file;
    EXPECT_NE(refused.text().find("which is no file of a checkpoint"), std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(path(file))) << file;
  }
  // What a killed save left is a checkpoint's.
  ASSERT_EQ(ir::describe(run.runner->save(path("x"))), "");
  std::filesystem::copy(path("x"), path("y.stowage-previous"));
  std::filesystem::copy(path("x"), path("y.stowage-partial"));
  std::filesystem::rename(path("y.stowage-partial/model.safetensors"),
                          path("y.stowage-partial/model.safetensors.tmp77"));
  std::filesystem::resize_file(path("y.stowage-partial/model.safetensors.tmp77"), 300);
  write("y.stowage-partial/optimizer.safetensors.tmp77", "");
  ASSERT_EQ(ir::describe(run.runner->save(path("y"))), "");
  EXPECT_FALSE(std::filesystem::exists(path("y.stowage-partial")));
  EXPECT_FALSE(std::filesystem::exists(path("y.stowage-previous")));
  // Copies that a user keeps beside it are none of ours.
  for (const char* copy : {"y.previous", "y.partial"}) {
    std::filesystem::copy(path("x"), path(copy));
  }
  ASSERT_EQ(ir::describe(run.runner->save(path("y"))), "");
  for (const char* copy : {"y.previous", "y.partial"}) {
    EXPECT_TRUE(std::filesystem::exists(path(copy) + "/optimizer.safetensors")) << copy;
  }
  for (const char* link : {"z.stowage-partial", "z.stowage-previous"}) {
    std::filesystem::create_directory_symlink(path("x"), path(link));
    const std::string text = ir::describe(run.runner->save(path("z")));
    EXPECT_NE(text.find(std::string(link) + ": is a link"), std::string::npos) << text;
    std::filesystem::remove(path(link));
  }
  EXPECT_TRUE(std::filesystem::exists(path("x/optimizer.safetensors")));
}

TEST_F(RunnerResume, AFolderThatAnotherOneWritesIsRefused) {
  Process run(widePlan());
  {
    const auto other = orFail(runtime::CheckpointWrite::begin(path("out")));
    const ir::PlanError refused = ir::takePayload(run.runner->save(path("out")));
    EXPECT_EQ(refused.code(), ir::ErrorCode::kInvalidArgument);
    EXPECT_NE(refused.text().find("another process saves there"), std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(other.partial()));
  }
  EXPECT_FALSE(std::filesystem::exists(path("out.stowage-partial")));
  EXPECT_EQ(ir::describe(run.runner->save(path("out"))), "");
  {
    const auto claim = orFail(runtime::CheckpointClaim::take(path("out")));
    auto second = runtime::CheckpointClaim::take(path("out"));
    ASSERT_FALSE(static_cast<bool>(second));
    const std::string text = ir::describe(second.takeError());
    EXPECT_NE(text.find(std::to_string(getpid())), std::string::npos) << text;
  }
  EXPECT_FALSE(std::filesystem::exists(path("out.stowage-lock")));
  std::ofstream(path("out.stowage-lock")) << "mine";
  auto foreign = runtime::CheckpointClaim::take(path("out"));
  ASSERT_FALSE(static_cast<bool>(foreign));
  llvm::consumeError(foreign.takeError());
  EXPECT_TRUE(std::filesystem::exists(path("out.stowage-lock")));
}

TEST_F(RunnerResume, ASaveThatFailsLeavesNothing) {
  Process run(widePlan());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  ir::Error error = run.runner->save(path("out"));
  setrlimit(RLIMIT_FSIZE, &before);
  (void)std::signal(SIGXFSZ, handler);
  EXPECT_NE(ir::describe(std::move(error)), "");
  EXPECT_TRUE(std::filesystem::is_empty(path("")));
  ASSERT_EQ(ir::describe(run.runner->save(path("out"))), "");
}

TEST_F(RunnerResume, FilesOfTwoStepsAreNoCheckpoint) {
  Process run(widePlan());
  ASSERT_EQ(ir::describe(run.runner->save(path("a"))), "");
  run.train(0, 1);
  ASSERT_EQ(ir::describe(run.runner->save(path("b"))), "");
  std::filesystem::copy(path("a") + "/model.safetensors", path("b") + "/model.safetensors",
                        std::filesystem::copy_options::overwrite_existing);
  auto point = Process(widePlan()).runner->load(path("b"));
  ASSERT_FALSE(static_cast<bool>(point));
  EXPECT_NE(ir::describe(point.takeError()).find("the model is of step 0, the optimizer of step 1"),
            std::string::npos);
}

TEST_F(RunnerResume, MemoryStaysWhereThePlanPutsIt) {
  Process run(tightPlan());
  run.train(0, 3);
  // The highest storage may end with padding that nobody writes.
  const int64_t peak = tightPlan().schedule.predicted.peakBytes.value();
  const int64_t mark = orFail(run.runner->highWaterMark()).value();
  EXPECT_LE(mark, peak);
  EXPECT_GT(mark, peak - tightPlan().target.alignBytes);
  EXPECT_EQ(run.runner->peak(), Bytes(peak));
  EXPECT_EQ(ir::describe(run.runner->checkCanaries()), "");
  EXPECT_EQ(run.runner->allocationsOutside(), 0);
}

/// The optimizer does something else than when it was captured: no weight decay any more.
void changeUpdate(Process& process) {
  auto& options = process.step->training.optimizer->param_groups().front().options();
  static_cast<torch::optim::AdamWOptions&>(options).weight_decay(0);
}

TEST_F(RunnerResume, AStepWhoseUpdateChangedLeavesTheStateOfTheStepBefore) {
  for (const Planned* planned : {&widePlan(), &tightPlan()}) {
    Process straight(*planned);
    straight.train(0, 3);
    Process refused(*planned);
    refused.train(0, 3);
    changeUpdate(refused);
    const auto batch = tools::makeInputs(refused.step->training, 1003);
    auto step = refused.runner->step(batch);
    ASSERT_FALSE(static_cast<bool>(step));
    EXPECT_EQ(ir::takePayload(step.takeError()).code(), ir::ErrorCode::kPlanMismatch);
    EXPECT_EQ(refused.state(), straight.state());
    EXPECT_EQ(refused.runner->stepsDone(), 3);
    ASSERT_EQ(ir::describe(refused.runner->save(path("saved"))), "");
    Process resumed(*planned);
    EXPECT_EQ(orFail(resumed.runner->load(path("saved"))).steps, 3);
    EXPECT_EQ(resumed.state(), straight.state());
    EXPECT_EQ(ir::describe(refused.runner->storeTo()), "");
  }
}

}  // namespace
}  // namespace stowage::tests
