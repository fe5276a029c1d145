// SPDX-License-Identifier: Apache-2.0
//
// For tests of files on disks: a folder that goes with the test. It is below the working directory:
// folders for temporary files are memory on some machines.
#ifndef STOWAGE_TESTS_SUPPORT_DISK_FOLDER_H_
#define STOWAGE_TESTS_SUPPORT_DISK_FOLDER_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "ir/base/error.h"

namespace stowage::tests {

class DiskTest : public testing::Test {
 protected:
  DiskTest() { std::filesystem::create_directory(folder_); }
  ~DiskTest() override { std::filesystem::remove_all(folder_); }

  /// May files here be read past the page cache?
  bool takesDirectReads() const {
    const std::string path = folder_ / "probe";
    const int file = open(path.c_str(), O_CREAT | O_RDWR | O_DIRECT, 0600);
    if (file < 0) return false;
    close(file);
    unlink(path.c_str());
    return true;
  }

  bool isEmpty() const { return std::filesystem::is_empty(folder_); }

  /// `error` is one of the disk below `folder`, has `code`, and its text has `words`.
  static void expectDiskError(ir::Error error, const std::string& folder, ir::ErrorCode code,
                              const std::string& words) {
    ASSERT_TRUE(static_cast<bool>(error)) << "expected an error with: " << words;
    const ir::PlanError payload = ir::takePayload(std::move(error));
    EXPECT_STREQ(ir::errorCodeName(payload.code()), ir::errorCodeName(code)) << payload.text();
    EXPECT_NE(payload.text().find("disk '" + folder + "'"), std::string::npos) << payload.text();
    EXPECT_NE(payload.text().find(words), std::string::npos)
        << payload.text() << "\nexpected: " << words;
  }

  std::filesystem::path folder_ =
      std::filesystem::current_path() / ("disk_test" + std::to_string(getpid()));
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_DISK_FOLDER_H_
