// SPDX-License-Identifier: Apache-2.0
//
// The commands that documents for users show. Of tools/docs/command-line.md, those that need no GPU
// and no file of the reader run in one folder, in the page's order. Of all pages (README.md and
// tools/docs), each verb is there and knows its flags.

#include <gtest/gtest.h>

#include <checkout_folders.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/program.h"
#include "tests/support/source_files.h"

namespace stowage::tests {
namespace {

namespace fs = std::filesystem;

const fs::path kSourceDir = STOWAGE_SOURCE_DIR;
constexpr const char* kCommandLinePage = "tools/docs/command-line.md";
constexpr const char* kRanksPage = "tools/docs/ranks.md";

struct DocumentedCommand {
  std::string page;
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
      commands.push_back({page.path, section, line.substr(std::string("stowage ").size())});
    }
  }
  return commands;
}

std::vector<DocumentedCommand> commandsOf(const fs::path& page) {
  return findCommands(readSource(kSourceDir, kSourceDir / page));
}

/// README.md and the pages of tools/docs.
std::vector<DocumentedCommand> commandsOfAllPages() {
  std::vector<fs::path> pages = {"README.md"};
  for (const auto& entry : fs::directory_iterator(kSourceDir / "tools/docs")) {
    if (entry.path().extension() == ".md") pages.push_back(fs::relative(entry.path(), kSourceDir));
  }
  std::sort(pages.begin(), pages.end());
  std::vector<DocumentedCommand> commands;
  for (const fs::path& page : pages) {
    for (DocumentedCommand& command : commandsOf(page)) commands.push_back(std::move(command));
  }
  return commands;
}

/// Of large models, and for files that the reader has.
bool needsMore(const DocumentedCommand& command) {
  static const std::set<std::string> kSections = {"Train on your own data", "An exported step",
                                                  "A large model on a GPU"};
  return kSections.count(command.section) > 0 ||
         command.arguments.find("l.stow") != std::string::npos ||
         command.arguments.find("l.plan.json") != std::string::npos;
}

std::string verbOf(const std::string& arguments) {
  return arguments.substr(0, arguments.find(' '));
}

/// The verb if `help` is not about it, else the flags that are not in there.
std::vector<std::string> findUnknown(const std::string& arguments, const Outcome& help) {
  static const std::regex kFlag("--[a-z-]+");
  const std::string verb = verbOf(arguments);
  if (!help.says("Usage: stowage " + verb + " ")) return {verb};
  std::vector<std::string> unknown;
  for (std::sregex_iterator m(arguments.begin(), arguments.end(), kFlag), end; m != end; ++m) {
    if (!help.says(m->str() + " ") && !help.says(m->str() + "\n")) unknown.push_back(m->str());
  }
  return unknown;
}

TEST(DocsCommands, OfWhatUsersTypeRun) {
  const ScratchFolder folder("stowage_docs");
  int ran = 0;
  for (const char* page : {kCommandLinePage, kRanksPage}) {
    for (const DocumentedCommand& command : commandsOf(page)) {
      if (needsMore(command)) continue;
      const Outcome outcome = stowage(command.arguments, "cd " + folder.at("") + " && ");
      EXPECT_EQ(outcome.code, 0) << command.arguments << '\n' << outcome.text;
      ++ran;
    }
  }
  EXPECT_GE(ran, 24);
}

TEST(DocsCommands, OfAllPagesHaveVerbsAndFlagsThatAreThere) {
  std::map<std::string, Outcome> helps;
  std::set<std::string> pages;
  for (const DocumentedCommand& command : commandsOfAllPages()) {
    const std::string verb = verbOf(command.arguments);
    if (helps.count(verb) == 0) helps[verb] = stowage(verb + " --help");
    EXPECT_EQ(findUnknown(command.arguments, helps[verb]), std::vector<std::string>{})
        << command.page << ": " << command.arguments;
    pages.insert(command.page);
  }
  EXPECT_TRUE(pages.count("README.md") > 0 && pages.count(kCommandLinePage) > 0);
  EXPECT_GE(helps.size(), 10u);
}

TEST(DocsCommands, AnUnknownVerbOrFlagIsReported) {
  EXPECT_EQ(findUnknown("replan plan.json", stowage("replan --help")),
            std::vector<std::string>{"replan"});
  EXPECT_EQ(findUnknown("run plan.json --steps 2 --step 3", stowage("run --help")),
            std::vector<std::string>{"--step"});
}

}  // namespace
}  // namespace stowage::tests
