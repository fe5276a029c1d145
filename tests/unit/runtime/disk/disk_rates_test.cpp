// SPDX-License-Identifier: Apache-2.0
//
// A disk's rates are those of a disk, and nothing is left of the measurement.
#include "runtime/disk/disk_rates.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/support/or_fail.h"
#include "tests/support/scratch_folder.h"

namespace stowage::runtime {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kSample(int64_t{16} << 20);

/// Below the working directory: folders for temporary files are memory on some machines.
class DiskRatesTest : public testing::Test {
 protected:
  DiskRatesTest() { fs::create_directory(folder_); }
  ~DiskRatesTest() override { fs::remove_all(folder_); }

  static void expectRefused(const std::string& folder, Bytes sample, ir::ErrorCode code,
                            const std::string& words) {
    ir::Expected<DiskRates> rates = measureDisk(folder, sample);
    ASSERT_FALSE(static_cast<bool>(rates));
    const ir::PlanError error = ir::takePayload(rates.takeError());
    EXPECT_EQ(error.code(), code);
    EXPECT_NE(error.text().find("disk '" + folder + "'"), std::string::npos) << error.text();
    EXPECT_NE(error.text().find(words), std::string::npos) << error.text();
  }

  fs::path folder_ = fs::current_path() / ("disk_rates" + std::to_string(getpid()));
};

/// May files here be read past the page cache?
bool takesDirectReads(const fs::path& folder) {
  const std::string path = folder / "probe";
  const int file = open(path.c_str(), O_CREAT | O_RDWR | O_DIRECT, 0600);
  if (file < 0) return false;
  close(file);
  unlink(path.c_str());
  return true;
}

TEST_F(DiskRatesTest, AreMeasuredAndNothingIsLeft) {
  if (!takesDirectReads(folder_)) GTEST_SKIP() << "no O_DIRECT in " << folder_;
  const DiskRates rates = tests::orFail(measureDisk(folder_, kSample));
  for (const ir::LinkRate& rate : {rates.write, rates.read}) {
    EXPECT_GT(rate.bandwidth, BytesPerSecond(1'000'000));
    EXPECT_LT(rate.bandwidth, BytesPerSecond(1'000'000'000'000));
    EXPECT_GT(rate.latency, Nanoseconds(0));
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(DiskRatesTest, MemoryIsNoDisk) {
  if (!fs::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  expectRefused("/dev/shm", kSample, ir::ErrorCode::kEnvironment, "is memory (tmpfs)");
}

TEST_F(DiskRatesTest, WhatIsNoFolderIsRefused) {
  const fs::path file = folder_ / "file";
  tests::writeText(file, "text");
  expectRefused(file, kSample, ir::ErrorCode::kInvalidArgument, "is a file");
  expectRefused(folder_ / "missing", kSample, ir::ErrorCode::kInvalidArgument, "expected a folder");
}

TEST_F(DiskRatesTest, MoreThanTheDiskHoldsIsRefused) {
  const fs::space_info before = fs::space(folder_);
  const Bytes all(static_cast<int64_t>(before.capacity));
  std::atomic<bool> isOver = false;
  uintmax_t leastFree = before.available;
  std::thread watch([&] {
    while (!isOver) leastFree = std::min(leastFree, fs::space(folder_).available);
  });
  expectRefused(folder_, all + all, ir::ErrorCode::kEnvironment, "cannot reserve its file");
  isOver = true;
  watch.join();
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_GT(leastFree, before.available / 2) << "other programs find the disk full meanwhile";
}

}  // namespace
}  // namespace stowage::runtime
