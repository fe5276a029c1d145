// SPDX-License-Identifier: Apache-2.0
//
// `stowage run` as its users meet it: the program itself, on files made by its other verbs.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/support/program.h"
#include "tests/support/tensor_file.h"

namespace stowage::tests {
namespace {

namespace fs = std::filesystem;

/// The numbers of "losses" in a --json answer, as text.
std::string lossesOf(const std::string& json) {
  const size_t begin = json.find("\"losses\"");
  return json.substr(begin, json.find(']', begin) - begin);
}

/// The line with `word` in it.
std::string lineOf(const std::string& text, const std::string& word) {
  const size_t place = text.find(word);
  return place == std::string::npos ? "" : text.substr(place, text.find('\n', place) - place);
}

size_t countOf(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

/// One plan for all tests of the file: a model of one block, in 60 % of what it needs.
class RunVerb : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace("stowage_run");
    ASSERT_NO_FATAL_FAILURE(planSmallModel(*folder_, "--set schedule=step"));
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string at(const std::string& name) { return folder_->at(name); }
  static Outcome run(const std::string& arguments) {
    return stowage("run " + at("plan.json") + " " + arguments);
  }
  /// A run that gets a signal as soon as there is `sign`; its exit code.
  static int runAndStop(const std::string& arguments, const std::string& sign, int signal) {
    const std::string command =
        std::string("exec ") + STOWAGE_PROGRAM + " run " + at("plan.json") + " " + arguments;
    const pid_t child = fork();
    EXPECT_GE(child, 0);
    if (child < 0) return -1;
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    for (int i = 0; i < 60'000 && !fs::exists(sign); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(child, signal);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
  }

  /// A file of one row of tokens, all `token` but one.
  static std::string writeTokens(const char* name, int64_t count, int64_t place, int32_t token) {
    std::vector<int32_t> tokens(static_cast<size_t>(count), 7);
    tokens[static_cast<size_t>(place)] = token;
    return writeTensors(at(name), {{"tokens", ir::DType::kI32, {count}, bytesOf(tokens)}});
  }

  /// Tokens and targets of whole steps: one first dimension for each.
  static std::string writeStacked(const char* name, int64_t tokenSteps, int64_t targetSteps) {
    constexpr int64_t kBatch = 4;
    constexpr int64_t kSequence = 16;
    const auto zeros = [](int64_t bytes) {
      return std::vector<uint8_t>(static_cast<size_t>(bytes), 0);
    };
    return writeTensors(at(name), {{"tokens",
                                    ir::DType::kI64,
                                    {tokenSteps, kBatch, kSequence},
                                    zeros(tokenSteps * kBatch * kSequence * 8)},
                                   {"targets",
                                    ir::DType::kI32,
                                    {targetSteps, kBatch, kSequence},
                                    zeros(targetSteps * kBatch * kSequence * 4)}});
  }

  static std::optional<ScratchFolder> folder_;
};
std::optional<ScratchFolder> RunVerb::folder_;

TEST_F(RunVerb, EqualsTheUnplannedRun) {
  const Outcome outcome = run("--steps 6 --compare-unplanned");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(outcome.says("ran        6 steps: arena")) << outcome.text;
  EXPECT_TRUE(outcome.says("0 allocations outside")) << outcome.text;
  EXPECT_TRUE(outcome.says("identical bits to the unplanned run")) << outcome.text;
}

TEST_F(RunVerb, DoesNotReadAnythingElseAsText) {
  fs::copy_file(writeTokens("row.safetensors", 1000, 3, 5), at("row.st"));
  const Outcome outcome = run("--steps 1 --data " + at("row.st"));
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_TRUE(outcome.says("a zero byte, which no text holds")) << outcome.text;
}

TEST_F(RunVerb, ReleasesTheDeviceMemoryBetweenSteps) {
  const Outcome outcome = run("--steps 5 --release-every 2 --compare-unplanned");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(outcome.says("released   2 times, the last in ")) << outcome.text;
  EXPECT_TRUE(outcome.says("identical bits to the unplanned run")) << outcome.text;
  const Outcome json = run("--steps 3 --release-every 1 --json");
  EXPECT_EQ(countOf(json.text, "\"back\""), 3U) << json.text;
}

TEST_F(RunVerb, WritesTheTimesThatOpsHadInTheSteps) {
  const Outcome measured = run("--steps 3 --costs-out " + at("inside.json"));
  ASSERT_EQ(measured.code, 0) << measured.text;
  const Outcome planned = stowage("plan " + at("step.stow") + " --budget 70%peak --costs " +
                                  at("inside.json") + " -o " + at("again.json"));
  EXPECT_EQ(planned.code, 0) << planned.text;
  // Without --costs the run begins with times of nothing: every time there is comes from the steps.
  const std::string costs = readText(at("inside.json"));
  EXPECT_EQ(costs.find("\"work_ns\":0,"), std::string::npos) << costs.substr(0, 2000);
  const Outcome once = run("--steps 2 --costs-out " + at("once.json"));
  EXPECT_EQ(once.code, 2) << once.text;
  EXPECT_TRUE(once.says("never of the first")) << once.text;
  EXPECT_FALSE(fs::exists(at("once.json")));
}

TEST_F(RunVerb, WritesWhenEveryCommandRan) {
  const Outcome measured =
      run("--steps 4 --timeline " + at("steps.json") + " --costs " + at("costs.json"));
  ASSERT_EQ(measured.code, 0) << measured.text;
  EXPECT_TRUE(measured.says("timeline   3 steps of ")) << measured.text;
  EXPECT_TRUE(measured.says("predicted ")) << measured.text;
  EXPECT_TRUE(measured.says("copies planned as hidden were hidden for ")) << measured.text;
  const std::string trace = readText(at("steps.json"));
  // Each command on its engine, on the launch thread, and predicted; three steps of each.
  const std::string plan = readText(at("plan.json"));
  const size_t commands = countOf(plan, "{\"op\":");
  EXPECT_GT(commands, 10U);
  for (const char* row : {"\"pid\":2,", "\"tid\":7,"}) {
    EXPECT_EQ(countOf(trace, std::string("\"ph\":\"X\",") +
                                 (row[1] == 'p' ? row : std::string("\"pid\":1,") + row)),
              3 * commands)
        << row;
  }
  const Outcome same = run("--steps 4 --timeline " + at("x.json") + " --costs-out " + at("x.json"));
  EXPECT_EQ(same.code, 2) << same.text;
}

// Ten steps, after as many as there are without; what is due meanwhile is saved afterwards.
TEST_F(RunVerb, TimesTheStepsAfterThoseWithout) {
  const Outcome measured = run("--steps 16 --save-every 1 --save " + at("often") + " --timeline " +
                               at("later.json") + " --costs-out " + at("later_costs.json"));
  ASSERT_EQ(measured.code, 0) << measured.text;
  EXPECT_TRUE(measured.says("timeline   10 steps of ")) << measured.text;
  EXPECT_TRUE(measured.says("wrote      " + at("later_costs.json"))) << measured.text;
  const std::string trace = readText(at("later.json"));
  const auto isTimed = [&](int step) {
    return trace.find("\"step\":" + std::to_string(step) + "}") != std::string::npos ||
           trace.find("\"step\":" + std::to_string(step) + ",") != std::string::npos;
  };
  for (int step = 0; step < 16; ++step) EXPECT_EQ(isTimed(step), step >= 6) << step;
}

TEST_F(RunVerb, WritesNoTimesOfStepsThatWereNotTimed) {
  const int code = runAndStop("--steps 1000000 --save-every 1 --save " + at("early") +
                                  " --timeline " + at("early.json") + " --costs-out " +
                                  at("early_costs.json") + " > " + at("early.log") + " 2>&1",
                              at("early"), SIGINT);
  const std::string log = readText(at("early.log"));
  EXPECT_EQ(code, 128 + SIGINT) << log;
  const bool isWritten = fs::exists(at("early.json"));
  EXPECT_EQ(fs::exists(at("early_costs.json")), isWritten) << log;
  // A machine that is slow to send the signal may let the timed steps begin.
  EXPECT_NE(log.find("stopped before two steps were timed") != std::string::npos, isWritten) << log;
  EXPECT_EQ(log.find("timeline   ") != std::string::npos, isWritten) << log;
}

TEST_F(RunVerb, GoesOnFromACheckpoint) {
  const Outcome first = run("--steps 3 --save " + at("out"));
  ASSERT_EQ(first.code, 0) << first.text;
  // The unplanned run does all five steps; its last two must be these two.
  const Outcome second = run("--steps 2 --compare-unplanned --resume " + at("out"));
  EXPECT_EQ(second.code, 0) << second.text;
  EXPECT_TRUE(second.says("resumed    after 3 steps")) << second.text;
  EXPECT_TRUE(second.says("identical bits")) << second.text;
}

TEST_F(RunVerb, KeepsTheCheckpointOfAnotherTraining) {
  ASSERT_EQ(run("--steps 1 --save " + at("kept")).code, 0);
  const std::string before = readText(at("kept/optimizer.safetensors"));
  const Outcome again = run("--steps 2 --save " + at("kept"));
  EXPECT_EQ(again.code, 2) << again.text;
  EXPECT_TRUE(again.says("kept: holds a checkpoint of another training; -f replaces it"))
      << again.text;
  EXPECT_EQ(readText(at("kept/optimizer.safetensors")), before);
  EXPECT_EQ(run("--steps 1 --resume " + at("kept") + " --save " + at("kept")).code, 0);
  EXPECT_NE(readText(at("kept/optimizer.safetensors")), before);
  EXPECT_EQ(run("--steps 2 --save-every 1 -f --save " + at("kept")).code, 0);
}

TEST_F(RunVerb, ResumeBringsTheSeedAndTheWeights) {
  // Random batches and the unplanned run need the seed that the training began with.
  ASSERT_EQ(run("--steps 2 --seed 5 --save " + at("seeded")).code, 0);
  const Outcome resumed = run("--steps 2 --compare-unplanned --resume " + at("seeded"));
  EXPECT_EQ(resumed.code, 0) << resumed.text;
  const Outcome straight = run("--steps 4 --seed 5 --json");
  const Outcome rest = run("--steps 2 --json --resume " + at("seeded"));
  const std::string tail = lossesOf(rest.text).substr(10);
  EXPECT_NE(lossesOf(straight.text).find(tail.substr(tail.find_first_of("0123456789"))),
            std::string::npos)
      << straight.text << rest.text;
  for (const std::string flag : {"--seed 7", "--weights seeded/model.safetensors"}) {
    const Outcome refused = run(flag + " --resume " + at("seeded"));
    EXPECT_EQ(refused.code, 2) << refused.text;
    EXPECT_TRUE(refused.says("does not go with --resume")) << refused.text;
  }
}

TEST_F(RunVerb, ResumeTellsAnotherTrainingFromAnotherBudget) {
  ASSERT_EQ(run("--steps 3 --save " + at("first")).code, 0);
  const std::string resume = " --steps 2 --resume " + at("first");
  // Another budget: the same training, bit for bit.
  ASSERT_EQ(stowage("plan " + at("step.stow") + " --budget 90%peak --costs " + at("costs.json") +
                    " -o " + at("wide_plan.json"))
                .code,
            0);
  const Outcome wide = stowage("run " + at("wide_plan.json") + resume + " --compare-unplanned");
  EXPECT_EQ(wide.code, 0) << wide.text;
  EXPECT_TRUE(wide.says("saved under another plan")) << wide.text;
  EXPECT_TRUE(wide.says("identical bits")) << wide.text;
  // Another rate and schedule: the same tensors, another training.
  const ScratchFolder changed("stowage_run_changed");
  ASSERT_NO_FATAL_FAILURE(planSmallModel(changed, "--set schedule=cosine --set lr=0.002"));
  const Outcome other = stowage("run " + changed.at("plan.json") + resume);
  EXPECT_EQ(other.code, 3) << other.text;
  EXPECT_TRUE(other.says("first: is the checkpoint of another training")) << other.text;
  EXPECT_TRUE(other.says("lr: found 0.002, expected 1e-3")) << other.text;
  EXPECT_TRUE(other.says("schedule: found cosine, expected step")) << other.text;
  // Other data, unless that is what is wanted.
  writeText(at("other.txt"), std::string(500, 'b') + "end");
  const Outcome text = run(resume + " --data " + at("other.txt"));
  EXPECT_EQ(text.code, 3) << text.text;
  EXPECT_TRUE(text.says("data: found 503 bytes of text, xxh64:")) << text.text;
  EXPECT_TRUE(text.says("--other-data goes on")) << text.text;
  EXPECT_EQ(run(resume + " --other-data --data " + at("other.txt")).code, 0);
}

TEST_F(RunVerb, DataIsKnownByItsContent) {
  const std::string tokens = writeTokens("known.safetensors", 300, 5, 255);
  ASSERT_EQ(run("--steps 1 --data " + tokens + " --save " + at("known")).code, 0);
  fs::rename(tokens, at("moved.safetensors"));
  const std::string resume = "--steps 1 --resume " + at("known") + " --data ";
  EXPECT_EQ(run(resume + at("moved.safetensors")).code, 0);
  const Outcome other = run(resume + writeTokens("changed.safetensors", 300, 5, 254));
  EXPECT_EQ(other.code, 3) << other.text;
  EXPECT_TRUE(other.says("data: found 4 batches, xxh64:")) << other.text;
}

TEST_F(RunVerb, NeverSavesOverItsInputs) {
  ASSERT_EQ(run("--steps 1 --save " + at("source")).code, 0);
  const Outcome outcome =
      run("--steps 1 -f --save " + at("source") + " --weights " + at("source/model.safetensors"));
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_TRUE(outcome.says("of this command, expected another file")) << outcome.text;
}

TEST_F(RunVerb, SaysWhenCostsAreNotThePlans) {
  ASSERT_EQ(run("--steps 1 -q --costs " + at("costs.json")).text.find("note:"), std::string::npos);
  std::string costs = readText(at("costs.json"));
  const size_t place = costs.find("\"work_ns\":") + 10;
  costs.insert(place, "1");
  writeText(at("other_costs.json"), costs);
  const std::string flag = " --costs " + at("other_costs.json");
  const Outcome ran = run("--steps 1" + flag);
  EXPECT_EQ(ran.code, 0) << ran.text;
  EXPECT_TRUE(ran.says("other costs than those the plan was made from")) << ran.text;
  const Outcome verified = stowage("verify " + at("plan.json") + flag);
  EXPECT_TRUE(verified.says("other costs than those")) << verified.text;
  const Outcome lowered = stowage("lower " + at("plan.json") + flag + " -o " + at("l.json"));
  EXPECT_TRUE(lowered.says("other costs than those")) << lowered.text;
  const Outcome explained = stowage("explain " + at("plan.json") + flag);
  EXPECT_EQ(explained.code, 3) << explained.text;
  EXPECT_TRUE(explained.says("other costs than those")) << explained.text;
  const Outcome own = stowage("explain " + at("plan.json") + " --costs " + at("costs.json"));
  EXPECT_EQ(own.code, 0) << own.text;
}

TEST_F(RunVerb, RefusesCostsOfAnotherTorchAndMemoryThatIsNotThere) {
  std::string text = readText(at("plan.json"));
  const size_t torch = text.find("\"torch\":\"") + 9;
  text.insert(torch, "1.");
  writeText(at("old.json"), text);
  const Outcome old = stowage("run " + at("old.json") + " --graph " + at("step.stow"));
  EXPECT_EQ(old.code, 4) << old.text;
  EXPECT_TRUE(old.says("old.json: V3: the plan was made from costs of torch 1.2.1")) << old.text;

  text = readText(at("plan.json"));
  for (const char* name : {"\"budget_bytes\":", "\"arena_bytes\":"}) {  // the device's is first
    const size_t place = text.find(name) + std::string(name).size();
    text.replace(place, text.find_first_not_of("0123456789", place) - place, "1125899906842624");
  }
  writeText(at("huge.json"), text);
  const Outcome huge = stowage("run " + at("huge.json") + " --graph " + at("step.stow"));
  EXPECT_EQ(huge.code, 4) << huge.text;
  EXPECT_TRUE(huge.says("huge.json: V3: the plan's arenas need 1024.00 TiB of host memory"))
      << huge.text;
  EXPECT_TRUE(huge.says("plan with a smaller budget")) << huge.text;
}

TEST_F(RunVerb, RefusesADamagedCheckpoint) {
  ASSERT_EQ(run("--steps 1 --save " + at("whole")).code, 0);
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string good = readText(at("whole/") + file);
    // One bit of a tensor, one digit of what is said about the training, one byte less.
    std::string tensor = good;
    tensor[tensor.size() - 3] = static_cast<char>(tensor[tensor.size() - 3] ^ 4);
    std::string header = good;
    const size_t format = header.find("steps\":\"") + 8;
    ASSERT_LT(format, header.size());
    header[format] = '7';
    for (const auto& [bytes, words] :
         {std::pair(tensor, "is damaged"), std::pair(header, "the header is damaged"),
          std::pair(good.substr(0, good.size() - 1), "")}) {
      writeText(at("whole/") + file, bytes);
      const Outcome outcome = run("--steps 1 --resume " + at("whole"));
      EXPECT_EQ(outcome.code, 3) << file << ": " << outcome.text;
      EXPECT_TRUE(outcome.says(words)) << outcome.text;
      EXPECT_TRUE(outcome.says(file)) << outcome.text;
    }
    writeText(at("whole/") + file, good);
  }
  EXPECT_EQ(run("--steps 1 --resume " + at("whole")).code, 0);
}

TEST_F(RunVerb, TakesWeightsFromAModelFile) {
  ASSERT_EQ(run("--steps 2 --seed 9 --save " + at("other")).code, 0);
  const Outcome outcome =
      run("--steps 2 --compare-unplanned --weights " + at("other/model.safetensors"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  const Outcome without = run("--steps 2 --json");
  const Outcome with = run("--steps 2 --json --weights " + at("other/model.safetensors"));
  EXPECT_NE(lossesOf(with.text), lossesOf(without.text));
}

TEST_F(RunVerb, ReadsTokensAndText) {
  const std::string tokens = writeTokens("good.safetensors", 300, 5, 255);
  const Outcome stored = run("--steps 2 --data " + tokens);
  EXPECT_EQ(stored.code, 0) << stored.text;
  EXPECT_TRUE(stored.says("good.safetensors, 4 batches")) << stored.text;
  std::ofstream(at("text.txt")) << std::string(500, 'a') << "end";
  const Outcome text = run("--steps 2 --compare-unplanned --data " + at("text.txt"));
  EXPECT_EQ(text.code, 0) << text.text;
  EXPECT_TRUE(text.says("503 bytes of text")) << text.text;
}

TEST_F(RunVerb, ReadsWholeStepsByInput) {
  const Outcome good =
      run("--steps 4 --compare-unplanned --data " + writeStacked("steps.safetensors", 3, 3));
  EXPECT_EQ(good.code, 0) << good.text;
  EXPECT_TRUE(good.says("steps.safetensors, 3 batches")) << good.text;
  const Outcome uneven = run("--data " + writeStacked("uneven.safetensors", 3, 2));
  EXPECT_EQ(uneven.code, 3);
  EXPECT_TRUE(uneven.says("'targets' has 2 steps, the input before it 3")) << uneven.text;
}

TEST_F(RunVerb, CapturesAgainWithThePlansBuckets) {
  const std::string model =
      "capture gpt2 --set layers=1 --set hidden=32 --set heads=2 "
      "--set sequence=16 --set context=16 --set optimizer=stowage_adamw -o ";
  const Outcome wide = stowage(model + at("wide.stow") + " --json");
  const Outcome narrow = stowage(model + at("narrow.stow") + " --json --bucket 4KiB");
  ASSERT_EQ(narrow.code, 0) << narrow.text;
  EXPECT_NE(lineOf(wide.text, "\"nodes\""), lineOf(narrow.text, "\"nodes\""));
  ASSERT_EQ(stowage("profile " + at("narrow.stow") + " -o " + at("narrow_costs.json")).code, 0);
  ASSERT_EQ(stowage("plan " + at("narrow.stow") + " --budget 60%peak --costs " +
                    at("narrow_costs.json") + " -o " + at("narrow.json"))
                .code,
            0);
  const Outcome ran = stowage("run " + at("narrow.json") + " --steps 3 --compare-unplanned");
  EXPECT_EQ(ran.code, 0) << ran.text;
  const Outcome lowered = stowage("lower " + at("narrow.json") + " -o " + at("narrow_again.json"));
  EXPECT_EQ(lowered.code, 0) << lowered.text;
  const Outcome relative = stowage(model + at("no.stow") + " --bucket 50%");
  EXPECT_EQ(relative.code, 2) << relative.text;
  EXPECT_TRUE(relative.says("--bucket: expected an absolute size")) << relative.text;
}

TEST_F(RunVerb, NamesThePlaceOfABadToken) {
  const std::string tokens = writeTokens("bad.safetensors", 300, 70, 256);
  const Outcome outcome = run("--steps 3 --data " + tokens);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(outcome.says("bad.safetensors")) << outcome.text;
  EXPECT_TRUE(outcome.says("value 70 of 'tokens' is 256, expected one from 0 to 255"))
      << outcome.text;
}

TEST_F(RunVerb, RefusesBadFiles) {
  std::ofstream(at("noise.safetensors")) << "not one";
  for (const char* flag : {"--data ", "--weights "}) {
    const Outcome outcome = run(flag + at("noise.safetensors"));
    EXPECT_EQ(outcome.code, 3) << flag << outcome.text;
    EXPECT_TRUE(outcome.says("noise.safetensors")) << outcome.text;
  }
  const Outcome few = run("--weights " + writeTokens("few.safetensors", 10, 0, 1));
  EXPECT_EQ(few.code, 3);
  EXPECT_TRUE(few.says("missing: 'wte.weight'")) << few.text;
  EXPECT_TRUE(few.says("missing: 'ln_f.bias'")) << few.text;
  EXPECT_TRUE(few.says("extra: 'tokens'")) << few.text;
  EXPECT_EQ(run("--resume " + at("nowhere")).code, 3);
}

TEST_F(RunVerb, RefusesAnotherMachine) {
  const Outcome outcome = run("--threads 1");
  EXPECT_EQ(outcome.code, 4) << outcome.text;
  EXPECT_TRUE(outcome.says("V3: the plan is for another machine")) << outcome.text;
  EXPECT_TRUE(outcome.says("threads of an op: found 1")) << outcome.text;
}

TEST_F(RunVerb, RefusesAnEditedPlanByRule) {
  std::string text = readText(at("plan.json"));
  const size_t rows = text.find("\"residencies\":[");
  const size_t first = text.find("\"device\",", rows) + 9;
  ASSERT_LT(first, text.size());
  text.replace(first, text.find(']', first) - first, "8");
  std::ofstream(at("edited.json")) << text;
  const Outcome outcome = stowage("run " + at("edited.json"));
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_TRUE(outcome.says("V16: ")) << outcome.text;
}

TEST_F(RunVerb, PlacesAPlanFromAnEstimateAnew) {
  // Without --costs, temporaries are the profile's estimate: less than ops need.
  const Outcome planned =
      stowage("plan " + at("step.stow") + " --budget 90%peak -o " + at("guess.json"));
  ASSERT_EQ(planned.code, 0) << planned.text;
  const Outcome outcome = stowage("run " + at("guess.json") + " --steps 3 --compare-unplanned");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(
      outcome.says("more temporary memory here than the plan was made for: the same "
                   "decisions, placed anew within the budget"))
      << outcome.text;
  EXPECT_TRUE(outcome.says("identical bits to the unplanned run")) << outcome.text;
}

/// The test's costs with `more` bytes of temporaries in every op.
std::string growCosts(const std::string& from, const std::string& to, int64_t more) {
  nlohmann::json costs = nlohmann::json::parse(readText(from));
  for (auto& op : costs["ops"]) op["temp_bytes"] = op["temp_bytes"].get<int64_t>() + more;
  writeText(to, costs.dump());
  return to;
}

TEST_F(RunVerb, RefusesAPlanWhoseDecisionsDoNotFitHereUnlessItMayPlanAnew) {
  const std::string grown = " --costs " + growCosts(at("costs.json"), at("grown.json"), 12'000);
  const Outcome refused = run("--steps 1" + grown);
  EXPECT_EQ(refused.code, 1) << refused.text;
  EXPECT_TRUE(refused.says("V17: ")) << refused.text;
  EXPECT_TRUE(refused.says(" more\n")) << refused.text;
  EXPECT_TRUE(refused.says("with them the plan's decisions need ")) << refused.text;
  EXPECT_LT(std::count(refused.text.begin(), refused.text.end(), '\n'), 14) << refused.text;

  const Outcome anew = run("--steps 3 --replan --compare-unplanned" + grown);
  EXPECT_EQ(anew.code, 0) << anew.text;
  EXPECT_TRUE(anew.says("planned anew within the budget")) << anew.text;
  EXPECT_TRUE(anew.says("identical bits to the unplanned run")) << anew.text;

  const std::string huge =
      " --costs " + growCosts(at("costs.json"), at("huge.json"), int64_t{1} << 33);
  const Outcome none = run("--steps 1 --replan" + huge);
  EXPECT_EQ(none.code, 1) << none.text;
  EXPECT_TRUE(none.says("smallest device budget that works")) << none.text;
}

TEST_F(RunVerb, RefusesACheckpointWithoutAGenerator) {
  ASSERT_EQ(run("--steps 1 --save " + at("drawn")).code, 0);
  editTensors(at("drawn/optimizer.safetensors"), [](TensorFile& file) {
    for (uint8_t& byte : file.find("generator.cpu").bytes) byte = 0xa5;
  });
  const Outcome outcome = run("--steps 1 --resume " + at("drawn"));
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_TRUE(outcome.says("drawn/optimizer.safetensors: tensor 'generator.cpu': "))
      << outcome.text;
}

TEST_F(RunVerb, TakesUpATrainingAfterAnyNumberOfSteps) {
  ASSERT_EQ(run("--steps 1 --save " + at("long")).code, 0);
  const auto setSteps = [&](const std::string& steps) {
    for (const char* name : {"long/model.safetensors", "long/optimizer.safetensors"}) {
      editTensors(at(name), [&](TensorFile& file) {
        for (auto& [key, text] : file.metadata) {
          if (key.ends_with("steps") || key.ends_with("data_position")) text = steps;
        }
        for (FileTensor& tensor : file.tensors) {
          if (tensor.name.ends_with(".step")) {
            tensor.bytes = bytesOf(std::vector<float>{std::stof(steps)});
          }
        }
      });
    }
  };
  setSteps("2000000000");  // a millisecond each would be 23 days
  const Outcome outcome = run("--steps 1 --resume " + at("long"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(outcome.says("after 2000000000 steps")) << outcome.text;
  setSteps("9223372036854775807");
  const Outcome refused = run("--steps 1 --resume " + at("long"));
  EXPECT_EQ(refused.code, 3) << refused.text;
  EXPECT_TRUE(refused.says("expected a number from 0 to 2147483647")) << refused.text;
}

TEST_F(RunVerb, NeverReplacesAFolderOfOtherThings) {
  fs::create_directories(at("precious"));
  std::ofstream(at("precious/thesis.txt")) << "years";
  const Outcome outcome = run("--steps 1 --save " + at("precious"));
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(outcome.says("thesis.txt")) << outcome.text;
  EXPECT_EQ(readText(at("precious/thesis.txt")), "years");
}

TEST_F(RunVerb, SavesWhereALinkLeads) {
  ASSERT_EQ(run("--steps 1 --save " + at("disk")).code, 0);
  fs::create_directory_symlink(at("disk"), at("link"));
  const Outcome outcome = run("--steps 1 --resume " + at("link") + " --save " + at("link"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_FALSE(fs::is_symlink(at("disk")));
  EXPECT_FALSE(fs::is_empty(at("disk")));
  EXPECT_EQ(run("--steps 1 --resume " + at("disk")).code, 0);
}

TEST_F(RunVerb, FinishesTheStepAndSavesWhenAskedToStop) {
  const std::string log = at("log.json");
  // A first checkpoint says that it is under way.
  EXPECT_EQ(
      runAndStop("--steps 1000000 --save-every 1 --save " + at("stopped") + " --json > " + log,
                 at("stopped"), SIGTERM),
      128 + SIGTERM);
  EXPECT_NE(readText(log).find("\"stopped\": true"), std::string::npos) << readText(log);
  const Outcome resumed = run("--steps 1 --compare-unplanned --resume " + at("stopped"));
  EXPECT_EQ(resumed.code, 0) << resumed.text;
}

// The planned part saves its state at its end: then the comparison is under way.
TEST_F(RunVerb, StopsWhileItCompares) {
  const int code = runAndStop("--steps 3000 --compare-unplanned --save " + at("saved") + " > " +
                                  at("stopped.log") + " 2>&1",
                              at("saved"), SIGINT);
  const std::string log = readText(at("stopped.log"));
  EXPECT_EQ(code, 128 + SIGINT) << log;
  EXPECT_NE(log.find("stopped: not compared with unplanned training"), std::string::npos) << log;
}

TEST_F(RunVerb, CostsAreThoseOfThisMachine) {
  nlohmann::json costs = nlohmann::json::parse(readText(at("costs.json")));
  costs["device"] = "cpu, 77 threads";
  writeText(at("other.json"), costs.dump());
  const Outcome outcome = run("--steps 1 --costs " + at("other.json"));
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_TRUE(outcome.says("measured on 'cpu, 77 threads', this is 'cpu, ")) << outcome.text;
}

TEST(RunVerbByDefault, IsComparedWithWhatLibtorchRepeats) {
  const ScratchFolder folder("stowage_run_default");
  ASSERT_NO_FATAL_FAILURE(planSmallModel(folder, "--nondeterministic"));
  const std::string run = "run " + folder.at("plan.json") + " --steps 2 --compare-unplanned";
  const Outcome outcome = stowage(run);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(outcome.says("identical bits to the unplanned run wherever it repeats itself ("))
      << outcome.text;
  // This step's ops repeat themselves on the CPU, so that everything counts.
  const Outcome json = stowage(run + " --json");
  const std::string compared = lineOf(json.text, "\"compared\": ");
  ASSERT_NE(compared, "") << json.text;
  EXPECT_EQ(lineOf(json.text, "\"equal\": ").substr(9), compared.substr(12));
}

}  // namespace
}  // namespace stowage::tests
