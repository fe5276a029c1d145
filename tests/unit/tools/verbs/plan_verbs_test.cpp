// SPDX-License-Identifier: Apache-2.0
//
// `plan`, `lower` and `sweep` as their users meet them: names in --json, where costs come from,
// what is never written over, exit codes.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <sstream>

#include "ir/base/affix.h"
#include "tests/support/program.h"

namespace stowage::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class PlanVerbs : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace("stowage_plan_verbs");
    ASSERT_NO_FATAL_FAILURE(planSmallModel(*folder_));
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string at(const std::string& name) { return folder_->at(name); }
  static json fileOf(const std::string& name) { return json::parse(readText(at(name))); }
  static void expectRefused(const std::string& arguments, int code, const std::string& words) {
    const Outcome outcome = stowage(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << '\n' << outcome.text;
    EXPECT_TRUE(outcome.says(words)) << arguments << '\n' << outcome.text << "expected: " << words;
  }
  /// `plan` with the measured costs.
  static std::string planAt(const std::string& budget) {
    return "plan " + at("step.stow") + " --costs " + at("costs.json") + " --budget " + budget + " ";
  }

  static std::optional<ScratchFolder> folder_;
};
std::optional<ScratchFolder> PlanVerbs::folder_;

TEST_F(PlanVerbs, AnswersHaveTheNamesOfThePlanFile) {
  const Outcome planned = stowage(planAt("60%peak") + "-q --json -o " + at("named.json"));
  ASSERT_EQ(planned.code, 0) << planned.text;
  const json answer = json::parse(planned.text);
  const json file = fileOf("named.json");
  EXPECT_EQ(answer["budget_bytes"], file["budget_bytes"]);
  EXPECT_EQ(answer["costs"]["source"], file["costs"]["source"]);
  json predicted = file["predicted"];
  predicted.erase("bound_scope");
  EXPECT_EQ(answer["predicted"], predicted);

  const Outcome lowered = stowage("lower " + at("named.json") + " -q --json -o " + at("low.json"));
  ASSERT_EQ(lowered.code, 0) << lowered.text;
  EXPECT_EQ(json::parse(lowered.text)["unplanned_bytes"], answer["unplanned_bytes"]);
  const Outcome swept = stowage("sweep -q --json --budgets 60%peak,70%peak --costs " +
                                at("costs.json") + " " + at("step.stow"));
  ASSERT_EQ(swept.code, 0) << swept.text;
  EXPECT_EQ(json::parse(swept.text)["budgets"][0]["predicted"], predicted);
  EXPECT_EQ(json::parse(swept.text)["unplanned_bytes"], answer["unplanned_bytes"]);
}

TEST_F(PlanVerbs, LowerLeavesOutWhatItCannotKnow) {
  // An embedded graph is in the plan's order: what the step's own needs is not in the file.
  ASSERT_EQ(stowage(planAt("60%peak") + "--embed -o " + at("embedded.json")).code, 0);
  const Outcome lowered =
      stowage("lower " + at("embedded.json") + " -q --json -o " + at("low_embedded.json"));
  ASSERT_EQ(lowered.code, 0) << lowered.text;
  EXPECT_FALSE(json::parse(lowered.text).contains("unplanned_bytes")) << lowered.text;
}

TEST_F(PlanVerbs, LowerGoesOnWithThePlansOwnCosts) {
  ASSERT_EQ(stowage("lower " + at("plan.json") + " -o " + at("own.json")).code, 0);
  const json plan = fileOf("plan.json");
  const json own = fileOf("own.json");
  EXPECT_EQ(own["costs"], plan["costs"]);
  EXPECT_EQ(own["costs"]["file"], "costs.json");
  EXPECT_EQ(own["predicted"]["step_ns"], plan["predicted"]["step_ns"]);
  EXPECT_EQ(own["commands"], plan["commands"]);
}

