// SPDX-License-Identifier: Apache-2.0
//
// A store of files in a folder: for ranks that are threads or processes of one machine.
#ifndef STOWAGE_TESTS_SUPPORT_FOLDER_STORE_H_
#define STOWAGE_TESTS_SUPPORT_FOLDER_STORE_H_

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "runtime/ranks/rank_store.h"
#include "tests/support/scratch_folder.h"

namespace stowage::tests {

class FolderStore : public runtime::RankStore {
 public:
  explicit FolderStore(std::filesystem::path folder,
                       std::chrono::milliseconds patience = std::chrono::seconds(20))
      : folder_(std::move(folder)), patience_(patience) {}

  ir::Error set(const std::string& key, const std::string& value) override {
    const std::filesystem::path path = pathOf(key);
    const std::filesystem::path part = path.string() + ".part";
    writeText(part, value);
    std::filesystem::rename(part, path);
    return ir::success();
  }

  ir::Expected<std::string> get(const std::string& key) override {
    const auto deadline = std::chrono::steady_clock::now() + patience_;
    while (!std::filesystem::exists(pathOf(key))) {
      if (std::chrono::steady_clock::now() > deadline) {
        return ir::makeError(ir::ErrorCode::kEnvironment, "nobody has set '" + key + "'");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return readText(pathOf(key));
  }

 private:
  std::filesystem::path pathOf(std::string key) const {
    for (char& letter : key) letter = letter == '/' ? '_' : letter;
    return folder_ / key;
  }

  std::filesystem::path folder_;
  std::chrono::milliseconds patience_;
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_FOLDER_STORE_H_
