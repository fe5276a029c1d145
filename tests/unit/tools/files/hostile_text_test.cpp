// SPDX-License-Identifier: Apache-2.0
//
// Names and texts of files that speak to the terminal, forge lines or never end: what the verbs
// print of them is printable, their lines are the program's own, and messages have a bound. And
// numbers of a checkpoint that can only be damage.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/printable.h"
#include "tests/support/program.h"
#include "tests/support/tensor_file.h"

namespace stowage::tests {
namespace {

std::string replaceAll(std::string text, const std::string& what, const std::string& with) {
  if (what.empty()) return text;
  size_t count = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size(), ++count) {
    text.replace(at, what.size(), with);
  }
  EXPECT_GT(count, 0U) << what;
  return text;
}

class HostileText : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace("stowage_hostile_text");
    ASSERT_NO_FATAL_FAILURE(planSmallModel(*folder_));
    ASSERT_EQ(stowage("run " + at("plan.json") + " --steps 1 --save " + at("saved")).code, 0);
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string at(const std::string& name) { return folder_->at(name); }

  static void expectHarmless(const Outcome& outcome, const std::string& arguments) {
    std::stringstream lines(outcome.text);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_EQ(ir::printable(line), line) << arguments;
      EXPECT_NE(line.find("forged"), 0U) << arguments << '\n' << outcome.text;
      EXPECT_LT(line.size(), 5000U) << arguments << '\n' << line.substr(0, 200);
    }
    EXPECT_LT(outcome.text.size(), 30'000U) << arguments;
  }
  /// The step with this in the names of storages and modules, as a file writes it.
  static std::string hostileStep(const std::string& part) {
    std::string text = readText(at("step.stow"));
    text.resize(text.rfind("// checksum"));
    text = replaceAll(text, "parameter %wte.weight :", "parameter %wte.weight \"" + part + "\" :");
    text = replaceAll(text, "  %_log_softmax.0 :", "  %_log_softmax.0 \"" + part + "2\" :");
    text = replaceAll(text, " \"h.0.attn\":", " \"" + part + "\":");
    writeText(at("hostile.stow"), text);
    return at("hostile.stow");
  }
  /// A file of the checkpoint with `what` replaced by as many bytes, and without its checksums.
  static void editSaved(const std::string& file, const std::string& what, const std::string& with) {
    ASSERT_EQ(what.size(), with.size());
    std::string text = replaceAll(readText(at("saved/") + file), "stowage.xxh64", "stowage.xxxxx");
    std::filesystem::create_directories(at("edited"));
    for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
      writeText(at("edited/") + name, readText(at("saved/") + name));
    }
    writeText(at("edited/") + file, replaceAll(text, what, with));
  }
  static Outcome resumeEdited() {
    return stowage("run " + at("plan.json") + " --steps 1 --resume " + at("edited"));
  }

  static std::optional<ScratchFolder> folder_;
};
std::optional<ScratchFolder> HostileText::folder_;

TEST_F(HostileText, NamesOfAStepAreShownEscaped) {
  const std::string step = hostileStep(R"(w\x1b]0;owned\x07\nforged\xff)");
  const std::string shown = R"(w\x1b]0;owned\x07\x0aforged\xff)";
  EXPECT_EQ(stowage("plan " + step + " --budget 90%peak").code, 0);
  const std::string small = "plan " + step + " --budget 1KiB --allow offload,recompute";
  const Outcome infeasible = stowage(small);
  EXPECT_EQ(infeasible.code, 1) << infeasible.text;
  EXPECT_TRUE(infeasible.says(" (" + shown + "2, ")) << infeasible.text;
  expectHarmless(infeasible, small);
  for (const std::string& arguments :
       {"plan " + step + " --budget 90%peak --pin 'nothing=keep'", "sweep --steps 2 " + step,
        "profile " + step + " --repeats 2 -f -o " + at("o.json"), small + " --json"}) {
    expectHarmless(stowage(arguments), arguments);
  }
}

TEST_F(HostileText, ExplainShowsNamesEscaped) {
  const std::string step = hostileStep(R"(w\x1b]0;owned\x07\nforged)");
  const std::string shown = R"(w\x1b]0;owned\x07\x0aforged)";
  const std::string plan = at("hostile.json");
  ASSERT_EQ(stowage("plan " + step + " --budget 60%peak -f -o " + plan).code, 0);
  const Outcome explained = stowage("explain " + plan);
  EXPECT_EQ(explained.code, 0) << explained.text;
  EXPECT_TRUE(explained.says(shown)) << explained.text;
  const std::string one = "explain " + plan + " \"$(printf 'w\\033]0;owned\\007\\nforged')\"";
  const Outcome storage = stowage(one);
  EXPECT_EQ(storage.code, 0) << storage.text;
  EXPECT_TRUE(storage.says("'" + shown + "', storage ")) << storage.text;
  for (const std::string& arguments :
       {"explain " + plan, one, "explain " + plan + " wte", "explain --json " + plan,
        "verify " + plan, "verify --json " + plan, "run --steps 1 " + plan,
        "lower --estimate " + plan + " -f -o " + at("o.json")}) {
    expectHarmless(stowage(arguments), arguments);
  }
}

