// SPDX-License-Identifier: Apache-2.0
//
// `advise` as its users call it: the numbers of each choice are those of `plan` with its flags.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"

namespace stowage::tests {
namespace {

using nlohmann::json;

// Two layers; the update of the last one has a momentum of its own.
constexpr const char* kTwoLayers = R"(graph @two_layers version=1 device="cpu" target="cpu" {
  input %x : f32[4096]
  parameter %w1 : f32[4096]
  parameter %w2 : f32[4096]
  state %m1 : f32[4096]
  state %m2 : f32[4096]
forward "m":
  %h : f32[4096] = aten.mul.Tensor(%x, %w1)
  %k : f32[4096] = aten.mul.Tensor(%h, %h)
  %l output : f32[4096] = aten.mul.Tensor(%k, %w2)
backward "":
  %g2 gradient : f32[4096] = aten.mul.Tensor(%k, %l)
  %gk : f32[4096] = aten.mul.Tensor(%l, %w2)
  %gh : f32[4096] = aten.mul.Tensor(%gk, %h)
  %g1 gradient : f32[4096] = aten.mul.Tensor(%x, %gh)
optimizer "":
  %m1 = aten.add_.Tensor(inout %m1, %g1, 1)
  %w1 = aten.add_.Tensor(inout %w1, %m1, -1)
  %m2 = aten.add_.Tensor(inout %m2, %g2, 1)
  %w2 = aten.add_.Tensor(inout %w2, %m2, -1)
}
)";

// Its only update may not run on the host.
constexpr const char* kDrawn = R"(graph @drawn version=1 device="cpu" target="cpu" {
  input %x : f32[4096]
  parameter %w : f32[4096]
forward "m":
  %l output : f32[4096] = aten.mul.Tensor(%x, %w)
optimizer "":
  %w = aten.bernoulli_.float(inout %w, 0.5, none)
}
)";