TEST_F(PlanVerbs, LowerDoesNotDropCostsThatItCannotFind) {
  fs::create_directories(at("alone"));
  fs::copy(at("plan.json"), at("alone/plan.json"));
  const std::string lower = "lower " + at("alone/plan.json") + " --graph " + at("step.stow") +
                            " -o " + at("alone/l.json");
  expectRefused(lower, 2, "plan.json: the plan was made from costs that were measured");
  expectRefused(lower, 2, "there is no " + at("alone/costs.json") + "; --costs names the file");
  std::string costs = readText(at("costs.json"));
  writeText(at("alone/costs.json"), costs.insert(costs.find("\"work_ns\":") + 10, "1"));
  expectRefused(lower, 2, "alone/costs.json has xxh3:");
  EXPECT_FALSE(fs::exists(at("alone/l.json")));

  EXPECT_EQ(stowage(lower + " --estimate").code, 0);
  EXPECT_EQ(fileOf("alone/l.json")["costs"]["source"], "roofline");
  EXPECT_EQ(stowage(lower + " -f --costs " + at("costs.json")).code, 0);
  EXPECT_EQ(fileOf("alone/l.json")["costs"]["source"], "measured");
  expectRefused(lower + " -f --estimate --costs " + at("costs.json"), 2, "--estimate");
}

