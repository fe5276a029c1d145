// SPDX-License-Identifier: Apache-2.0
//
// The frame of every verb of `stowage`: common flags, where results go (stdout: the answer; stderr:
// messages and progress), and how an error becomes a message and an exit code. A verb is one
// function that adds its subcommand to the command line and returns what to do when it is chosen.
#ifndef STOWAGE_TOOLS_CLI_VERB_H_
#define STOWAGE_TOOLS_CLI_VERB_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/error.h"

namespace CLI {
class App;
}

namespace stowage::tools {

/// Flags that every verb takes.
struct CommonFlags {
  bool json = false;     // the answer as one JSON object on stdout
  bool quiet = false;    // no progress, no remarks
  bool replace = false;  // -f: an existing output file may be replaced
};

/// Exit code of a verb that got as far as an answer (kExitYes or kExitNo), or the error that
/// stopped it.
using VerbResult = ir::Expected<int>;

struct Verb {
  CLI::App* command = nullptr;
  std::function<VerbResult()> run;
  const CommonFlags* flags = nullptr;
};

/// Adds --json, -q and (for verbs that write files) -f.
void addCommonFlags(CLI::App& command, CommonFlags& flags, bool writesFiles);

/// Prints `error` (stderr, or with --json as an object on stdout) and returns the exit code that
/// goes with it.
int reportError(ir::Error error, const CommonFlags& flags);

/// Something that the user should know and that stops nothing: one line on stderr; nothing with
/// -q, and for "".
void remark(const std::string& text, const CommonFlags& flags);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_CLI_VERB_H_
