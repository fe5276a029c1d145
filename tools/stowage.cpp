// SPDX-License-Identifier: Apache-2.0
//
// `stowage`: one program, one verb per question. Adds the verbs, parses the command line, runs the
// one that was chosen, and turns what comes back into an exit code (tools/cli/exit_code.h).
#include <fcntl.h>
#include <llvm/Support/raw_ostream.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/error.h"
#include "ir/base/nearest_name.h"
#include "runtime/torch/torch_version.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/printable_stream.h"
#include "tools/cli/refused_resources.h"
#include "tools/verbs/verbs.h"

namespace stowage::tools {
namespace {

constexpr const char* kFooter =
    "A first look:\n"
    "  stowage demo\n"
    "  stowage capture gpt2 --set preset=tiny -o step.stow\n"
    "  stowage profile step.stow -o costs.json\n"
    "  stowage plan step.stow --budget 50%peak --costs costs.json -o plan.json\n"
    "  stowage explain plan.json\n"
    "  stowage run plan.json --steps 20 --compare-unplanned\n";
constexpr const char* kExitCodes =
    "Exit codes: 0 yes; 1 a negative answer (nothing fits, violations found); 2 wrong usage; 3 a "
    "bad input file;\n"
    "4 the environment; 70 a bug in stowage.";
constexpr const char* kStoppedCodes =
    " 129, 130, 143: stopped by SIGHUP, SIGINT, SIGTERM after a whole step.";

std::vector<Verb> addVerbs(CLI::App& app) {
  return {addCaptureVerb(app), addProfileVerb(app), addPlanVerb(app),  addAdviseVerb(app),
          addSweepVerb(app),   addFitVerb(app),     addLowerVerb(app), addExplainVerb(app),
          addVerifyVerb(app),  addRunVerb(app),     addDemoVerb(app),  addDoctorVerb(app),
          addSchemaVerb(app)};
}

constexpr const char* kEmptyValue = "found an empty value, expected one that is not";

/// An empty value is most often a shell variable that was not set; it must not mean "not given".
void refuseEmptyValues(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    option->check(CLI::Validator(
        [](const std::string& value) { return std::string(value.empty() ? kEmptyValue : ""); },
        ""));
  }
}

/// "--flag=" of the command line, or "". The parser takes the word after it for the value.
std::string findEmptyValue(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const llvm::StringRef word(argv[i]);
    if (word == "--") break;
    const auto [name, value] = word.split('=');
    const bool isFlag = name.size() > 2 && name.take_front(2) == "--";
    if (isFlag && value.empty() && name.size() < word.size()) return name.str();
  }
  return "";
}

/// The first word that is no flag, when no verb is called that: a likely typing error.
std::string findUnknownVerb(int argc, char** argv, const std::vector<Verb>& verbs) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.empty() || word[0] == '-') continue;
    const bool isKnown = std::any_of(verbs.begin(), verbs.end(), [&](const Verb& verb) {
      return verb.command->get_name() == word;
    });
    return isKnown ? "" : word;
  }
  return "";
}

std::string suggestVerb(const std::string& word, const std::vector<Verb>& verbs) {
  std::vector<std::string> names;
  names.reserve(verbs.size());
  for (const Verb& verb : verbs) names.push_back(verb.command->get_name());
  return ir::nearestName(word, names);
}

int reportUsage(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv,
                const std::vector<Verb>& verbs) {
  if (error.get_exit_code() == 0) {  // --help, --version
    std::ostringstream text;
    app.exit(error, text, text);
    llvm::outs() << text.str();
    return kExitYes;
  }
  const bool hasVerb = !app.get_subcommands().empty();
  const std::string unknown = hasVerb ? "" : findUnknownVerb(argc, argv, verbs);
  const std::string what = unknown.empty() ? error.what() : "stowage has no verb '" + unknown + "'";
  llvm::raw_ostream& os = messages();
  os << "error: " << what << '\n';
  const std::string near = unknown.empty() ? "" : suggestVerb(unknown, verbs);
  if (!near.empty()) os << "  did you mean 'stowage " << near << "'?\n";
  os << "  'stowage" << (hasVerb ? " " + app.get_subcommands().front()->get_name() : "")
     << " --help' shows what there is\n";
  return kExitUsage;
}

VerbResult runVerb(const Verb& verb) {
  try {
    return verb.run();
  } catch (...) {
    return takeException();
  }
}

/// A file must not be opened as one of the three streams. Opened for the other direction, so that
/// using a stream that the caller closed fails.
void fillStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    if (::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

int runStowage(int argc, char** argv) {
  if (ir::Error error = runtime::checkLoadedTorch(runtime::loadedTorchVersion())) {
    messages() << "error: " << ir::takePayload(std::move(error)).text() << '\n';
    return kExitEnvironment;
  }
  CLI::App app("Plans and runs training steps within a number of bytes.", "stowage");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("stowage ") + STOWAGE_VERSION);
  app.footer(std::string(kFooter) + kExitCodes);
  const std::vector<Verb> verbs = addVerbs(app);
  for (const Verb& verb : verbs) {
    const bool isRun = verb.command->get_name() == "run";
    verb.command->footer(std::string(kExitCodes) + (isRun ? kStoppedCodes : ""));
    refuseEmptyValues(*verb.command);
  }
  try {
    const std::string empty = findEmptyValue(argc, argv);
    if (!empty.empty()) throw CLI::ValidationError(empty, kEmptyValue);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return reportUsage(app, error, argc, argv, verbs);
  }
  for (const Verb& verb : verbs) {
    if (!verb.command->parsed()) continue;
    VerbResult result = runVerb(verb);
    return result ? *result : reportError(result.takeError(), *verb.flags);
  }
  return kExitUsage;
}

/// An answer that nobody could read is no answer.
int finishOutput(int code) {
  llvm::outs().flush();
  if (llvm::outs().has_error()) {
    const std::string why = llvm::outs().error().message();
    llvm::outs().clear_error();
    llvm::errs() << "error: standard output: cannot write: " << why << '\n';
    code = kExitEnvironment;
  }
  // Nobody is left to be told; LLVM would abort.
  llvm::errs().clear_error();
  endsItself();
  return code;
}

}  // namespace
}  // namespace stowage::tools

int main(int argc, char** argv) {
  stowage::tools::fillStreams();
  // A file larger than this process may write is an error of the call, and what was written goes.
  std::signal(SIGXFSZ, SIG_IGN);
  stowage::tools::endOnRefusedResources();
  return stowage::tools::finishOutput(stowage::tools::runStowage(argc, argv));
}