TEST_F(PlanVerbs, VerifyKnowsThePlansCosts) {
  const std::string verify = "verify " + at("claims.json");
  const auto change = [](const char* key, int64_t by) {
    json plan = fileOf("plan.json");
    json& claim = plan["predicted"][key];
    claim = claim.get<int64_t>() + by;
    writeText(at("claims.json"), plan.dump());
    return std::pair(claim.get<int64_t>() - by, claim.get<int64_t>());
  };
  for (const int64_t by : {int64_t{1}, int64_t{1'000'000'000}, int64_t{-1}}) {
    const auto [step, claimed] = change("step_ns", by);
    expectRefused(verify, 1,
                  "V30: step of " + std::to_string(claimed) + " ns claimed, expected " +
                      std::to_string(step) + "\n");
  }
  const auto [compute, claimed] = change("compute_ns", 1);
  expectRefused(verify, 1,
                "V30: compute time of " + std::to_string(claimed) + " ns claimed, expected " +
                    std::to_string(compute) + "\n");

  json plan = fileOf("plan.json");
  for (json& command : plan["commands"]) {
    if (!command.contains("temp")) continue;
    command["temp"][1] = command["temp"][1].get<int64_t>() - 512;
    break;
  }
  writeText(at("claims.json"), plan.dump());
  expectRefused(verify, 1, ": V17: ");
}

TEST_F(PlanVerbs, VerifyMakesTheEstimateAgain) {
  const std::string plan = "plan " + at("step.stow") + " --budget 60%peak -o " + at("guess.json");
  ASSERT_EQ(stowage(plan).code, 0);
  const Outcome proved = stowage("verify " + at("guess.json"));
  EXPECT_EQ(proved.code, 0) << proved.text;
  EXPECT_FALSE(proved.says("note:")) << proved.text;
  json guess = fileOf("guess.json");
  guess["predicted"]["step_ns"] = guess["predicted"]["step_ns"].get<int64_t>() + 1;
  writeText(at("guess.json"), guess.dump());
  expectRefused("verify " + at("guess.json"), 1, ": V30: step of ");
}

TEST_F(PlanVerbs, VerifySaysWhatItCannotCheck) {
  fs::create_directories(at("far"));
  json plan = fileOf("plan.json");
  plan["predicted"]["step_ns"] = plan["predicted"]["step_ns"].get<int64_t>() + 1;
  writeText(at("far/plan.json"), plan.dump());
  const std::string verify = "verify " + at("far/plan.json") + " --graph " + at("step.stow");
  const std::string words = "far/plan.json: temporaries and times are not checked: ";
  expectRefused(verify, 0, words);
  expectRefused(verify, 0, "there is no " + at("far/costs.json") + "; --costs names the file");
  std::string costs = readText(at("costs.json"));
  writeText(at("far/costs.json"), costs.insert(costs.find("\"work_ns\":") + 10, "1"));
  expectRefused(verify, 0, words);
  expectRefused(verify, 0, "far/costs.json has xxh3:");
  expectRefused(verify + " --costs " + at("costs.json"), 1, ": V30: step of ");
  plan["predicted"]["peak_bytes"] = plan["predicted"]["peak_bytes"].get<int64_t>() + 512;
  writeText(at("far/plan.json"), plan.dump());
  expectRefused(verify, 1, ": V20: ");
}

TEST_F(PlanVerbs, NothingIsWrittenOverWhatIsRead) {
  for (const char* file : {"step.stow", "costs.json", "plan.json"}) {
    const std::string name = file;
    fs::create_symlink(at(name), at("link_to_" + name));
    fs::create_hard_link(at(name), at("other_" + name));
  }
  const std::string words = " of this command, expected another file";
  for (const char* prefix : {"", "link_to_", "other_"}) {
    const std::string step = at(prefix + std::string("step.stow"));
    const std::string costs = at(prefix + std::string("costs.json"));
    const std::string plan = at(prefix + std::string("plan.json"));
    for (const std::string& arguments :
         {planAt("60%peak") + "-f -o " + step, planAt("60%peak") + "-f -o " + costs,
          planAt("60%peak") + "-f --from " + at("plan.json") + " -o " + plan,
          "profile " + at("step.stow") + " -f -o " + step,
          "sweep " + at("step.stow") + " -f --svg " + step,
          "lower " + at("plan.json") + " -f -o " + step,
          "lower " + at("plan.json") + " -f -o " + costs,
          "lower " + at("plan.json") + " -f --costs " + at("costs.json") + " -o " + costs}) {
      expectRefused(arguments, 2, words);
    }
  }
  EXPECT_EQ(readText(at("step.stow")).find("graph "), 0U);
  // What an archive's inputs are called is read as well; the archive is not even opened.
  writeText(at("a.pt2"), "no archive");
  writeText(at("a.json"), "{}");
  expectRefused("capture " + at("a.pt2") + " -f -o " + at("a.json"), 2, words);
  expectRefused("capture " + at("a.pt2") + " -f -o " + at("a.pt2"), 2, words);
}

TEST_F(PlanVerbs, LowerMayWriteOverThePlanThatItReads) {
  fs::copy(at("plan.json"), at("edited.json"));
  fs::create_symlink(at("edited.json"), at("edited_link.json"));
  const Outcome outcome = stowage("lower " + at("edited.json") + " -o " + at("edited_link.json"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(fs::is_symlink(at("edited_link.json")));
}

TEST_F(PlanVerbs, TheHostLimitStaysWithThePlan) {
  ASSERT_EQ(stowage(planAt("60%peak") + "--host 64MiB -o " + at("limited.json")).code, 0);
  const int64_t limit = int64_t{64} << 20;
  json plan = fileOf("limited.json");
  EXPECT_EQ(plan["spaces"]["host"]["limit_bytes"], limit);
  EXPECT_FALSE(fileOf("plan.json")["spaces"]["host"].contains("limit_bytes"));

  ASSERT_EQ(stowage("lower " + at("limited.json") + " -o " + at("lowered.json")).code, 0);
  EXPECT_EQ(fileOf("lowered.json")["spaces"], plan["spaces"]);
  const std::string again = planAt("60%peak") + "-f --from " + at("limited.json");
  ASSERT_EQ(stowage(again + " -o " + at("from.json")).code, 0);
  EXPECT_EQ(fileOf("from.json")["spaces"]["host"]["limit_bytes"], limit);
  ASSERT_EQ(stowage(again + " --host 32MiB -o " + at("from.json")).code, 0);
  EXPECT_EQ(fileOf("from.json")["spaces"]["host"]["limit_bytes"], limit / 2);

  plan["spaces"]["host"]["limit_bytes"] = plan["spaces"]["host"]["arena_bytes"].get<int64_t>() - 1;
  writeText(at("above.json"), plan.dump());
  const std::string lower = "lower " + at("above.json") + " -o ";
  expectRefused(lower + at("none.json"), 1, " of the host, expected at most its limit of ");
  EXPECT_FALSE(fs::exists(at("none.json")));
  expectRefused("verify " + at("above.json"), 1, ": V19: host arena has ");
  plan["spaces"]["host"]["limit_bytes"] = 1;
  writeText(at("above.json"), plan.dump());
  expectRefused(planAt("60%peak") + "--from " + at("above.json"), 1, "with 1 B of host memory");
}

TEST_F(PlanVerbs, WhatIsAliveAtOnceAndWhatAnArenaTakesHaveTheirWords) {
  const Outcome fits = stowage(planAt("1GiB"));
  EXPECT_TRUE(fits.says("fits       as it is: laid out in ")) << fits.text;
  for (const Outcome& outcome : {fits, stowage(planAt("60%peak"))}) {
    EXPECT_TRUE(
        std::regex_search(outcome.text, std::regex(R"(\(unplanned: [0-9.]+ KiB at once\))")))
        << outcome.text;
  }
}

TEST_F(PlanVerbs, ExplainNumbersGapsAsDecisionsDo) {
  // From the estimate: measured times would make another plan each time.
  ASSERT_EQ(
      stowage("plan " + at("step.stow") + " --budget 50%peak -o " + at("estimated.json")).code, 0);
  const json plan = fileOf("estimated.json");
  ASSERT_FALSE(plan["decisions"].empty());
  bool endsInNextStep = false;
  const size_t count = plan["decisions"].size();
  for (size_t i = 0; i < count; i += 1 + count / 8) {
    const json& row = plan["decisions"][i];
    const std::string name = row["name"];
    const std::string explain = "explain " + at("estimated.json") + " '" + name + "'";
    const json story = json::parse(stowage(explain + " -q --json").text);
    EXPECT_EQ(story["storage_id"], row["storage"]);
    const auto isRow = [&](const json& gap) {
      return gap["gap"] == row["gap"] && gap["action"] == row["action"];
    };
    EXPECT_TRUE(std::any_of(story["gaps"].begin(), story["gaps"].end(), isRow)) << row << story;
    endsInNextStep = endsInNextStep || row["gap"][1] >= plan["graph"]["nodes"];
    const std::string text = stowage(explain).text;
    const std::string numbers = "gap [" + std::to_string(row["gap"][0].get<int64_t>()) + ", " +
                                std::to_string(row["gap"][1].get<int64_t>()) + "]: ";
    EXPECT_NE(text.find(numbers), std::string::npos) << text;
  }
  EXPECT_TRUE(endsInNextStep);
}

// The largest gain first, and no single tensors.
TEST_F(PlanVerbs, ExplainSaysWhatWouldHelp) {
  ASSERT_EQ(stowage("plan " + at("step.stow") + " --budget 50%peak -o " + at("helped.json")).code,
            0);
  const Outcome explained = stowage("explain " + at("helped.json") + " -q --json");
  ASSERT_EQ(explained.code, 0) << explained.text;
  const json helps = json::parse(explained.text)["helps"];
  EXPECT_LE(helps.size(), 5U);
  int64_t before = INT64_MAX;
  for (const json& help : helps) {
    EXPECT_TRUE(help.contains("more") || help.contains("no_copies_of")) << help;
    EXPECT_LE(help["saved_ns"].get<int64_t>(), before);
    before = help["saved_ns"];
  }
  EXPECT_TRUE(stowage("explain " + at("helped.json")).says("helps      "));
}

TEST_F(PlanVerbs, FiguresThatCannotBeAreViolations) {
  const json good = fileOf("plan.json");
  const auto expectViolation = [&](const char* pointer, int64_t value, const char* words) {
    json plan = good;
    plan[json::json_pointer(pointer)] = value;
    writeText(at("odd.json"), plan.dump());
    expectRefused("verify " + at("odd.json"), 1, words);
  };
  expectViolation("/spaces/host/arena_bytes", 10'000'000'000'000'000, ": V19: host arena has ");
  const int64_t step = good["predicted"]["step_ns"];
  expectViolation("/predicted/bound_ns", step + 1, ": V30: step of ");
  expectViolation("/predicted/bound_ns", 0, ": V30: bound of 0 ns claimed, expected at least");
  expectViolation("/predicted/stall_ns/h2d", step, ": V30: stall of ");
  expectViolation("/predicted/out_bytes", 1, ": V20: bytes out of 1 bytes claimed");
  json plan = good;
  plan["spaces"]["host"]["arena_bytes"] = 10'000'000'000'000'000;
  writeText(at("odd.json"), plan.dump());
  expectRefused("run " + at("odd.json"), 1, "V19: host arena has ");
}

TEST_F(PlanVerbs, AllowNoneGoesWithNothingElse) {
  for (const char* words : {"none,offload", "offload,none", "none,none"}) {
    expectRefused(planAt("60%peak") + "--allow " + words, 2,
                  std::string("--allow: found '") + words + "', expected none by itself");
  }
  expectRefused(planAt("100%peak") + "--allow none", 0, "fits");
}

TEST_F(PlanVerbs, SweepSaysNoWhenNothingFits) {
  const std::string sweep = "sweep " + at("step.stow") + " --budgets ";
  expectRefused(sweep + "4KiB,8KiB", 1, "nothing fits");
  expectRefused(sweep + "4KiB,100%peak", 0, "nothing fits");
  const Outcome both = stowage("-q sweep");
  EXPECT_EQ(both.code, 2) << both.text;
}

TEST_F(PlanVerbs, EqualRoundedSizesAreSaidExactly) {
  ASSERT_EQ(stowage("capture gpt2 -o " + at("larger.stow")).code, 0);
  const std::string plan = "plan " + at("larger.stow") + " --budget ";
  const Outcome infeasible = stowage(plan + "1KiB --json");
  ASSERT_EQ(infeasible.code, 1) << infeasible.text;
  const json error = json::parse(infeasible.text.substr(0, infeasible.text.find("\n}\n") + 2));
  const auto smallest = error["error"]["infeasible"]["smallest_budget_bytes"].get<int64_t>();
  const std::string exact = std::to_string(smallest);
  ASSERT_GT(smallest, 1 << 20);  // 512 bytes are less than a hundredth of a MiB
  const std::string less = std::to_string(smallest - 512) + "B";
  expectRefused(plan + less, 1, "smallest device budget that works: " + exact + "B (");
  expectRefused(plan + less, 1, "), found " + less);
  expectRefused("sweep " + at("larger.stow") + " --budgets " + less, 1,
                "budget that works: " + exact + " B");
  expectRefused(plan + exact + "B", 0, "fits");
}

TEST_F(PlanVerbs, WhatPeopleReadInAPlanIsCheckedAgainstTheStep) {
  const auto lowerEdited = [&](const std::string& what, const std::string& with) {
    std::string text = readText(at("plan.json"));
    const size_t place = text.find(what, text.find("\"decisions\":"));
    ASSERT_NE(place, std::string::npos) << what;
    writeText(at("labels.json"), text.replace(place, what.size(), with));
    for (const std::string verb : {"verify ", "explain ", "run "}) {
      expectRefused(verb + at("labels.json"), 3, "labels.json: at /decisions/0/");
    }
  };
  lowerEdited("\"bytes\":", "\"bytes\":1");
  lowerEdited("\"name\":\"", "\"name\":\"other_");

  json plan = fileOf("plan.json");
  plan["graph"]["nodes"] = plan["graph"]["nodes"].get<int64_t>() + 1;
  writeText(at("counts.json"), plan.dump());
  expectRefused("verify " + at("counts.json"), 3, "the plan says that its graph has ");
}

TEST_F(PlanVerbs, LaunchModesAreForStepsThatAllowThem) {
  expectRefused(planAt("60%peak") + "--launch whole", 2, "expected a target for CUDA");
  const auto capture = [](const std::string& name, const std::string& precision) {
    return stowage("capture gpt2 --device cuda --target h200 --set precision=" + precision +
                   " -o " + at(name))
        .code;
  };
  // Memory-efficient attention leaves its generator's state on the host.
  ASSERT_EQ(capture("host.stow", "float32"), 0);
  for (const char* mode : {"no_update", "whole"}) {
    const std::string host = "plan " + at("host.stow") + " --budget 64MiB --launch " + mode;
    expectRefused(host, 1, "a CUDA graph cannot hold node aten._scaled_dot_product_efficient");
    expectRefused(host, 1, "--launch none launches every op");
  }
  ASSERT_EQ(capture("fed.stow", "bfloat16"), 0);
  const std::string fed = "plan " + at("fed.stow") + " --budget 64MiB --launch ";
  expectRefused(fed + "all", 2, "expected none, no_update or whole");
  const Outcome whole = stowage(fed + "whole -o " + at("whole.json"));
  ASSERT_EQ(whole.code, 0) << whole.text;
  EXPECT_EQ(fileOf("whole.json")["mode"]["boundary"], "joined");
  EXPECT_EQ(stowage("verify " + at("whole.json")).code, 0);
  EXPECT_EQ(stowage(fed + "no_update -o " + at("fed.json")).code, 0);
  EXPECT_EQ(fileOf("fed.json")["mode"]["graph"], "no_update");
  EXPECT_EQ(stowage("verify " + at("fed.json")).code, 0);
  const Outcome lowered = stowage("lower " + at("fed.json") + " -o " + at("fed_low.json"));
  ASSERT_EQ(lowered.code, 0) << lowered.text;
  EXPECT_EQ(fileOf("fed_low.json")["commands"], fileOf("fed.json")["commands"]);
  EXPECT_EQ(fileOf("fed_low.json")["mode"], fileOf("fed.json")["mode"]);
}

TEST_F(PlanVerbs, ABudgetOfTheDeviceHoldsWhatLiesBesideTheArenaToo) {
  const std::string step = at("beside.stow");
  ASSERT_EQ(stowage("capture gpt2 --device cuda --target h200 -o " + step).code, 0);
  const std::string plan = "plan " + step + " --budget device:";
  const Outcome planned = stowage(plan + "1GiB -o " + at("beside.json"));
  ASSERT_EQ(planned.code, 0) << planned.text;
  EXPECT_TRUE(planned.says("beside it 800.00 MiB of the device")) << planned.text;
  const json file = fileOf("beside.json");
  EXPECT_EQ(file["target"]["outside_bytes"], 800 << 20);
  EXPECT_EQ(file["budget_bytes"], (1024 - 800) << 20);
  expectRefused(plan + "700MiB", 2, "found 700.00 MiB for everything on the device");
}

TEST_F(PlanVerbs, TheSmallestBudgetOfTheDeviceIsOneToo) {
  const std::string step = at("beside.stow");
  ASSERT_EQ(stowage("capture gpt2 --device cuda --target h200 -f -o " + step).code, 0);
  const std::string plan = "plan " + step + " --budget device:";
  const Outcome refused = stowage(plan + "801MiB");
  EXPECT_TRUE(refused.says("of which 800.00 MiB lie beside the arena")) << refused.text;
  std::smatch found;
  static const std::regex kSmallest("budget that works: device:([0-9]+)B");
  ASSERT_TRUE(std::regex_search(refused.text, found, kSmallest)) << refused.text;
  const int64_t smallest = std::stoll(found[1]);
  EXPECT_EQ(stowage(plan + std::to_string(smallest) + "B").code, 0);
  EXPECT_EQ(stowage(plan + std::to_string(smallest - 1) + "B").code, 1);
  const std::string answer = stowage(plan + "801MiB --json -q").text;
  const json error = json::parse(answer.substr(0, answer.find("\n}\n") + 2))["error"]["infeasible"];
  EXPECT_EQ(error["outside_bytes"], 800 << 20);
  EXPECT_EQ(error["smallest_budget_bytes"].get<int64_t>() + (800 << 20), smallest);
  const Outcome swept = stowage("sweep " + step + " --budgets device:801MiB,device:1GiB");
  EXPECT_TRUE(swept.says(" 801.00 MiB  nothing fits")) << swept.text;
  EXPECT_TRUE(swept.says("   1.00 GiB  ")) << swept.text;
}

/// The same step under other names of storages, values and modules.
std::string renamed(const std::string& text) {
  static const std::regex kName(R"((%[A-Za-z_][A-Za-z0-9_.]*)|("[^"]+"))");
  std::map<std::string, std::string> names;
  std::istringstream lines(text);
  std::string out;
  std::string line;
  for (bool isHeader = true; std::getline(lines, line); isHeader = false) {
    if (line.rfind("// checksum", 0) == 0) continue;
    std::smatch found;
    while (!isHeader && std::regex_search(line, found, kName)) {
      out += found.prefix();
      const std::string number = std::to_string(names.size());
      const bool isValue = found.str()[0] == '%';
      // A text among an op's arguments is no name.
      const bool isArgument = !isValue && (ir::endsWith(out, ", ") || ir::endsWith(out, "("));
      const auto name = names.emplace(found.str(), isValue ? "%v" + number : "\"n" + number + "\"");
      out += isArgument ? found.str() : name.first->second;
      line = found.suffix();
    }
    out += line + "\n";
  }
  return out;
}

// Nothing may be decided by what things are called.
TEST_F(PlanVerbs, OtherNamesGiveTheSamePlan) {
  writeText(at("renamed.stow"), renamed(readText(at("step.stow"))));
  ASSERT_EQ(stowage(planAt("60%peak") + "-o " + at("names.json")).code, 0);
  const Outcome other = stowage("plan " + at("renamed.stow") + " --costs " + at("costs.json") +
                                " --budget 60%peak -o " + at("renamed.json"));
  ASSERT_EQ(other.code, 0) << other.text;
  json plan = fileOf("names.json");
  json again = fileOf("renamed.json");
  EXPECT_NE(plan["graph"]["fingerprint"], again["graph"]["fingerprint"]);
  for (json* file : {&plan, &again}) {
    for (json& row : (*file)["decisions"]) row.erase("name");
  }
  for (const char* part : {"decisions", "residencies", "boundary", "commands", "predicted"}) {
    EXPECT_EQ(plan[part], again[part]) << part;
  }
}

// A step is captured without memory behind it.
TEST(CaptureVerb, A70BModelTakesLittleMemory) {
  const ScratchFolder folder("stowage_capture_70b");
  const std::string file = folder.at("70b.stow");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    execl(STOWAGE_PROGRAM, STOWAGE_PROGRAM, "capture", "llama", "--set", "preset=llama3-70b",
          "--set", "precision=bfloat16", "--set", "batch=1", "--set", "sequence=8192", "--device",
          "cuda", "--target", "h200", "-o", file.c_str(), "-q", nullptr);
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  ASSERT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_EQ(status, 0);
  EXPECT_LT(usage.ru_maxrss, 1 << 20) << "KiB";
}

TEST_F(PlanVerbs, LowerTakesAPlanWithoutPrefetches) {
  json plan = fileOf("plan.json");
  plan["prefetch_limit_bytes"] = 0;
  // Copies at other times may need other addresses.
  plan["budget_bytes"] = plan["budget_bytes"].get<int64_t>() * 8 / 6;
  writeText(at("no_prefetch.json"), plan.dump());
  const Outcome lowered = stowage("lower " + at("no_prefetch.json") + " -o " + at("low0.json"));
  EXPECT_EQ(lowered.code, 0) << lowered.text;
  EXPECT_EQ(stowage("verify " + at("low0.json")).code, 0);
}

TEST_F(PlanVerbs, CostsOfOtherThreadsAreRefused) {
  const std::string other = fileOf("plan.json")["target"]["intra_op_threads"] == 1 ? "2" : "1";
  expectRefused(planAt("60%peak") + "--threads " + other, 3, "costs.json: measured on 'cpu, ");
}

TEST_F(PlanVerbs, ProfileTakesTheTimesThatOpsHaveInSteps) {
  const std::string profile = "profile " + at("step.stow") + " -o " + at("in_steps.json");
  const Outcome measured = stowage(profile + " --in-steps 80%peak -q --json");
  ASSERT_EQ(measured.code, 0) << measured.text;
  const json inSteps = json::parse(measured.text)["in_steps"];
  for (const char* time : {"step_ns", "predicted_alone_ns", "predicted_ns", "scalars_ns"}) {
    EXPECT_GT(inSteps[time], 0) << time;
  }
  EXPECT_LE(inSteps["arena_bytes"], fileOf("plan.json")["budget_bytes"].get<int64_t>() * 8 / 6);
  EXPECT_EQ(stowage("plan " + at("step.stow") + " --budget 60%peak --costs " + at("in_steps.json") +
                    " -o " + at("from_steps.json"))
                .code,
            0);
  expectRefused(profile + " -f --in-steps 1KiB", 1, "smallest device budget that works");
  expectRefused(profile + " -f --host 1GiB", 2, "--in-steps");
}

TEST_F(PlanVerbs, ProfileMeasuresADisk) {
  const std::string profile = "profile " + at("step.stow") + " -o " + at("disk.json");
  expectRefused(profile + " --disk " + at("missing"), 2, "disk '" + at("missing") + "'");
  const Outcome measured = stowage(profile + " --known " + at("costs.json") + " --disk .");
  if (measured.says("O_DIRECT")) GTEST_SKIP() << measured.text;
  ASSERT_EQ(measured.code, 0) << measured.text;
  EXPECT_TRUE(measured.says(" written, after ")) << measured.text;
  EXPECT_EQ(fileOf("costs.json")["links"]["disk_read"]["bytes_per_s"], 1);  // not measured
  EXPECT_GT(fileOf("disk.json")["links"]["disk_read"]["bytes_per_s"], 1'000'000);
  EXPECT_GT(fileOf("disk.json")["links"]["disk_write"]["bytes_per_s"], 1'000'000);
}

// Copies may not be faster than the links that the costs speak of.
TEST_F(PlanVerbs, ProfileTakesOverWhatWasMeasuredHere) {
  ASSERT_EQ(stowage("capture gpt2 --set batch=3 -o " + at("batch3.stow")).code, 0);
  const std::string profile = "profile " + at("batch3.stow") + " --known " + at("costs.json");
  const Outcome measured = stowage(profile + " -q --json -o " + at("batch3.json"));
  ASSERT_EQ(measured.code, 0) << measured.text;
  const json answer = json::parse(measured.text);
  const auto known = answer["known"].get<size_t>();
  EXPECT_GT(known, 0U);
  EXPECT_LT(known, answer["signatures"].get<size_t>());
  std::map<std::string, json> before;
  const json old = fileOf("costs.json");
  for (const json& op : old["ops"]) before[op["signature"]] = op;
  const json made = fileOf("batch3.json");
  size_t same = 0;
  for (const json& op : made["ops"]) {
    const auto found = before.find(op["signature"]);
    if (found == before.end()) continue;
    EXPECT_EQ(found->second, op);  // those of row blocks too
    ++same;
  }
  EXPECT_EQ(same, known);

  expectRefused(profile + " --threads 1 -o " + at("one.json"), 3, "measured on 'cpu, ");
  expectRefused(profile + " --repeats 3 -o " + at("one.json"), 2, "--known excludes --repeats");
  expectRefused(
      "profile " + at("step.stow") + " -f --known " + at("costs.json") + " -o " + at("costs.json"),
      2, "is an input of this command");
}

TEST_F(PlanVerbs, ThrottledRunsTakeWhatTheLinksTake) {
  constexpr int64_t kRate = 20'000'000;
  json costs = fileOf("costs.json");
  for (const char* link : {"d2h", "h2d"}) costs["links"][link]["bytes_per_s"] = kRate;
  writeText(at("slow.json"), costs.dump());
  ASSERT_EQ(stowage("plan " + at("step.stow") + " --budget 60%peak --allow offload --costs " +
                    at("slow.json") + " -o " + at("slow.plan.json"))
                .code,
            0);
  const std::string run = "run " + at("slow.plan.json") + " --steps 6 --json --throttle-links";
  const Outcome outcome = stowage(run + " -q --costs " + at("slow.json"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const int64_t moved = fileOf("slow.plan.json")["predicted"]["out_bytes"].get<int64_t>();
  ASSERT_GT(moved, 0);
  // Some copies of the timed steps may be over before the clock starts.
  EXPECT_GE(json::parse(outcome.text)["step_ns"].get<double>(),
            0.6 * static_cast<double>(moved) / kRate * 1e9);
  expectRefused(run, 2, "--costs");
}

TEST_F(PlanVerbs, CostsOfTheOtherModeAreRefused) {
  const std::string step = at("default.stow");
  ASSERT_EQ(stowage("capture gpt2 --set preset=tiny --nondeterministic -o " + step).code, 0);
  expectRefused("plan " + step + " --budget 60%peak --costs " + at("costs.json"), 3,
                "costs.json: measured on 'cpu, ");
  const Outcome plan = stowage("plan " + step + " --budget 60%peak -o " + at("default.json"));
  EXPECT_EQ(plan.code, 0) << plan.text;
  EXPECT_EQ(fileOf("default.json")["target"]["deterministic"], false);
  EXPECT_EQ(fileOf("plan.json")["target"]["deterministic"], true);
}

TEST_F(PlanVerbs, AnotherGraphIsSaidWithItsFingerprintsAndFiles) {
  ASSERT_EQ(stowage("capture lstm -o " + at("lstm.stow")).code, 0);
  const std::string verify = "verify " + at("plan.json") + " --graph " + at("lstm.stow");
  expectRefused(verify, 3, "plan.json: found graph 'lstm' of " + at("lstm.stow"));
  expectRefused(verify, 3, " in program order, expected the plan's in any order, xxh3:");
}

}  // namespace
}  // namespace stowage::tests
