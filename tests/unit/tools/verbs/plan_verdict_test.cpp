// SPDX-License-Identifier: Apache-2.0
//
// One judgement of plans from files: what `verify` refuses, `run` and `explain` refuse with the
// same rules and words, and what it accepts runs. Plans are changed one fact at a time, with the
// costs that they were made from at hand and without.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace stowage::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Edit = std::function<void(json&)>;

struct Mutant {
  std::string name;
  int code;  // of every verb
  Edit edit;
  int alone = -1;              // where the costs are not at hand; -1: the same
  const char* of = "offload";  // or "recompute": the plan that is changed
};

/// The first command that `isWanted`.
template <typename Wanted>
json& findCommand(json& plan, Wanted isWanted) {
  for (json& command : plan["commands"]) {
    if (isWanted(command)) return command;
  }
  throw std::runtime_error("the plan has no such command");
}
json& findWith(json& plan, const char* member) {
  return findCommand(plan, [&](const json& command) { return command.contains(member); });
}
json& findRecompute(json& plan, const char* member) {
  return findCommand(plan, [&](const json& command) {
    return command.contains("recompute") && command.contains(member);
  });
}
json& findCopy(json& plan) {
  return findCommand(plan, [](const json& command) { return command["op"] == "copy"; });
}
/// Adds to a number of the plan.
Edit add(const char* pointer, int64_t by) {
  return [=](json& plan) {
    json& value = plan[json::json_pointer(pointer)];
    value = value.get<int64_t>() + by;
  };
}
Edit set(const char* pointer, json value) {
  return [=](json& plan) { plan[json::json_pointer(pointer)] = value; };
}

/// What only costs can refuse.
std::vector<Mutant> claims() {
  return {
      {"a launch without its temp", 1, [](json& plan) { findWith(plan, "temp").erase("temp"); }, 0},
      {"a smaller temp", 1, [](json& plan) { findWith(plan, "temp")["temp"][1] = 64; }, 0},
      {"no temp at all", 1,
       [](json& plan) {
         for (json& command : plan["commands"]) command.erase("temp");
       },
       0},
      {"a recompute without its temp", 1,
       [](json& plan) { findRecompute(plan, "temp").erase("temp"); }, 0, "recompute"},
      {"a longer compute time", 1, add("/predicted/compute_ns", 1), 0},
      {"a shorter compute time", 1, add("/predicted/compute_ns", -1), 0},
      {"a longer step", 1, add("/predicted/step_ns", 1000), 0},
      {"a shorter step", 1, add("/predicted/step_ns", -1), 1},
  };
}

