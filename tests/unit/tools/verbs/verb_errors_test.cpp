// SPDX-License-Identifier: Apache-2.0
//
// What `stowage` says when its input is wrong: exit code 2 for the command line, 3 for a file, with
// the file's name once, the place in it and what was expected. On files made by its own verbs.
#include <gtest/gtest.h>

#include <optional>

#include "tests/support/program.h"

namespace stowage::tests {
namespace {

class VerbErrors : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace("stowage_verb_errors");
    ASSERT_NO_FATAL_FAILURE(planSmallModel(*folder_));
    writeText(at("a.txt"), "hello\n");
    writeText(at("cut.json"), readText(at("plan.json")).substr(0, 3000));
    writeText(at("cut.stow"), readText(at("step.stow")).substr(0, 2000));
    writeText(at("empty"), "");
    std::filesystem::create_directories(at("folder"));
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string at(const std::string& name) { return folder_->at(name); }

  /// A file like `from` with the first `what` replaced.
  static std::string edited(const std::string& from, const std::string& what,
                            const std::string& with) {
    std::string text = readText(at(from));
    const size_t place = text.find(what);
    EXPECT_NE(place, std::string::npos) << what;
    text.replace(place, what.size(), with);
    // The edit is meant: no checksum of a step's text says otherwise.
    if (const size_t sum = text.rfind("// checksum"); sum != std::string::npos) text.resize(sum);
    writeText(at("edited"), text);
    return at("edited");
  }
  static void expectRefused(const std::string& arguments, int code, const std::string& words) {
    const Outcome outcome = stowage(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << '\n' << outcome.text;
    EXPECT_TRUE(outcome.says(words)) << arguments << '\n' << outcome.text << "expected: " << words;
  }

  static std::optional<ScratchFolder> folder_;
};
std::optional<ScratchFolder> VerbErrors::folder_;

TEST_F(VerbErrors, NamesEachBadFileOnce) {
  const std::vector<std::string> verbs = {
      "profile FILE -f -o " + at("o"),
      "plan FILE --budget 50%peak",
      "sweep FILE",
      "verify FILE",
      "lower FILE -f -o " + at("o"),
      "explain FILE",
      "run FILE",
      "run " + at("plan.json") + " --graph FILE",
      "run " + at("plan.json") + " --costs FILE",
      "run " + at("plan.json") + " --weights FILE",
      "run " + at("plan.json") + " --resume FILE",
      "explain " + at("plan.json") + " --costs FILE",
      "plan " + at("step.stow") + " --budget 50%peak --from FILE"};
  for (std::string arguments : verbs) {
    const size_t place = arguments.find("FILE");
    for (const char* name : {"nowhere", "folder", "a.txt", "empty", "cut.json", "cut.stow"}) {
      const std::string whole = std::string(arguments).replace(place, 4, at(name));
      const Outcome outcome = stowage(whole);
      EXPECT_EQ(outcome.code, 3) << whole << '\n' << outcome.text;
      const size_t first = outcome.text.find(at(name));
      EXPECT_NE(first, std::string::npos) << whole << '\n' << outcome.text;
      const std::string line = outcome.text.substr(first, outcome.text.find('\n', first) - first);
      EXPECT_EQ(line.find(at(name), 1), std::string::npos) << whole << '\n' << outcome.text;
    }
  }
  const Outcome data = stowage("run " + at("plan.json") + " --data " + at("nowhere"));
  EXPECT_EQ(data.code, 3) << data.text;
  EXPECT_FALSE(data.says(at("nowhere") + ": " + at("nowhere"))) << data.text;
}

TEST_F(VerbErrors, SaysWhichKindOfFileWasExpected) {
  expectRefused("run " + at("plan.json") + " --lr nan", 2, "found 'nan', expected a number");
  expectRefused("run " + at("plan.json") + " --lr 2e9", 2, "expected a number from 0 to 1e9");
  for (const char* host : {"0", "1PiB", "80%", "device:1GiB"}) {
    expectRefused("plan " + at("step.stow") + " --budget 50%peak --host " + host, 2,
                  std::string("--host: found '") + host + "', expected bytes with a unit");
  }
  expectRefused("run " + at("step.stow"), 3, "step.stow: is a captured step, expected a plan");
  expectRefused("plan --budget 50%peak " + at("plan.json"), 3,
                "plan.json: is a plan, expected a captured step");
  expectRefused("explain " + at("costs.json"), 3,
                "costs.json: is a table of costs, expected a plan");
  expectRefused("run " + at("plan.json") + " --costs " + at("plan.json"), 3,
                "is a plan, expected a table of costs");
  expectRefused("verify " + at("empty"), 3, "is empty, expected a plan");
  expectRefused("capture " + at("a.txt"), 3, "expected a training step exported as .pt2");
  expectRefused("capture " + at("step.stow"), 3, "is a captured step already");
  expectRefused("capture no_such_model", 2, "no model is called 'no_such_model'");
}

TEST_F(VerbErrors, ValuesThatCannotBeMeantAreRefused) {
  const std::string run = "run " + at("plan.json") + " --steps 1 ";
  expectRefused(run + "--save ''", 2, "--save: found an empty value");
  expectRefused(run + "--save " + at("a.txt") + "/out", 2, "a.txt: is a file, expected a folder");
  expectRefused(run + "--resume ''", 2, "--resume: found an empty value");
  expectRefused("plan " + at("step.stow") + " --budget 90%peak --allow ''", 2, "--allow");
  for (const char* rate : {"nan", "inf", "-1", "1e400"}) {
    expectRefused(run + "--lr=" + rate, 2, "--lr");
  }
  for (const char* seed : {"-1", "18446744073709551616", "1.5"}) {
    expectRefused(run + "--seed=" + seed, 2, "--seed");
  }
}

TEST_F(VerbErrors, APartOfTheDeviceIsForGpus) {
  const std::string plan = "plan " + at("step.stow") + " --budget ";
  for (const char* budget : {"10%", "device:1GiB", "device:50%peak"}) {
    expectRefused(plan + budget, 2, "expected bytes such as 1.5GiB, or a share of the unplanned");
  }
  expectRefused(plan + "80%", 2, "found a budget of the device ('%'), but the target 'cpu'");
  expectRefused("profile " + at("step.stow") + " --in-steps 80% -f -o " + at("o"), 2,
                "found a budget of the device");
  expectRefused("sweep --steps 2 --budgets 20%..100% " + at("step.stow"), 0, "16.00 GiB");
  const std::string gpu = at("gpu.stow");
  ASSERT_EQ(stowage("capture gpt2 --device cuda --target h200 -o " + gpu).code, 0);
  for (const char* budget : {"80%", "device:80%", "device:24GiB"}) {
    expectRefused("plan " + gpu + " --budget " + budget, 0, "fits");
  }
}

TEST_F(VerbErrors, WaitsForNoLinkOfHours) {
  const std::string costs = readText(at("costs.json"));
  const size_t rate = costs.find("\"bytes_per_s\":", costs.find("\"h2d\":"));
  ASSERT_NE(rate, std::string::npos) << costs.substr(0, 500);
  const size_t digits = costs.find(':', rate) + 1;
  std::string slow = costs;
  slow.replace(digits, costs.find_first_not_of("0123456789", digits) - digits, "7");
  writeText(at("slow.json"), slow);
  expectRefused("run --throttle-links " + at("plan.json") + " --costs " + at("slow.json"), 3,
                "slow.json: links.h2d: found 7 bytes a second");
}

TEST_F(VerbErrors, CostsWithOtherResultsAreTheCostsFault) {
  std::string costs = readText(at("costs.json"));
  // In every row: the first may be of an op in row blocks, which the plan does not have.
  const std::string one = "\"results\":[0]";
  const std::string two = "\"results\":[0,0]";
  size_t results = costs.find(one);
  ASSERT_NE(results, std::string::npos) << costs.substr(0, 800);
  for (; results != std::string::npos; results = costs.find(one, results + two.size())) {
    costs.replace(results, one.size(), two);
  }
  writeText(at("two.json"), costs);
  expectRefused("run --steps 1 " + at("plan.json") + " --costs " + at("two.json"), 3,
                "two.json: row of ");
}

TEST_F(VerbErrors, SaysWhoNamedAGraphThatIsNotThere) {
  std::string plan = readText(at("plan.json"));
  const size_t file = plan.find("step.stow");
  ASSERT_NE(file, std::string::npos);
  plan.replace(file, std::string("step").size(), "gone");
  writeText(at("lost.json"), plan);
  expectRefused("run " + at("lost.json"), 3, "gone.stow: cannot be read");
  plan.replace(plan.find("gone.stow"), 9, "step.stow\\u0000x");
  writeText(at("zero.json"), plan);
  expectRefused("verify " + at("zero.json"), 3, "found a zero byte");
  expectRefused(
      "verify " + at("lost.json"), 3,
      "plan " + at("lost.json") + " names this file for its graph; --graph names another");
}

TEST_F(VerbErrors, LinksAndDevicesStayWhatTheyAre) {
  namespace fs = std::filesystem;
  const std::string plan = "plan " + at("step.stow") + " --budget 90%peak -o ";
  ASSERT_EQ(stowage(plan + at("target.json")).code, 0);
  fs::create_symlink(at("target.json"), at("link.json"));
  expectRefused(plan + at("link.json"), 2, "exists already");
  const auto before = fs::last_write_time(at("target.json"));
  EXPECT_EQ(stowage(plan + at("link.json") + " -f").code, 0);
  EXPECT_TRUE(fs::is_symlink(at("link.json")));
  EXPECT_NE(fs::last_write_time(at("target.json")), before);
  ASSERT_EQ(std::system(("mkfifo " + at("pipe")).c_str()), 0);
  ASSERT_EQ(std::system(("cat " + at("pipe") + " > " + at("piped") + " &").c_str()), 0);
  const Outcome piped = stowage(plan + at("pipe"));
  EXPECT_EQ(piped.code, 0) << piped.text;
  EXPECT_TRUE(fs::is_fifo(at("pipe")));
}

TEST_F(VerbErrors, WhatCannotBeWrittenIsNoBadInput) {
  const std::string plan = "plan " + at("step.stow") + " --budget 90%peak -o ";
  expectRefused(plan + at("nodir/plan.json"), 2, "folder '" + at("nodir") + "' does not exist");
  expectRefused(plan + at(""), 2, "is a directory, expected a file name");
  expectRefused(plan + "/dev/full", 4, "/dev/full: cannot write: ");
  const std::vector<std::string> writers = {
      plan,
      "plan --json --budget 90%peak " + at("step.stow") + " -o ",
      "lower " + at("plan.json") + " -o ",
      "capture gpt2 -o ",
      "profile " + at("step.stow") + " -o ",
      "sweep --steps 2 --json " + at("step.stow") + " --svg "};
  for (const std::string& verb : writers) {
    const Outcome full = stowage(verb + "/dev/full");
    EXPECT_EQ(full.code, 4) << verb << full.text;
    EXPECT_FALSE(full.says("wrote")) << verb << full.text;
    // No answer beside the error.
    EXPECT_FALSE(full.says("\"budget_bytes\"")) << verb << full.text;
  }
  for (const char* verb : {"verify ", "verify --json ", "explain "}) {
    const Outcome full = stowage(verb + at("plan.json") + " > /dev/full");
    EXPECT_EQ(full.code, 4) << verb << full.text;
  }
}

TEST_F(VerbErrors, InputsWithoutAnEndAreRefused) {
  expectRefused("verify /dev/zero", 3, "/dev/zero: is a device, expected a regular file");
  expectRefused("plan /dev/zero --budget 1GiB", 3,
                "/dev/zero: is a device, expected a regular file");
}

TEST_F(VerbErrors, RefusedMemoryIsTheEnvironmentsFault) {
  writeText(at("sparse"), "");
  std::filesystem::resize_file(at("sparse"), uintmax_t{5} << 30);
  for (const char* verb : {"verify ", "plan --budget 1GiB "}) {
    expectRefused(verb + at("sparse"), 3, "sparse: has 5.00 GiB, expected at most 1.00 GiB");
  }
  // Enough for the program, not for the file.
  std::filesystem::resize_file(at("sparse"), uintmax_t{1} << 30);
  for (const char* verb : {"verify ", "plan --budget 1GiB "}) {
    const Outcome outcome = stowage(verb + at("sparse"), "ulimit -v 1000000; ");
    EXPECT_EQ(outcome.code, 4) << outcome.text;
    EXPECT_EQ(outcome.text.find("error: out of memory: this machine refused "), 0U) << outcome.text;
  }
}

TEST_F(VerbErrors, AnUnknownVerbIsNamed) {
  expectRefused("bogus", 2, "stowage has no verb 'bogus'");
  expectRefused("verfy " + at("plan.json"), 2, "did you mean 'stowage verify'?");
}

TEST_F(VerbErrors, DemoLeavesFilesThatAreThere) {
  namespace fs = std::filesystem;
  const std::string demo = "demo --steps 2 --set preset=tiny --out ";
  fs::create_directories(at("mine"));
  for (const char* file : {"mine/plan.json", "mine/step.stow"}) {
    writeText(at(file), "mine");
    const Outcome outcome = stowage(demo + at("mine"));
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_TRUE(outcome.says(at(file) + ": exists already; -f replaces it")) << outcome.text;
    EXPECT_FALSE(outcome.says("captured")) << outcome.text;
    EXPECT_EQ(readText(at(file)), "mine");
    fs::remove(at(file));
  }
  for (const char* place : {"a.txt", "a.txt/below"}) {
    const Outcome outcome = stowage(demo + at(place));
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_TRUE(outcome.says(at("a.txt") + ": is a file, expected a folder")) << outcome.text;
    EXPECT_FALSE(outcome.says("captured")) << outcome.text;
  }
}

TEST_F(VerbErrors, DemoAnswersInJsonAndRefusesEarly) {
  const std::string demo = "demo --steps 2 --set preset=tiny --out " + at("demo");
  const Outcome outcome = stowage(demo + " -q --json");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(outcome.text.find("{\n  \"captured\": {"), 0U) << outcome.text;
  EXPECT_TRUE(outcome.says("\"identical\": true")) << outcome.text;
  EXPECT_TRUE(outcome.says("\"out_bytes\"")) << outcome.text;
  EXPECT_TRUE(outcome.says(at("demo") + "/plan.json")) << outcome.text;
  const Outcome budget = stowage(demo + " -f --budget 24");
  EXPECT_EQ(budget.code, 2) << budget.text;
  EXPECT_FALSE(budget.says("captured")) << budget.text;
  // A text has more kinds of bytes than this model knows.
  expectRefused(demo + " -f --set vocabulary=100 --text " + at("a.txt"), 3,
                "a.txt: a text, expected safetensors");
}

TEST_F(VerbErrors, DemoLeavesAPlanThatTheOtherVerbsTake) {
  ASSERT_EQ(stowage("demo -q --steps 2 --set preset=tiny --out " + at("whole")).code, 0);
  const Outcome explained = stowage("explain " + at("whole/plan.json"));
  EXPECT_EQ(explained.code, 0) << explained.text;
  EXPECT_FALSE(explained.says("note:")) << explained.text;
  const Outcome lowered = stowage("lower " + at("whole/plan.json") + " -o " + at("whole/l.json"));
  EXPECT_EQ(lowered.code, 0) << lowered.text;
}

TEST_F(VerbErrors, StepsLargerThanTheMachineAreNoBugs) {
  // Without dropout: every page of a mask without memory is asked whether it was written by hand.
  const std::string vast = " --set batch=67108864 --set dropout=0";
  ASSERT_EQ(stowage("capture gpt2" + vast + " -o " + at("vast.stow")).code, 0);
  const Outcome profiled = stowage("profile " + at("vast.stow") + " -o " + at("vast.json"));
  EXPECT_EQ(profiled.code, 4) << profiled.text;
  EXPECT_TRUE(profiled.says(" at once, this machine has ")) << profiled.text;
  const Outcome demo = stowage("demo --set preset=tiny" + vast + " --out " + at("vast_demo"));
  EXPECT_EQ(demo.code, 4) << demo.text;
  EXPECT_TRUE(demo.says("without a plan the step needs ")) << demo.text;
}

TEST_F(VerbErrors, ARecipeThatCannotBeIsABadFile) {
  const std::string step = edited("step.stow", "layers=1", "layers=-1");
  const Outcome outcome = stowage("run " + at("plan.json") + " --graph " + step);
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_TRUE(outcome.says(step + ": layers is '-1', expected an integer")) << outcome.text;
}

TEST_F(VerbErrors, AStepFileThatChangedIsABadFile) {
  std::string text = readText(at("step.stow"));
  const size_t place = text.find("h.0.attn");
  ASSERT_NE(place, std::string::npos);
  writeText(at("changed.stow"), text.replace(place, 1, "k"));
  const Outcome outcome = stowage("plan --budget 50%peak " + at("changed.stow"));
  EXPECT_EQ(outcome.code, 3) << outcome.text;
}

TEST_F(VerbErrors, SizesBeyondAllTensorsAreWrongUsage) {
  for (const char* setting :
       {"batch=99999999999999", "layers=99999999999999", "hidden=99999999999996",
        "vocabulary=99999999999999", "batch=9223372036854775807", "sequence=99999999999999"}) {
    const std::string name = std::string(setting).substr(0, std::string(setting).find('='));
    expectRefused(std::string("capture llama --set ") + setting, 2, name + " is ");
  }
  expectRefused("capture gpt2 --set lr=inf", 2, "lr is 'inf', expected a number at least 0");
  expectRefused("capture gpt2 --set lr=nan", 2, "lr is 'nan', expected a number at least 0");
}

TEST_F(VerbErrors, BadRowsAreBadFiles) {
  const std::string plan = "plan " + at("step.stow") + " --budget 90%peak --costs ";
  expectRefused(plan + edited("costs.json", "\"work_ns\":", "\"work_ns\":-"), 3,
                "edited:6: at /ops/0/work_ns");
  expectRefused(plan + edited("costs.json", "aten.addmm.default", "aten.other.default"), 3,
                "step.stow: 1");
  const Outcome row = stowage(plan + at("edited"));
  EXPECT_TRUE(row.says(" nodes have no row in the table of costs, first n")) << row.text;
  EXPECT_TRUE(row.says(at("edited") + " was measured for another step")) << row.text;
  expectRefused(
      "lower -f --estimate -o " + at("o") + " " + edited("plan.json", "\"gap\":[", "\"gap\":[1"), 3,
      "edited");
  const std::string disk = edited("plan.json", "\"action\":\"host\"", "\"action\":\"disk\"");
  expectRefused("lower -f --estimate -o " + at("o") + " " + disk, 3, "edited: storage '");
  expectRefused(
      "plan --budget 50%peak " + edited("step.stow", "aten.addmm.default(", "aten.adddmm.default("),
      3, "libtorch has no op 'aten.adddmm.default'");
  const Outcome place = stowage("profile " + at("edited") + " -f -o " + at("o"));
  EXPECT_TRUE(place.says("edited:")) << place.text;
  EXPECT_TRUE(place.text.find("edited:") + 7 < place.text.size() &&
              isdigit(place.text[place.text.find("edited:") + 7]))
      << place.text;
}

TEST_F(VerbErrors, LowerTalksOfDecisionsNotOfPasses) {
  std::string text = readText(at("plan.json"));
  for (size_t place = 0; (place = text.find("\"action\":\"host\"", place)) != std::string::npos;) {
    text.replace(place, 15, "\"action\":\"keep\"");
  }
  for (size_t place = 0;
       (place = text.find("\"action\":\"recompute\"", place)) != std::string::npos;) {
    text.replace(place, 20, "\"action\":\"keep\"");
  }
  writeText(at("kept.json"), text);
  const Outcome outcome =
      stowage("lower " + at("kept.json") + " --graph " + at("step.stow") + " -f -o " + at("o"));
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_TRUE(outcome.says("the plan's decisions need ")) << outcome.text;
  EXPECT_FALSE(outcome.says("assign-offsets")) << outcome.text;
}

TEST_F(VerbErrors, ExplainShowsTheArenaAndWhoseTimes) {
  const Outcome own = stowage("explain " + at("plan.json") + " --costs " + at("costs.json"));
  EXPECT_EQ(own.code, 0) << own.text;
  EXPECT_EQ(own.text.find("arena      "), 0U) << own.text;
  EXPECT_TRUE(own.says(", used up to ")) << own.text;
  EXPECT_FALSE(own.says("note:")) << own.text;
  // A plan says where its costs are.
  const Outcome found = stowage("explain " + at("plan.json"));
  EXPECT_EQ(found.text, own.text);
  std::filesystem::create_directories(at("alone"));
  writeText(at("alone/plan.json"), readText(at("plan.json")));
  const std::string alone = at("alone/plan.json") + " --graph " + at("step.stow");
  const Outcome estimated = stowage("explain " + alone);
  EXPECT_TRUE(estimated.says("note: times below are the estimate of profile 'cpu'"))
      << estimated.text;
  const Outcome json = stowage("explain -q --json " + alone);
  EXPECT_TRUE(json.says("\"arena_peak_bytes\"")) << json.text;
  EXPECT_TRUE(json.says("\"source\": \"roofline\"")) << json.text;
}

TEST_F(VerbErrors, HelpListsTheExitCodesOfAVerb) {
  for (const char* verb : {"", "run ", "plan ", "verify "}) {
    const Outcome help = stowage(std::string(verb) + "--help");
    EXPECT_EQ(help.code, 0) << help.text;
    EXPECT_TRUE(help.says("70 a bug in stowage")) << help.text;
    EXPECT_EQ(help.says("129, 130, 143: stopped by SIGHUP, SIGINT, SIGTERM"),
              std::string(verb) == "run ")
        << help.text;
  }
}

TEST_F(VerbErrors, FlagsDoWhatTheirHelpSays) {
  const Outcome list = stowage("capture --list --json");
  EXPECT_EQ(list.code, 0);
  EXPECT_EQ(list.text.find("{\n  \"models\": ["), 0U) << list.text;
  expectRefused("sweep --budgets 20%..100% --steps 2 " + at("step.stow"), 0,
                "note: the step fits every one of these budgets");
  const std::string plan = "plan --budget 90%peak " + at("step.stow") + " --pin ";
  expectRefused(plan + "'state:wte.*=host'", 0, "fits");
  expectRefused(plan + "'state:nothing.*=host'", 2, "matches no optimizer state");
  expectRefused("plan --budget 90%peak --pin 'wte.*=keep' " + at("step.stow"), 0, "fits");
}

}  // namespace
}  // namespace stowage::tests
