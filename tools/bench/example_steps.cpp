// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/example_steps.h"

#include <fmt/format.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/FileUtilities.h>
#include <llvm/Support/Program.h>

#include "tools/bench/step_files.h"

namespace stowage::tools {

namespace {

WantedBudget within(double gibibytes, double overUnlimited) {
  return {.gibibytes = gibibytes, .goal = {.of = Goal::Of::kUnlimited, .most = overUnlimited}};
}

ExampleStep makeExample(const char* name, const char* model, std::vector<std::string> settings,
                        std::vector<WantedBudget> budgets) {
  settings.insert(settings.end(), {"optimizer=stowage_adamw", "precision=bfloat16"});
  return {
      .name = name, .model = model, .settings = std::move(settings), .budgets = std::move(budgets)};
}

}  // namespace

std::string WantedBudget::label() const {
  return percent > 0 ? fmt::format("{}%", percent) : fmt::format("{:g}", gibibytes);
}

std::vector<ExampleStep> exampleSteps() {
  const std::string small = "preset=llama3.2-1b", large = "preset=llama3.1-8b";
  return {
      makeExample("llama1b", "llama", {small, "batch=4", "sequence=4096"},
                  {within(31, 1.01), within(25, 1.02), within(20, 1.03), within(16, 1.05),
                   within(12, 1.08), within(8, 1.12)}),
      // 0.30, 0.42, 0.53 and 0.75 s where the unlimited step was estimated at 0.262 s.
      makeExample("llama8b", "llama", {large, "batch=1", "sequence=4096"},
                  {within(40, 1.145), within(30, 1.603), within(24, 2.023), within(15.2, 2.863)}),
      makeExample("llama8b_4x", "llama", {large, "batch=4", "sequence=4096"},
                  {within(43, 1.08), within(30, 1.15)}),
      makeExample("llama8b_4micro", "llama", {large, "batch=4", "sequence=4096", "micro_batches=4"},
                  {within(43, 1.10)}),
      makeExample("llama8b_lora", "llama_lora", {large, "batch=1", "sequence=4096"},
                  {within(24, 1.03), within(12, 1.25), within(10, 1.35), within(8, 1.60)}),
      makeExample("llama1b_32k", "llama", {small, "batch=1", "sequence=32768"},
                  {{.percent = 35, .goal = {.of = Goal::Of::kFits}}}),
  };
}

ir::Expected<ir::Graph> captureExample(const ExampleStep& example, const std::string& program) {
  llvm::SmallString<256> path;
  if (llvm::sys::fs::createTemporaryFile("stowage-bench", "stow", path)) {
    return ir::makeError(ir::ErrorCode::kEnvironment, "could not make a temporary file");
  }
  const llvm::FileRemover remover(path);
  std::vector<llvm::StringRef> arguments = {program, "capture", example.model};
  for (const std::string& setting : example.settings) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  arguments.insert(arguments.end(),
                   {"--target", kExampleTarget, "--nondeterministic", "-q", "-f", "-o", path});
  // Its errors go where ours do; its summary does not belong into a table.
  const llvm::StringRef nowhere = "";
  const int code = llvm::sys::ExecuteAndWait(program, arguments, {}, {nowhere, nowhere, {}});
  if (code == 0) return readStep(path.str().str());
  return ir::makeError(ir::ErrorCode::kEnvironment,
                       fmt::format("'{} capture {}' for '{}' ended with code {}", program,
                                   example.model, example.name, code));
}

}  // namespace stowage::tools
