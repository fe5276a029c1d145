// SPDX-License-Identifier: Apache-2.0
//
// `stowage capture step.pt2` as a user calls it: what it prints and writes, and that a bad archive
// is exit code 3 with the file's name and nothing written.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "ir/text/parser.h"
#include "tests/support/small_pt2.h"

namespace stowage::tests {
namespace {

using nlohmann::json;

std::string readFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

struct Outcome {
  int code = -1;
  std::string printed;                 // stdout and stderr
  std::optional<std::string> written;  // the -o file
};

Outcome capture(const std::string& archive, const std::string& flags = "") {
  const std::string path = writePt2("verb", archive, smallStepSideFile());
  const std::string out = temporaryPath("verb.stow");
  const std::string log = temporaryPath("verb.log");
  std::filesystem::remove(out);
  const int status = std::system((std::string(STOWAGE_PROGRAM) + " capture " + path + " -o " + out +
                                  " " + flags + " > " + log + " 2>&1")
                                     .c_str());
  Outcome outcome{.code = WEXITSTATUS(status), .printed = readFile(log)};
  if (std::filesystem::exists(out)) outcome.written = readFile(out);
  return outcome;
}

TEST(CapturePt2Verb, WritesTheGraphAndListsFrozenNumbers) {
  const Outcome outcome = capture(packPt2(smallStepProgram().dump()));
  EXPECT_EQ(outcome.code, 0) << outcome.printed;
  EXPECT_NE(outcome.printed.find("lr given each step; frozen as traced: scalar 1, beta1 0.9, "
                                 "beta2 0.95, weight_decay 0.1, eps 1e-08"),
            std::string::npos)
      << outcome.printed;
  ASSERT_TRUE(outcome.written.has_value());
  const ir::Graph graph = llvm::cantFail(ir::parseGraph(*outcome.written, "verb.stow"));
  EXPECT_EQ(graph.name(), "small");
  EXPECT_EQ(graph.storages()[0].name, "net.fc.weight");
}

TEST(CapturePt2Verb, ListsFrozenNumbersAsJson) {
  const Outcome outcome = capture(packPt2(smallStepProgram().dump()), "--json");
  ASSERT_EQ(outcome.code, 0) << outcome.printed;
  const json answer = json::parse(outcome.printed);
  EXPECT_EQ(answer["learning_rates"], json({"lr"}));
  EXPECT_EQ(answer["frozen"].size(), 5U);
  EXPECT_EQ(answer["frozen"][1]["op"], "aten._fused_adamw_.tensor_lr");
  EXPECT_EQ(answer["frozen"][1]["value"], 0.9);
}

TEST(CapturePt2Verb, RefusesBadArchivesAndWritesNothing) {
  const auto changed = [](const std::function<void(json&)>& change) {
    json program = smallStepProgram();
    change(program);
    return packPt2(program.dump());
  };
  const std::string good = packPt2(smallStepProgram().dump());
  std::string corrupted = good;
  corrupted[good.find("tensor_values")] = 'T';
  const std::vector<std::pair<std::string, const char*>> cases = {
      {good.substr(0, good.size() / 2), "cut off"},
      {corrupted, "checksum"},
      {"this is no archive, but it has some text in it", "no zip directory"},
      {packZip({{"data.pkl", "weights"}}), "found no program"},
      {changed([](json& d) { d["schema_version"]["major"] = 9; }),
       "found schema version 9.17, expected 8"},
      {changed([](json& d) {
         d["graph_module"]["graph"]["nodes"][1]["target"] = "torch.ops.mine.mm.default";
       }),
       "node 1 'mm' (torch.ops.mine.mm.default): this libtorch has no op"},
      {changed([](json& d) {
         d["graph_module"]["graph"]["tensor_values"]["mm"]["sizes"][0] = {
             {"as_expr", {{"expr_str", "s0"}}}};
       }),
       "tensor 'mm': found the symbolic size 's0'"},
      {changed([](json& d) { d["graph_module"]["graph"]["tensor_values"]["mm"]["layout"] = 1; }),
       "tensor 'mm': found layout sparse_coo, expected strided"}};
  for (const auto& [archive, expected] : cases) {
    const Outcome outcome = capture(archive);
    EXPECT_EQ(outcome.code, 3) << expected << ": " << outcome.printed;
    EXPECT_NE(outcome.printed.find(expected), std::string::npos) << outcome.printed;
    EXPECT_NE(outcome.printed.find("verb.pt2"), std::string::npos) << outcome.printed;
    EXPECT_FALSE(outcome.written.has_value()) << expected;
  }
}

}  // namespace
}  // namespace stowage::tests