std::vector<Mutant> schedules() {
  return {
      {"a bound of nothing", 1, set("/predicted/bound_ns", 0)},
      {"a stall as long as the step", 1,
       [](json& plan) {
         plan["predicted"]["stall_ns"]["h2d"] = plan["predicted"]["step_ns"].get<int64_t>() + 1;
       }},
      {"another peak", 1, add("/predicted/peak_bytes", -512)},
      {"other bytes out", 1, set("/predicted/out_bytes", 512)},
      {"another budget", 1, add("/budget_bytes", 512)},
      {"a smaller host arena", 1, add("/spaces/host/arena_bytes", -512)},
      {"a host limit below the arena", 1, set("/spaces/host/limit_bytes", 512)},
      {"a launch without its waits", 1,
       [](json& plan) {
         findCommand(plan, [](const json& command) {
           return command["op"] == "run" && command.contains("wait");
         }).erase("wait");
       }},
      {"no copy waits for anything", 1,
       [](json& plan) {
         for (json& command : plan["commands"]) {
           if (command["op"] == "copy") command.erase("wait");
         }
       }},
      {"two commands change places", 1,
       [](json& plan) { std::swap(plan["commands"][5], plan["commands"][20]); }},
      {"a copy the other way", 1,
       [](json& plan) { std::swap(findCopy(plan)["from"], findCopy(plan)["to"]); }},
      {"a copy on the other engine", 1,
       [](json& plan) { findCopy(plan)["stream"] = findCopy(plan)["stream"] == 1 ? 2 : 1; }},
      {"a launch on the host stream", 1, [](json& plan) { findWith(plan, "temp")["stream"] = 5; }},
      {"the last command is gone", 1,
       [](json& plan) { plan["commands"].erase(plan["commands"].size() - 1); }},
      {"a place that is not aligned", 1, [](json& plan) { plan["residencies"][60][3] = 8; }},
      {"a place beyond the arena", 1,
       [](json& plan) { plan["residencies"][60][3] = plan["budget_bytes"]; }},
      {"a place beyond all memory", 1,
       [](json& plan) { plan["residencies"][60][3] = int64_t{1} << 62; }},
      {"a place at the end of numbers", 1,
       [](json& plan) { plan["residencies"][60][3] = INT64_MAX - 511; }},
      {"everything at one place", 1,
       [](json& plan) {
         for (json& residency : plan["residencies"]) residency[3] = 0;
       }},
      {"a temp on what is alive", 1, [](json& plan) { findWith(plan, "temp")["temp"][0] = 0; }},
      {"a residency of another storage", 1,
       [](json& plan) { plan["residencies"][60][1] = plan["residencies"][61][1].get<int>() + 1; }},
      {"another dirty flag", 1,
       [](json& plan) {
         json& dirty = plan["boundary"][2]["dirty"];
         dirty = !dirty.get<bool>();
       }},
      {"a boundary entry is gone", 1, [](json& plan) { plan["boundary"].erase(3); }},
      {"a decision is gone", 1, [](json& plan) { plan["decisions"].erase(0); }},
      {"a decision says otherwise", 1,
       [](json& plan) { plan["decisions"][0]["action"] = "recompute"; }},
      {"a joined step", 1,
       [](json& plan) {
         plan["mode"]["boundary"] = "joined";
         plan["commands"][200]["prev"] = {1};
       }},
      {"another op table", 1, add("/op_table_version", 1)},
      {"a recompute's number", 1, [](json& plan) { findWith(plan, "recompute")["recompute"] = 7; },
       -1, "recompute"},
      {"a recompute that is an original", 1,
       [](json& plan) { findWith(plan, "recompute").erase("recompute"); }, -1, "recompute"},
      {"a slot that nobody saved", 1, [](json& plan) { findRecompute(plan, "rng")["rng"] = 99; },
       -1, "recompute"},
      {"a slot beyond all memory", 1,
       [](json& plan) {
         json& run = findRecompute(plan, "rng");
         const json slot = run["rng"];
         for (json& command : plan["commands"]) {
           if (command.contains("rng") && command["rng"] == slot) command["rng"] = INT32_MAX;
         }
       },
       -1, "recompute"},
      {"a recompute without its slot", 1,
       [](json& plan) { findRecompute(plan, "rng").erase("rng"); }, -1, "recompute"},
      {"no bound scope, another name", 3, set("/decisions/0/name", "nobody")},
      {"another graph", 3, set("/graph/fingerprint", "xxh3:0000000000000000")},
      {"an id beyond the graph", 3, [](json& plan) { plan["commands"][5]["node"] = 100'000; }},
  };
}

/// Other plans, or other words, that are as good.
std::vector<Mutant> sound() {
  return {
      {"the plan itself", 0, [](json&) {}},
      {"the plan that recomputes", 0, [](json&) {}, -1, "recompute"},
      {"no reason for a decision", 0, set("/decisions/0/why", "")},
      {"a pinned decision", 0, set("/decisions/0/pinned", true)},
      {"another bound scope", 0, set("/predicted/bound_scope", "program")},
      {"no prefetch limit", 0, [](json& plan) { plan.erase("prefetch_limit_bytes"); }},
      {"a wait more", 0,
       [](json& plan) {
         json& last = plan["commands"].back();
         json waits = {0};
         for (const json& known : last.value("wait", json::array())) waits.push_back(known);
         last["wait"] = waits;
       },
       0},
  };
}

class PlanVerdict : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace("stowage_plan_verdict");
    ASSERT_NO_FATAL_FAILURE(planSmallModel(*folder_, "--set dropout=0.1"));
    // Measured times would make other plans each time.
    json costs = json::parse(readText(at("costs.json")));
    for (json& op : costs["ops"]) op["work_ns"] = 20'000;
    for (const char* link : {"d2h", "h2d"}) costs["links"][link]["bytes_per_s"] = 4'000'000'000;
    writeText(at("costs.json"), costs.dump());
    const std::string plan = "plan " + at("step.stow") + " --costs " + at("costs.json");
    for (const std::string& more :
         {"--allow offload --budget 60%peak -o " + at("offload.json"),
          "--allow recompute --budget 80%peak -o " + at("recompute.json")}) {
      const Outcome planned = stowage(plan + " " + more);
      ASSERT_EQ(planned.code, 0) << planned.text;
    }
    fs::create_directories(at("alone"));
    fs::copy(at("step.stow"), at("alone/step.stow"));
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string at(const std::string& name) { return folder_->at(name); }

  /// The verbs agree about the mutant in `file`.
  static void expectOneVerdict(const Mutant& mutant, const std::string& file, int code) {
    json plan = json::parse(readText(at(std::string(mutant.of) + ".json")));
    mutant.edit(plan);
    writeText(file, plan.dump());
    const Outcome verified = stowage("verify " + file);
    EXPECT_EQ(verified.code, code) << mutant.name << ": verify\n" << verified.text.substr(0, 2000);
    std::vector<std::string> verbs = {"run " + file + " --steps 1"};
    if (file == at("mutant.json")) verbs.push_back("explain " + file);
    for (const std::string& verb : verbs) {
      const Outcome other = stowage(verb);
      EXPECT_EQ(other.code, verified.code) << mutant.name << ": " << verb << '\n'
                                           << other.text.substr(0, 2000);
      if (verified.code == 0) continue;
      std::istringstream lines(verified.text);
      constexpr int kMostShown = 50;  // an error shows no more (ir/base/printable.h)
      int shown = 0;
      for (std::string line; std::getline(lines, line) && shown < kMostShown;) {
        const size_t rule = line.find(": V");
        if (rule == std::string::npos) continue;
        ++shown;
        EXPECT_TRUE(other.says(line.substr(rule + 2))) << mutant.name << ": " << verb << '\n'
                                                       << line;
      }
    }
  }
  static void expectOneVerdict(const std::vector<Mutant>& mutants) {
    // Without its step beside it: those of which less is known then, and some others.
    constexpr size_t kOthers = 4;
    for (size_t i = 0; i < mutants.size(); ++i) {
      const Mutant& mutant = mutants[i];
      expectOneVerdict(mutant, at("mutant.json"), mutant.code);
      const int alone = mutant.alone < 0 ? mutant.code : mutant.alone;
      if (mutant.alone < 0 && i % kOthers != 0) continue;
      expectOneVerdict(mutant, at("alone/mutant.json"), alone);
    }
  }

  static std::optional<ScratchFolder> folder_;
};
std::optional<ScratchFolder> PlanVerdict::folder_;

TEST_F(PlanVerdict, ClaimsAboutCostsAreJudgedAlikeByEveryVerb) { expectOneVerdict(claims()); }
TEST_F(PlanVerdict, BrokenSchedulesAreJudgedAlikeByEveryVerb) { expectOneVerdict(schedules()); }
TEST_F(PlanVerdict, SoundPlansRun) { expectOneVerdict(sound()); }

// The plan's costs count, wherever they are, not others that happen to be given.
TEST_F(PlanVerdict, CostsOfTheUserCountWhereThePlanWasMadeFromThem) {
  json plan = json::parse(readText(at("offload.json")));
  plan["predicted"]["compute_ns"] = plan["predicted"]["compute_ns"].get<int64_t>() + 1;
  writeText(at("alone/mutant.json"), plan.dump());
  const std::string own = at("alone/mutant.json") + " --costs " + at("costs.json");
  std::string words = "V30: compute time of ";
  for (const std::string& verb : {"verify " + own, "run " + own, "explain " + own}) {
    const Outcome refused = stowage(verb);
    EXPECT_EQ(refused.code, 1) << verb << '\n' << refused.text;
    EXPECT_TRUE(refused.says(words)) << verb << '\n' << refused.text;
  }
  std::string costs = readText(at("costs.json"));
  writeText(at("other.json"), costs.insert(costs.find("\"work_ns\":") + 10, "1"));
  writeText(at("mutant.json"), plan.dump());
  const Outcome refused = stowage("run " + at("mutant.json") + " --costs " + at("other.json"));
  EXPECT_EQ(refused.code, 1) << refused.text;
  EXPECT_TRUE(refused.says(words)) << refused.text;
  // Measured anew, an honest plan's times are others; that is no fault of the plan.
  const Outcome ran =
      stowage("run " + at("offload.json") + " --steps 1 --costs " + at("other.json"));
  EXPECT_EQ(ran.code, 0) << ran.text;
}

// `lower` takes decisions alone, and what it writes stands the same judgement.
TEST_F(PlanVerdict, LowerMendsAPlanThatWasMadeFromAnEstimate) {
  const std::string plan = "plan " + at("step.stow") + " --budget 80%peak -o " + at("guess.json");
  ASSERT_EQ(stowage(plan).code, 0);
  json guess = json::parse(readText(at("guess.json")));
  const json commands = guess["commands"];
  ASSERT_TRUE(findWith(guess, "temp").contains("temp"));
  for (json& command : guess["commands"]) command.erase("temp");
  guess["predicted"]["compute_ns"] = 1;
  writeText(at("guess.json"), guess.dump());
  EXPECT_EQ(stowage("verify " + at("guess.json")).code, 1);
  EXPECT_EQ(stowage("run " + at("guess.json") + " --steps 1").code, 1);
  const Outcome lowered = stowage("lower " + at("guess.json") + " -o " + at("mended.json"));
  ASSERT_EQ(lowered.code, 0) << lowered.text;
  EXPECT_EQ(json::parse(readText(at("mended.json")))["commands"], commands);
  const Outcome verified = stowage("verify " + at("mended.json"));
  EXPECT_EQ(verified.code, 0) << verified.text;
  EXPECT_FALSE(verified.says("note:")) << verified.text;
}

}  // namespace
}  // namespace stowage::tests
