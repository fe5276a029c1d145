// SPDX-License-Identifier: Apache-2.0
//
// Files of a test: a folder that goes with it, whole files as text.
#ifndef STOWAGE_TESTS_SUPPORT_SCRATCH_FOLDER_H_
#define STOWAGE_TESTS_SUPPORT_SCRATCH_FOLDER_H_

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace stowage::tests {

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
  /// Files and folders in it.
  size_t count() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(root_), {}));
  }

 private:
  std::filesystem::path root_;
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_SCRATCH_FOLDER_H_