class AdviseVerb : public testing::Test {
 protected:
  std::string write(const std::string& name, const char* text) const {
    writeText(folder_.at(name), text);
    return folder_.at(name);
  }
  /// A captured step of few ops.
  std::string capture() const {
    const Outcome captured = stowage(
        "capture lstm --set layers=1 --set sequence=1 --set hidden=32 --set dropout=0 "
        "--set optimizer=stowage_adamw -q -o " +
        folder_.at("lstm.stow"));
    EXPECT_EQ(captured.code, 0) << captured.text;
    return folder_.at("lstm.stow");
  }
  static json answerOf(const std::string& arguments) {
    const Outcome outcome = stowage("advise -q --json " + arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << '\n' << outcome.text;
    return json::parse(outcome.text);
  }
  static json planOf(const std::string& step, const json& choice, int64_t budget) {
    const Outcome outcome =
        stowage("plan " + step + " -q --json --budget " + std::to_string(budget) + "B " +
                choice["flags"].get<std::string>() + " 2>/dev/null #");
    return json::parse(outcome.text);
  }
  /// At the first budget.
  static void expectPlan(const std::string& step, const json& choice) {
    const json& plan = choice["plans"][0];
    const json same = planOf(step, choice, plan["budget_bytes"]);
    ASSERT_EQ(plan["fits"], !same.contains("error")) << choice << same;
    if (!plan["fits"]) {
      EXPECT_EQ(same["error"]["infeasible"]["smallest_budget_bytes"],
                choice["smallest_budget_bytes"]);
      return;
    }
    for (const auto& [name, value] : plan["predicted"].items()) {
      EXPECT_EQ(value, same["predicted"][name]) << choice << name;
    }
    EXPECT_EQ(plan["host_updated_bytes"], same["host_updated_bytes"]) << choice;
  }
  static void expectSmallest(const std::string& step, const json& choice) {
    const int64_t smallest = choice["smallest_budget_bytes"];
    EXPECT_EQ(planOf(step, choice, smallest - 1)["error"]["infeasible"]["smallest_budget_bytes"],
              smallest)
        << choice;
  }
  static void expectRefused(const std::string& arguments, int code, const std::string& words) {
    const Outcome outcome = stowage("advise " + arguments);
    EXPECT_EQ(outcome.code, code) << arguments << '\n' << outcome.text;
    EXPECT_TRUE(outcome.says(words)) << arguments << '\n' << outcome.text << "expected: " << words;
  }

 private:
  const ScratchFolder folder_{"stowage_advise"};
};

TEST_F(AdviseVerb, SaysWhatPlanSays) {
  const std::string step = write("two_layers.stow", kTwoLayers);
  const json answer = answerOf(step + " --budget 60%peak,1KiB");
  std::map<std::string, json> byName;
  for (const json& choice : answer["choices"]) {
    byName[choice["choice"]] = choice;
    ASSERT_EQ(choice["plans"].size(), 2U) << choice;
    expectPlan(step, choice);
  }
  ASSERT_EQ(byName.size(), 8U) << answer;
  for (const char* name : {"host-step-only", "host-step"}) {
    expectSmallest(step, byName[name]);
    EXPECT_GT(byName[name]["plans"][0].value("host_updated_bytes", 0), 0) << byName[name];
  }
  EXPECT_LT(byName["host-step-only"]["smallest_budget_bytes"],
            byName["keep-all"]["smallest_budget_bytes"]);
  EXPECT_EQ(answer["budgets"][0]["fastest"], "all") << answer["budgets"];
  EXPECT_FALSE(answer["budgets"][1].contains("fastest")) << answer["budgets"];
}

TEST_F(AdviseVerb, OfACapturedStepPrintsATableAndTheFastest) {
  const std::string step = capture();
  const Outcome table = stowage("advise -q " + step + " --budget 100%peak,40%peak");
  const json answer = answerOf(step + " --budget 40%peak");
  EXPECT_EQ(answer["budgets"][0]["asked"], "40%peak");
  EXPECT_EQ(answer["budgets"][0]["fastest_with_host_updates"], "host-step-only");
  expectPlan(step, answer["choices"][5]);
  ASSERT_EQ(table.code, 0) << table.text;
  for (const char* words :
       {"  smallest  most host   100%peak     40%peak\n", "\nkeep-all       nothing moves ",
        "\nfull-recompute checkpointing ", "\nhost-step      all+host upd. ",
        "* the fastest with the bits of the unplanned step; - does not fit\n",
        "host-step-only, host-step: updates on the host, with the bits of the host's kernels\n",
        "\nfastest    in "}) {
    EXPECT_TRUE(table.says(words)) << table.text << "expected: " << words;
  }
  for (size_t begin = 0; begin < table.text.size();) {
    const size_t end = table.text.find('\n', begin);
    EXPECT_LE(end - begin, 100U) << table.text;
    begin = end + 1;
  }
}

TEST_F(AdviseVerb, SaysWhyUpdatesMayNotRunOnTheHost) {
  const std::string step = write("drawn.stow", kDrawn);
  const std::string why =
      "no update of this step may run on the host: aten.bernoulli_.float (optimizer) stays: it "
      "draws random numbers";
  const Outcome table = stowage("advise -q " + step + " --budget 100%peak");
  EXPECT_TRUE(table.code == 0 && table.says("host-step-only, host-step: " + why)) << table.text;
  const json answer = answerOf(step + " --budget 100%peak");
  for (const json& choice : answer["choices"]) {
    const bool isOnHost = choice["choice"].get<std::string>().starts_with("host-step");
    if (isOnHost) {
      EXPECT_EQ(choice["reason"], why);
    } else {
      EXPECT_NE(choice.value("reason", ""), why) << choice;
    }
  }
  const Outcome planned = stowage("plan " + step + " --budget 1MiB --policy host-step-only");
  EXPECT_TRUE(planned.code == 2 && planned.says(why)) << planned.text;
}

TEST_F(AdviseVerb, AHostLimitAndPinsHold) {
  const std::string step = write("two_layers.stow", kTwoLayers);
  const Outcome limited = stowage("advise -q " + step + " --budget 50%peak --host 1KiB");
  EXPECT_TRUE(limited.says("; host: more than --host\n")) << limited.text;
  const json pinned = answerOf(step + " --budget 100%peak --pin '*=keep'")["choices"];
  EXPECT_EQ(pinned[6]["choice"], "all");
  EXPECT_EQ(pinned[6]["smallest_budget_bytes"], pinned[0]["smallest_budget_bytes"]);
}

TEST_F(AdviseVerb, NothingFits) {
  const std::string step = write("two_layers.stow", kTwoLayers);
  expectRefused(step + " -q --budget 1KiB", 1, "nothing fits; smallest device budget that works: ");
}

TEST_F(AdviseVerb, RefusesBadFlags) {
  const std::string step = write("two_layers.stow", kTwoLayers);
  expectRefused(step + " --budget 50", 2, "has no unit");
  expectRefused(step + " --budget 80%", 2, "belongs to no device");
  expectRefused(step + " --budget 1MiB,2MiB,3MiB,4MiB,5MiB", 2, "expected at most 4");
  expectRefused(step + " --allow offload", 2, "--allow");
  expectRefused(step + " --time-limit 0", 2, "expected seconds above 0");
  expectRefused("missing.stow", 3, "missing.stow");
  expectRefused("", 2, "step is required");
}

// The planner's own choice, as without a policy; and updates on the host alone.
TEST_F(AdviseVerb, ItsPoliciesPlanFilesThatAreProven) {
  const std::string step = write("two_layers.stow", kTwoLayers);
  const std::string plan = "plan " + step + " -fq -o " + step + ".json --budget ";
  ASSERT_EQ(stowage(plan + "60%peak --policy all").code, 0);
  const std::string all = readText(step + ".json");
  ASSERT_EQ(stowage(plan + "60%peak").code, 0);
  EXPECT_EQ(all, readText(step + ".json"));
  const Outcome host = stowage(plan + "90%peak --policy host-step-only");
  EXPECT_TRUE(host.code == 0 && host.says("with the bits of the host's kernels")) << host.text;
  EXPECT_EQ(stowage("verify " + step + ".json").code, 0);
}

}  // namespace
}  // namespace stowage::tests
