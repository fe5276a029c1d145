// SPDX-License-Identifier: Apache-2.0
//
// The commands of tools/docs/command-line.md, section by section: those that need no GPU and no
// file of the reader's own run in one folder, in the page's order; of the others each flag is known
// to its verb.

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "tests/support/program.h"
#include "tests/support/source_files.h"

namespace stowage::tests {
namespace {

struct DocumentedCommand {
  std::string section;
  std::string arguments;  // behind "stowage"
};

std::vector<DocumentedCommand> findCommands(const SourceFile& page) {
  std::vector<DocumentedCommand> commands;
  std::string section;
  bool isCode = false;
  bool goesOn = false;
  for (std::string line : page.lines) {
    if (line.rfind("## ", 0) == 0) section = line.substr(3);
    if (line.rfind("```", 0) == 0) isCode = !isCode;
    const bool begins = line.rfind("stowage ", 0) == 0;
    if (!isCode || !(begins || goesOn)) continue;
    const bool wasGoingOn = goesOn;
    goesOn = line.ends_with("\\");
    if (goesOn) line.pop_back();
    if (wasGoingOn) {
      commands.back().arguments += line;
    } else {
      commands.push_back({section, line.substr(std::string("stowage ").size())});
    }
  }
  return commands;
}

const std::vector<DocumentedCommand>& pageCommands() {
  static const std::vector<DocumentedCommand> kCommands =
      findCommands(readSource(STOWAGE_SOURCE_DIR, std::filesystem::path(STOWAGE_SOURCE_DIR) /
                                                      "tools/docs/command-line.md"));
  return kCommands;
}

/// Of large models, and for files that the reader has.
bool needsMore(const DocumentedCommand& command) {
  return command.section == "An exported step" || command.section == "A large model on a GPU" ||
         command.arguments.find("l.stow") != std::string::npos ||
         command.arguments.find("l.plan.json") != std::string::npos;
}

TEST(DocsCommands, OfTheCommandLineRun) {
  const ScratchFolder folder("stowage_docs");
  int ran = 0;
  for (const DocumentedCommand& command : pageCommands()) {
    if (needsMore(command)) continue;
    const Outcome outcome = stowage(command.arguments, "cd " + folder.at("") + " && ");
    EXPECT_EQ(outcome.code, 0) << command.arguments << '\n' << outcome.text;
    ++ran;
  }
  EXPECT_GE(ran, 7);
}

TEST(DocsCommands, OfOtherMachinesHaveFlagsThatAreThere) {
  const std::regex flag("--[a-z-]+");
  int seen = 0;
  for (const DocumentedCommand& command : pageCommands()) {
    if (!needsMore(command)) continue;
    const std::string verb = command.arguments.substr(0, command.arguments.find(' '));
    const Outcome help = stowage(verb + " --help");
    ASSERT_EQ(help.code, 0) << verb;
    const std::string& text = command.arguments;
    for (std::sregex_iterator m(text.begin(), text.end(), flag), end; m != end; ++m) {
      EXPECT_TRUE(help.says(m->str() + " ") || help.says(m->str() + "\n"))
          << command.arguments << ": " << m->str();
      ++seen;
    }
  }
  EXPECT_GE(seen, 20);
}

}  // namespace
}  // namespace stowage::tests
