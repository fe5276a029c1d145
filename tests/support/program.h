// SPDX-License-Identifier: Apache-2.0
//
// `stowage` as its users call it: a command line -> exit code and everything it printed. For test
// programs that are given STOWAGE_PROGRAM.
#ifndef STOWAGE_TESTS_SUPPORT_PROGRAM_H_
#define STOWAGE_TESTS_SUPPORT_PROGRAM_H_

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "tests/support/scratch_folder.h"

namespace stowage::tests {

struct Outcome {
  int code = 0;
  std::string text;  // standard output and error
  bool says(const std::string& part) const { return text.find(part) != std::string::npos; }
};

/// `before`: what the shell does first.
inline Outcome stowage(const std::string& arguments, const std::string& before = "") {
  Outcome outcome;
  FILE* pipe =
      popen((before + std::string(STOWAGE_PROGRAM) + " " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run stowage");
  std::array<char, 4096> part{};
  while (const size_t n = fread(part.data(), 1, part.size(), pipe)) {
    outcome.text.append(part.data(), n);
  }
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

/// step.stow, costs.json and plan.json in `folder`: a gpt2 of one block, in 60 % of what it needs,
/// with its ops whole. `settings`: more of them, as on the command line.
inline void planSmallModel(const ScratchFolder& folder, const std::string& settings = "") {
  const std::string step = folder.at("step.stow");
  const std::string costs = folder.at("costs.json");
  for (const std::string& arguments :
       {"capture gpt2 --set layers=1 --set hidden=32 --set heads=2 --set sequence=16 "
        "--set context=16 " +
            settings + " -o " + step,
        "profile " + step + " -o " + costs,
        "plan " + step + " --budget 60%peak --allow offload,recompute,in-place-reuse,reorder" +
            " --costs " + costs + " -o " + folder.at("plan.json")}) {
    const Outcome outcome = stowage(arguments);
    ASSERT_EQ(outcome.code, 0) << arguments << '\n' << outcome.text;
  }
}

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_PROGRAM_H_
