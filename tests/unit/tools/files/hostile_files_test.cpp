// SPDX-License-Identifier: Apache-2.0
//
// Files and places that are not what a command needs: pipes where files are read, outputs that
// cannot be written, folders that cannot be saved in, machines that refuse memory and threads. Each
// is an error with its exit code, in time, and leaves nothing behind.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <optional>

#include "tests/support/program.h"

namespace stowage::tests {
namespace {

namespace fs = std::filesystem;

class HostileFiles : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace("stowage_hostile_files");
    ASSERT_NO_FATAL_FAILURE(planSmallModel(*folder_));
    for (const char* name : {"pipe", "pipe.pt2", "pipe.json", "pipe.safetensors"}) {
      ASSERT_EQ(mkfifo(at(name).c_str(), 0600), 0);
    }
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string at(const std::string& name) { return folder_->at(name); }
  /// A command that waits is ended, with code 124.
  static Outcome inTime(const std::string& arguments, const std::string& before = "") {
    return stowage(arguments, before + "timeout 20 ");
  }
  static void expectRefused(const std::string& arguments, int code, const std::string& words) {
    const Outcome outcome = inTime(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << '\n' << outcome.text;
    EXPECT_TRUE(outcome.says(words)) << arguments << '\n' << outcome.text << "expected: " << words;
  }

  static std::optional<ScratchFolder> folder_;
};
std::optional<ScratchFolder> HostileFiles::folder_;

TEST_F(HostileFiles, PipesAreNoInputs) {
  const std::string run = "run " + at("plan.json") + " --steps 1 ";
  const std::string plan = "plan " + at("step.stow") + " --budget 50%peak ";
  const std::string explain = "explain " + at("plan.json");
  for (const std::string& arguments :
       {"verify " + at("pipe"),
        "verify " + at("plan.json") + " --graph " + at("pipe"),
        "verify " + at("plan.json") + " --costs " + at("pipe"),
        "explain " + at("pipe"),
        explain + " --graph " + at("pipe"),
        explain + " --costs " + at("pipe"),
        "lower " + at("pipe") + " -o " + at("o"),
        "lower " + at("plan.json") + " --costs " + at("pipe") + " -o " + at("o"),
        "plan " + at("pipe") + " --budget 50%peak",
        plan + "--costs " + at("pipe"),
        plan + "--from " + at("pipe"),
        "sweep " + at("pipe"),
        "profile " + at("pipe") + " -o " + at("o"),
        "profile " + at("step.stow") + " --known " + at("pipe") + " -o " + at("o"),
        "run " + at("pipe"),
        run + "--graph " + at("pipe"),
        run + "--costs " + at("pipe"),
        run + "--data " + at("pipe"),
        run + "--data " + at("pipe.safetensors"),
        run + "--weights " + at("pipe.safetensors"),
        "capture " + at("pipe.pt2"),
        "demo --steps 2 --set preset=tiny --out " + at("d") + " --text " + at("pipe")}) {
    expectRefused(arguments, 3, ": is a pipe, expected a regular file");
  }
  EXPECT_FALSE(fs::exists(at("o")));
}

TEST_F(HostileFiles, PipesInTheFilesOfAFolderAreRefused) {
  // Where the plan says that its costs and its graph are.
  for (const char* file : {"costs.json", "step.stow"}) {
    const ScratchFolder other("stowage_hostile_plan");
    for (const char* name : {"step.stow", "costs.json", "plan.json"}) {
      fs::copy_file(at(name), other.at(name));
    }
    ASSERT_EQ(inTime("verify " + other.at("plan.json")).code, 0);
    fs::remove(other.at(file));
    ASSERT_EQ(mkfifo(other.at(file).c_str(), 0600), 0);
    for (const char* verb : {"verify ", "explain ", "run --steps 1 "}) {
      const bool readsCosts = verb[0] != 'r';
      if (!readsCosts && std::string(file) == "costs.json") continue;
      expectRefused(verb + other.at("plan.json"), 3, other.at(file) + ": is a pipe");
    }
  }
  // The files of a checkpoint.
  ASSERT_EQ(inTime("run " + at("plan.json") + " --steps 1 --save " + at("saved")).code, 0);
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    fs::rename(at("saved/") + file, at("aside"));
    ASSERT_EQ(mkfifo((at("saved/") + file).c_str(), 0600), 0);
    expectRefused("run " + at("plan.json") + " --steps 1 --resume " + at("saved"), 3,
                  std::string(file) + ": is a pipe, expected a regular file");
    fs::rename(at("aside"), at("saved/") + file);
  }
}

TEST_F(HostileFiles, PassesOnTextReadFilesAlone) {
  const auto runPasses = [](const std::string& arguments) {
    return stowage("", "exec 2>&1; timeout 20 " STOWAGE_OPT " " + arguments + "; exit $?; ");
  };
  const Outcome pipe = runPasses(at("pipe"));
  EXPECT_EQ(pipe.code, 3) << pipe.text;
  EXPECT_TRUE(pipe.says("pipe: is a pipe, expected a regular file")) << pipe.text;
  EXPECT_EQ(runPasses(at("step.stow") + " > /dev/full").code, 4);
  EXPECT_EQ(runPasses("--help > /dev/full").code, 4);
  EXPECT_EQ(runPasses("- < " + at("step.stow")).code, 0);
}

TEST_F(HostileFiles, WhatIsPipedIsReadAsADash) {
  const std::string feed = "cat " + at("plan.json") + " | ";
  const Outcome named =
      inTime("verify /dev/stdin --graph " + at("step.stow") + " --costs " + at("costs.json"), feed);
  EXPECT_EQ(named.code, 3) << named.text;
  EXPECT_TRUE(named.says("/dev/stdin: is a pipe, expected a regular file; '-' reads what is piped"))
      << named.text;
  const Outcome dash =
      inTime("verify - --graph " + at("step.stow") + " --costs " + at("costs.json"), feed);
  EXPECT_EQ(dash.code, 0) << dash.text;
}

TEST_F(HostileFiles, AnAnswerThatCannotBeWrittenIsAnError) {
  const std::string plan = at("plan.json");
  for (const std::string& arguments :
       {std::string("--help"), std::string("--version"), std::string("plan --help"),
        "verify " + plan, "verify --json " + plan, "explain " + plan, "explain --json " + plan,
        std::string("doctor"), std::string("doctor --json"), std::string("schema plan"),
        std::string("capture --list"), std::string("capture --list --json"),
        std::string("capture gpt2 --set preset=tiny"),
        "plan " + at("step.stow") + " --budget 90%peak",
        "plan --json " + at("step.stow") + " --budget 90%peak",
        "sweep --steps 2 --json " + at("step.stow"), "run --steps 1 " + plan,
        "run --steps 1 --json " + plan}) {
    for (const char* output : {"> /dev/full", ">&-"}) {
      const Outcome full = stowage(arguments + " " + output + "; }", "{ timeout 60 ");
      EXPECT_EQ(full.code, 4) << arguments << output << '\n' << full.text;
      EXPECT_TRUE(full.says("error: standard output: cannot write: "))
          << arguments << output << '\n'
          << full.text;
    }
  }
}

TEST_F(HostileFiles, AClosedOutputDoesNotBecomeTheFile) {
  const std::string plan = "plan " + at("step.stow") + " --budget 90%peak -f -o ";
  ASSERT_EQ(inTime(plan + at("open.json")).code, 0);
  EXPECT_EQ(inTime(plan + at("closed.json") + " >&-; }", "{ ").code, 4);
  EXPECT_EQ(readText(at("closed.json")), readText(at("open.json")));
}

TEST_F(HostileFiles, FilesBeyondTheLimitAreNotThere) {
  const ScratchFolder place("stowage_hostile_limit");
  const std::string limit = "ulimit -f 8; ";
  for (const std::string& verb :
       {"plan " + at("step.stow") + " --budget 90%peak -o ", "profile " + at("step.stow") + " -o ",
        std::string("capture gpt2 -o "), "run " + at("plan.json") + " --steps 1 --save "}) {
    const Outcome outcome = inTime(verb + place.at("out"), limit);
    EXPECT_EQ(outcome.code, 4) << verb << outcome.text;
    EXPECT_TRUE(outcome.says("File too large")) << verb << outcome.text;
    EXPECT_EQ(place.count(), 0U) << verb;
  }
}

TEST_F(HostileFiles, WhatCannotBeSavedInIsRefusedBeforeTheTraining) {
  const std::string run = "run " + at("plan.json") + " --steps 1 --save ";
  fs::create_symlink(at("nothing"), at("dangling"));
  const std::string longest(250, 'n');  // too long with a suffix behind it
  for (const auto& [folder, code, words] :
       {std::tuple(std::string("/"), 2, "has no name of its own"),
        std::tuple(std::string("."), 2, "has no name of its own"),
        std::tuple(at("saved/.."), 2, "has no name of its own"),
        std::tuple(std::string("/proc"), 2, "is a mount point"),
        std::tuple(at("dangling"), 2, "is a link that leads nowhere"),
        std::tuple(at("dangling/below"), 2, "is a link that leads nowhere"),
        std::tuple(at(longest), 4, "File name too long")}) {
    const Outcome outcome = inTime(run + folder);
    EXPECT_EQ(outcome.code, code) << folder << outcome.text;
    EXPECT_TRUE(outcome.says(words)) << folder << outcome.text;
    EXPECT_FALSE(outcome.says("predicted")) << folder << outcome.text;
  }
  EXPECT_FALSE(fs::exists(at("nothing")));
}

TEST_F(HostileFiles, ACheckpointWithoutRoomIsRefusedBeforeTheTraining) {
  const std::string step = at("vast.stow");
  ASSERT_EQ(stowage("capture gpt2 --set preset=tiny --set vocabulary=250000000 --set hidden=4096 "
                    "-f -o " +
                    step)
                .code,
            0);
  ASSERT_EQ(stowage("plan " + step + " --budget 100%peak -f -o " + at("vast.json")).code, 0);
  const Outcome outcome = inTime("run " + at("vast.json") + " --steps 1 --save " + at("vast"));
  EXPECT_EQ(outcome.code, 4) << outcome.text;
  EXPECT_TRUE(outcome.says("vast: a checkpoint takes ")) << outcome.text;
}

TEST_F(HostileFiles, ALinkThatLeadsNowhereIsThere) {
  fs::create_symlink(at("no_target"), at("lost.json"));
  const std::string plan = "plan " + at("step.stow") + " --budget 90%peak -o " + at("lost.json");
  expectRefused(plan, 2, "lost.json: exists already; -f replaces it");
  EXPECT_TRUE(fs::is_symlink(at("lost.json")));
  expectRefused(plan + " -f", 0, "wrote");
}

TEST_F(HostileFiles, EmptyValuesAreWrongUsage) {
  const std::string step = at("step.stow");
  for (const auto& [arguments, flag] :
       {std::pair("plan " + step + " --budget= --costs " + at("costs.json"), "--budget"),
        std::pair("plan --costs= " + step + " --budget 90%peak", "--costs"),
        std::pair("plan " + step + " --budget 90%peak --output= " + at("e"), "--output"),
        std::pair("run --save= " + at("plan.json"), "--save"),
        std::pair("run " + at("plan.json") + " --seed= --steps 1", "--seed"),
        std::pair("sweep --budgets= " + step, "--budgets"),
        std::pair(std::string("capture gpt2 --set= preset=tiny"), "--set")}) {
    expectRefused(arguments, 2, std::string(flag) + ": found an empty value");
  }
  EXPECT_FALSE(fs::exists(at("e")));
  // A value that ends so has one.
  expectRefused("capture gpt2 --set=preset=", 2, "preset");
}

// From too little for the libraries to enough for the command: what is refused is the machine's,
// and what is not gives the bits of the unplanned step (demo compares them).
class ScarceMemory : public HostileFiles, public testing::WithParamInterface<const char*> {};

TEST_P(ScarceMemory, EndsInTimeWithAMessage) {
  std::string arguments = GetParam();
  for (const char* name : {"plan.json", "step.stow", "scarce.json", "demo"}) {
    const size_t place = arguments.find(std::string("@") + name);
    if (place != std::string::npos) arguments.replace(place, 1, at(""));
  }
  int refused = 0;
  int answered = 0;
  // A command that takes little beside its libraries is refused in a narrow range: small steps as
  // far as the libraries do not load and shortly after, then large ones.
  int step = 10'000;
  int tried = 0;
  for (int kibibytes = 300'000; kibibytes < 1'700'000; kibibytes += step) {
    const Outcome outcome =
        stowage(arguments, "ulimit -v " + std::to_string(kibibytes) + "; timeout 60 ");
    if (outcome.says("error while loading shared libraries")) continue;
    if (++tried == 6) step = 60'000;
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 4)
        << kibibytes << " KiB: " << outcome.code << '\n'
        << outcome.text;
    EXPECT_EQ(outcome.code == 4, outcome.says("error: ")) << outcome.text;
    refused += outcome.code == 4 ? 1 : 0;
    if (outcome.code == 0 && ++answered == 4) break;
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(answered, 4);
}

INSTANTIATE_TEST_SUITE_P(Verbs, ScarceMemory,
                         testing::Values("verify @plan.json", "plan @step.stow --budget 90%peak",
                                         "profile @step.stow -f -o @scarce.json",
                                         "run @plan.json --steps 2",
                                         "demo --steps 2 --set preset=tiny -f --out @demo"));

}  // namespace
}  // namespace stowage::tests