TEST_F(HostileText, JsonIsUtf8WithoutControlCharacters) {
  const std::string step = hostileStep(R"(w\x1b[31m\x7f\xc2\x9b\xff)");
  for (const std::string& arguments :
       {"plan --json " + step + " --budget 1KiB", "sweep --json --steps 2 " + step,
        std::string("verify --json \"$(printf 'no\\377\\033[2J')\"")}) {
    const Outcome outcome = stowage(arguments + " 2>/dev/null; }", "{ ");
    EXPECT_TRUE(nlohmann::json::accept(outcome.text)) << arguments << '\n' << outcome.text;
    for (const char byte : outcome.text) {
      EXPECT_TRUE(byte == '\n' || (byte >= 0x20 && byte < 0x7f)) << arguments;
    }
  }
}

TEST_F(HostileText, NamesOfFilesAreShownEscaped) {
  const std::string arguments = "verify \"$(printf 'no\\033[31m\\nforged\\377')\"";
  const Outcome outcome = stowage(arguments);
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_TRUE(outcome.says(R"(no\x1b[31m\x0aforged\xff: cannot be read: )")) << outcome.text;
  expectHarmless(outcome, arguments);
  // A word of the command line that no verb knows.
  expectHarmless(stowage("\"$(printf 'no\\033[31m\\377')\""), "no verb");
}

TEST_F(HostileText, NotesOfACheckpointAreShownEscaped) {
  editSaved("optimizer.safetensors", "2 threads, deterministic",
            R"(\u001b[31m\nforged,abcd)"
            "\xff");
  const Outcome outcome = resumeEdited();
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(outcome.says(R"(ran with \x1b[31m\x0aforged)")) << outcome.text;
  expectHarmless(outcome, "--resume");
}

TEST_F(HostileText, MessagesHaveABound) {
  std::vector<FileTensor> tensors;
  tensors.reserve(200'000);
  for (int i = 0; i < 200'000; ++i) {
    tensors.push_back({"t" + std::to_string(i), ir::DType::kF32, {0}, {}});
  }
  writeTensors(at("many.safetensors"), tensors);
  writeTensors(at("long.safetensors"), {{std::string(5'000'000, 'n'), ir::DType::kF32, {0}, {}}});
  const std::string run = "run " + at("plan.json") + " --steps 1 --weights ";
  const Outcome many = stowage(run + at("many.safetensors"));
  EXPECT_EQ(many.code, 3) << many.text.substr(0, 1000);
  EXPECT_TRUE(many.says("\n  and 1999")) << many.text.substr(0, 1000);
  const Outcome one = stowage(run + at("long.safetensors"));
  EXPECT_EQ(one.code, 3) << one.text.substr(0, 1000);
  EXPECT_TRUE(one.says(" bytes left out] ")) << one.text.substr(0, 1000);
  const std::string step = hostileStep(std::string(1'000'000, 'w'));
  ASSERT_EQ(stowage("plan " + step + " --budget 60%peak -f -o " + at("hostile.json")).code, 0);
  for (const std::string& arguments :
       {run + at("many.safetensors"), run + at("long.safetensors"),
        run + at("many.safetensors") + " --json", "plan " + step + " --budget 1KiB",
        "explain " + at("hostile.json")}) {
    expectHarmless(stowage(arguments), arguments);
  }
}

TEST_F(HostileText, ACheckpointOfDamagedNumbersIsRefused) {
  for (const char* rate : {"nan  ", "inf  ", "-inf ", "1e999", "-1   "}) {
    editSaved("optimizer.safetensors", "learning_rates\":\"0.001",
              std::string("learning_rates\":\"") + llvm::StringRef(rate).trim().str() +
                  std::string(5 - llvm::StringRef(rate).trim().size(), ','));
    const Outcome outcome = resumeEdited();
    EXPECT_EQ(outcome.code, 3) << outcome.text;
    EXPECT_TRUE(
        outcome.says("edited/optimizer.safetensors: metadata 'stowage.learning_rates' has '" +
                     llvm::StringRef(rate).trim().str() + "', expected numbers from 0 to 1e9"))
        << outcome.text;
  }
}

TEST_F(HostileText, ACheckpointOfOtherGroupsIsRefused) {
  editSaved("optimizer.safetensors", "learning_rates\":\"0.001", "learning_rates\":\"0.1,1");
  const Outcome outcome = resumeEdited();
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_TRUE(outcome.says("'stowage.learning_rates' has 2 numbers, expected 1")) << outcome.text;
}

TEST_F(HostileText, ACheckpointOfDamagedStepCountsIsRefused) {
  const std::string name = "state.wte.weight.step";
  size_t place = 0;
  {
    const auto file = orFail(runtime::SafetensorsReader::open(at("saved/optimizer.safetensors")));
    const runtime::SafetensorsEntry* entry = file.find(name);
    ASSERT_NE(entry, nullptr);
    const auto all = static_cast<size_t>(file.header().entries.back().bytes.end);
    place = readText(file.path()).size() - all + static_cast<size_t>(entry->bytes.begin);
  }
  for (const auto& [count, words] : {std::pair(std::nanf(""), "is nan"), std::pair(-1.0F, "is -1"),
                                     std::pair(0.5F, "is 0.5"), std::pair(INFINITY, "is inf")}) {
    editSaved("optimizer.safetensors", "", "");
    std::string text = readText(at("edited/optimizer.safetensors"));
    std::memcpy(text.data() + place, &count, sizeof(count));
    writeText(at("edited/optimizer.safetensors"), text);
    const Outcome outcome = resumeEdited();
    EXPECT_EQ(outcome.code, 3) << outcome.text;
    EXPECT_TRUE(outcome.says("edited/optimizer.safetensors: tensor '" + name + "' " + words +
                             ", expected a whole number of steps"))
        << outcome.text;
  }
}

}  // namespace
}  // namespace stowage::tests
