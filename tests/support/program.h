// SPDX-License-Identifier: Apache-2.0
//
// `stowage` as its users call it: a command line -> exit code and everything it printed. For test
// programs that are given STOWAGE_PROGRAM.
#ifndef STOWAGE_TESTS_SUPPORT_PROGRAM_H_
#define STOWAGE_TESTS_SUPPORT_PROGRAM_H_

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace stowage::tests {

struct Outcome {
  int code = 0;
  std::string text;  // standard output and error
  bool says(const std::string& part) const { return text.find(part) != std::string::npos; }
};

inline Outcome stowage(const std::string& arguments) {
  Outcome outcome;
  FILE* pipe = popen((std::string(STOWAGE_PROGRAM) + " " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run stowage");
  std::array<char, 4096> part{};
  while (const size_t n = fread(part.data(), 1, part.size(), pipe)) {
    outcome.text.append(part.data(), n);
  }
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

inline std::string readText(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline void writeText(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A folder of this process's own, which goes with it.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& name)
      : root_(std::filesystem::temp_directory_path() / (name + std::to_string(getpid()))) {
    std::filesystem::create_directories(root_);
  }
  ~ScratchFolder() { std::filesystem::remove_all(root_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string at(const std::string& name) const { return (root_ / name).string(); }

 private:
  std::filesystem::path root_;
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_PROGRAM_H_
