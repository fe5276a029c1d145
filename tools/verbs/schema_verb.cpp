// SPDX-License-Identifier: Apache-2.0
//
// stowage schema plan: prints the published JSON schema of a file kind.
#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "planner/files/cost_json.h"
#include "planner/files/plan_json.h"
#include "tools/cli/exit_code.h"
#include "tools/verbs/verbs.h"

namespace stowage::tools {

namespace {
struct SchemaFlags : CommonFlags {
  std::string kind;
};
}  // namespace

Verb addSchemaVerb(CLI::App& app) {
  auto flags = std::make_shared<SchemaFlags>();
  CLI::App* command = app.add_subcommand("schema", "print the JSON schema of a kind of file");
  command->add_option("kind", flags->kind, "plan or costs")
      ->required()
      ->check(CLI::IsMember({"plan", "costs"}));
  const auto run = [flags]() -> VerbResult {
    llvm::outs() << (flags->kind == "plan" ? planner::planSchemaText()
                                           : planner::costsSchemaText());
    return kExitYes;
  };
  return {.command = command, .run = run, .flags = flags.get()};
}

}  // namespace stowage::tools
