// SPDX-License-Identifier: Apache-2.0
//
// stowage-opt: passes on text. Reads a graph (and possibly a schedule) from a file or "-", runs a
// pipeline, prints the result. With --reproducer the pipeline is the one that the file's first line
// names, as a failed run writes it. Exit codes: 0; 1 a failed check or an infeasible
// budget; 2 usage; 3 the input; 4 an output that cannot be written; 70 our bug.

#include <llvm/ADT/StringExtras.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>

#include "ir/base/error.h"
#include "passes/manage/pass_manager.h"
#include "passes/pipeline_text.h"
#include "tools/files/whole_file.h"

namespace stowage::tools {
namespace {

constexpr int kNo = 1;
constexpr int kUsage = 2;
constexpr int kBadInput = 3;
constexpr int kEnvironment = 4;
constexpr int kOurBug = 70;

struct Options {
  std::string file;
  std::string pipeline;
  std::string reproducerFile;
  bool reproducer = false;
  bool printAfterChange = false;
  bool timing = false;
};

/// Prints what --print-after-change and --timing ask for, to stderr.
class Reporter : public passes::PassObserver {
 public:
  explicit Reporter(const Options& options) : options_(options) {}

  void beforePass(const passes::Pass& /*pass*/, const passes::PassState& /*state*/) override {
    start_ = std::chrono::steady_clock::now();
  }
  void afterPass(const passes::Pass& pass, const passes::PassReport& report,
                 const passes::PassState& state) override {
    const auto elapsed = std::chrono::steady_clock::now() - start_;
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count();
    if (options_.timing) {
      std::cerr << "// " << passes::passText(pass) << ": " << formatDuration(Nanoseconds(ns))
                << "\n";
    }
    if (!options_.printAfterChange) return;
    std::cerr << "// after " << passes::passText(pass);
    if (report.changed) {
      std::cerr << ":\n" << passes::toText(state);
    } else {
      std::cerr << " (unchanged)\n";
    }
  }

 private:
  const Options& options_;
  std::chrono::steady_clock::time_point start_;
};

int exitCode(ir::ErrorCode code) {
  switch (code) {
    case ir::ErrorCode::kInfeasible:
    case ir::ErrorCode::kViolation:
      return kNo;
    case ir::ErrorCode::kInvalidArgument:
      return kUsage;
    case ir::ErrorCode::kInternal:
      return kOurBug;
    default:
      return kBadInput;
  }
}

/// The pipeline that the first line of a reproducer names; nothing if it is no reproducer.
std::optional<std::string> findReproducedPipeline(const std::string& text) {
  const std::string first = text.substr(0, text.find('\n'));
  if (!first.starts_with(passes::kReproducerPrefix)) return std::nullopt;
  return first.substr(std::string(passes::kReproducerPrefix).size());
}

int fail(const std::string& message, int code) {
  std::cerr << "error: " << message << "\n";
  return code;
}

int report(ir::Error error, const Options& options) {
  const ir::PlanError payload = ir::takePayload(std::move(error));
  const int code = exitCode(payload.code());
  if (!payload.attachment().empty() && !options.reproducerFile.empty()) {
    std::ofstream(options.reproducerFile) << payload.attachment();
    std::cerr << "wrote " << options.reproducerFile << "\n";
  }
  return fail(ir::describe(ir::makeError(payload)), code);
}

int run(Options options) {
  ir::Expected<std::string> text = readWholeFile(options.file);
  if (!text) return report(text.takeError(), options);
  if (options.reproducer) {
    const std::optional<std::string> pipeline = findReproducedPipeline(*text);
    if (!pipeline) {
      return fail(
          options.file + ":1: expected a line that begins with '" + passes::kReproducerPrefix + "'",
          kBadInput);
    }
    options.pipeline = *pipeline;
  }
  Reporter reporter(options);
  ir::Expected<std::string> result =
      passes::runPipelineOnText(options.pipeline, *text, options.file, &reporter);
  if (!result) return report(result.takeError(), options);
  std::cout << *result;
  return 0;
}

/// An answer that nobody could read is no answer.
int finishOutput(int code) {
  std::cout << std::flush;
  return std::cout ? code : fail("standard output: cannot write", kEnvironment);
}

std::string describePasses() { return "passes: " + llvm::join(passes::textPassNames(), " "); }

}  // namespace
}  // namespace stowage::tools

int main(int argc, char** argv) {
  stowage::tools::Options options;
  CLI::App app("Runs passes on the text form of a graph or schedule", "stowage-opt");
  app.footer(stowage::tools::describePasses());
  app.add_option("file", options.file, "IR text, - for standard input")->required();
  auto* passes =
      app.add_option("--passes", options.pipeline,
                     "Pipeline, e.g. 'split-list-ops{bucket-bytes=64MiB},hoist-updates'");
  app.add_flag("--reproducer", options.reproducer, "Run the pipeline that the first line names")
      ->excludes(passes);
  app.add_option("--write-reproducer", options.reproducerFile,
                 "Where to write the IR and pipeline of a pass that fails");
  app.add_flag("--print-after-change", options.printAfterChange,
               "Print the IR after each pass that changed it, to stderr");
  app.add_flag("--timing", options.timing, "Print how long each pass took, to stderr");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return stowage::tools::finishOutput(code == 0 ? 0 : stowage::tools::kUsage);
  }
  return stowage::tools::finishOutput(stowage::tools::run(options));
}
