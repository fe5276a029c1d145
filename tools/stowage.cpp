// SPDX-License-Identifier: Apache-2.0
//
// `stowage`: one program, one verb per question. Adds the verbs, parses the command line, runs the
// one that was chosen, and turns what comes back into an exit code (tools/exit_code.h). The door
// for exceptions that no library made a value of: memory or a thread that the machine refused ends
// the verb as any error does, on other threads and inside LLVM the program at once.
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "tools/exit_code.h"
#include "tools/nearest_name.h"
#include "tools/verbs.h"

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
constexpr const char* kStoppedCodes = " 130, 143: stopped by SIGINT, SIGTERM after a whole step.";

std::vector<Verb> addVerbs(CLI::App& app) {
  return {addCaptureVerb(app), addProfileVerb(app), addPlanVerb(app),   addSweepVerb(app),
          addLowerVerb(app),   addExplainVerb(app), addVerifyVerb(app), addRunVerb(app),
          addDemoVerb(app),    addDoctorVerb(app),  addSchemaVerb(app)};
}

/// An empty value is most often a shell variable that was not set; it must not mean "not given".
void refuseEmptyValues(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    option->check(CLI::Validator(
        [](const std::string& value) {
          return value.empty() ? std::string("found an empty value, expected one that is not")
                               : std::string();
        },
        ""));
  }
}

/// The first word that is no flag, when no verb is called that: a likely typing error.
std::string findUnknownVerb(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.empty() && word[0] != '-') return word;
  }
  return "";
}

std::string suggestVerb(const std::string& word, const std::vector<Verb>& verbs) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs) names.push_back(verb.command->get_name());
  return nearestName(word, names);
}

int reportUsage(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv,
                const std::vector<Verb>& verbs) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  const bool hasVerb = !app.get_subcommands().empty();
  const std::string unknown = hasVerb ? "" : findUnknownVerb(argc, argv);
  llvm::errs() << "error: "
               << (unknown.empty() ? error.what() : "stowage has no verb '" + unknown + "'")
               << '\n';
  const std::string near = unknown.empty() ? "" : suggestVerb(unknown, verbs);
  if (!near.empty()) llvm::errs() << "  did you mean 'stowage " << near << "'?\n";
  llvm::errs() << "  'stowage" << (hasVerb ? " " + app.get_subcommands().front()->get_name() : "")
               << " --help' shows what there is\n";
  return kExitUsage;
}

constexpr char kNoMemory[] = "out of memory: this machine refused bytes that the command needs";
constexpr char kNoThread[] = "out of memory or threads: this machine refused the command a thread";

/// What the machine refused, if that is what `e` says; else null. Takes no memory.
const char* findRefusal(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) return kNoMemory;
  const auto* system = dynamic_cast<const std::system_error*>(&e);
  if (system != nullptr)
    return system->code() == std::errc::resource_unavailable_try_again ? kNoThread : nullptr;
  // c10's allocator has no class of its own for this.
  return llvm::StringRef(e.what()).contains("can't allocate memory") ? kNoMemory : nullptr;
}

/// What the exception that is being handled says as an error.
ir::Error takeException() {
  try {
    throw;
  } catch (const std::exception& e) {
    // libtorch appends a backtrace.
    const std::string text = llvm::StringRef(e.what()).split('\n').first.str();
    const char* refusal = findRefusal(e);
    return refusal != nullptr ? ir::makeError(ir::ErrorCode::kEnvironment, refusal + (": " + text))
                              : ir::makeError(ir::ErrorCode::kInternal, text);
  }
}

VerbResult runVerb(const Verb& verb) {
  try {
    return verb.run();
  } catch (...) {
    return takeException();
  }
}

/// Takes no memory itself.
[[noreturn]] void endWithout(llvm::StringRef what) {
  for (const llvm::StringRef part : {llvm::StringRef("error: "), what, llvm::StringRef("\n")}) {
    if (::write(STDERR_FILENO, part.data(), part.size()) < 0) break;
  }
  std::_Exit(kExitEnvironment);
}

/// Where no verb can catch it: on a thread of its own.
[[noreturn]] void endProgram() {
  try {
    if (std::current_exception()) throw;
  } catch (const std::exception& e) {
    if (const char* refusal = findRefusal(e)) endWithout(refusal);
  } catch (...) {
  }
  __gnu_cxx::__verbose_terminate_handler();
  std::abort();
}

void endOnRefusedMemory() {
  std::set_terminate(endProgram);
  llvm::install_bad_alloc_error_handler(
      [](void* /*data*/, const char* /*reason*/, bool /*diagnose*/) { endWithout(kNoMemory); });
}

int runStowage(int argc, char** argv) {
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
  return code;
}

}  // namespace
}  // namespace stowage::tools

int main(int argc, char** argv) {
  stowage::tools::endOnRefusedMemory();
  return stowage::tools::finishOutput(stowage::tools::runStowage(argc, argv));
}
