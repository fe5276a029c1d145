// SPDX-License-Identifier: Apache-2.0
//
// A disk's rates are those of a disk, and nothing is left of the measurement.
#include "runtime/disk/disk_rates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/support/disk_folder.h"
#include "tests/support/or_fail.h"
#include "tests/support/scratch_folder.h"

namespace stowage::runtime {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kSample(int64_t{16} << 20);

class DiskRatesTest : public tests::DiskTest {
 protected:
  static void expectRefused(const std::string& folder, Bytes sample, ir::ErrorCode code,
                            const std::string& words) {
    expectDiskError(measureDisk(folder, sample).takeError(), folder, code, words);
  }
};

TEST_F(DiskRatesTest, AreMeasuredAndNothingIsLeft) {
  if (!takesDirectReads()) GTEST_SKIP() << "no O_DIRECT in " << folder_;
  const DiskRates rates = tests::orFail(measureDisk(folder_, kSample));
  for (const ir::LinkRate& rate : {rates.write, rates.read}) {
    EXPECT_GT(rate.bandwidth, BytesPerSecond(1'000'000));
    EXPECT_LT(rate.bandwidth, BytesPerSecond(1'000'000'000'000));
    EXPECT_GT(rate.latency, Nanoseconds(0));
  }
  EXPECT_GE(rates.bothPermille, 1);
  EXPECT_LE(rates.bothPermille, 1000);
  EXPECT_TRUE(isEmpty());
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
  EXPECT_TRUE(isEmpty());
  EXPECT_GT(leastFree, before.available / 2) << "other programs find the disk full meanwhile";
}

}  // namespace
}  // namespace stowage::runtime
