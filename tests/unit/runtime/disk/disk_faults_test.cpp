// SPDX-License-Identifier: Apache-2.0
//
// Disks that fail: each system call in turn, full disks, short transfers, changed bytes. The file
// says what failed and where, and what did not fail stays usable.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/disk/disk_calls.h"
#include "runtime/disk/disk_file.h"
#include "tests/support/disk_folder.h"
#include "tests/support/or_fail.h"

namespace stowage::runtime {
namespace {

using namespace stowage::literals;

constexpr int64_t kBytes = 5 * 8192 - 700;
constexpr Bytes kFileBytes(int64_t{1} << 20);

/// Every call works, but one: the one with the number that was given.
class FailingCalls {
 public:
  FailingCalls(int failing, int number) : failing_(failing), number_(number) {
    wrap(calls.open, "open");
    wrap(calls.mkostemp, "mkostemp");
    wrap(calls.unlink, "unlink");
    wrap(calls.setFlags, "setFlags");
    wrap(calls.fstatvfs, "fstatvfs");
    wrap(calls.fallocate, "fallocate");
    wrap(calls.ftruncate, "ftruncate");
    wrap(calls.statx, "statx");
    wrap(calls.pread, "pread");
    wrap(calls.pwrite, "pwrite");
    wrap(calls.fdatasync, "fdatasync");
  }

  int count() const { return count_; }
  /// The name of the call that failed; "" while none did.
  std::string failed() const { return failed_; }

  DiskCalls calls = systemCalls();

 private:
  template <typename Result, typename... Arguments>
  void wrap(std::function<Result(Arguments...)>& call, const char* name) {
    call = [this, name, real = call](Arguments... arguments) -> Result {
      if (count_++ != failing_) return real(arguments...);
      failed_ = name;
      errno = number_;
      return -1;
    };
  }

  int failing_;
  int number_;
  std::atomic<int> count_ = 0;
  std::string failed_;
};

class DiskFaultsTest : public tests::DiskTest {
 protected:
  void SetUp() override {
    if (!takesDirectReads()) GTEST_SKIP() << "no O_DIRECT in " << folder_;
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<uint8_t>(i * i % 251);
  }

  ir::Expected<std::unique_ptr<DiskFile>> create(const DiskCalls& calls, bool verify = false,
                                                 int threads = 2) const {
    return DiskFile::create(
        folder_, kFileBytes,
        {.piece = 8192_B, .threads = threads, .verify = verify, .calls = &calls});
  }
  std::unique_ptr<DiskFile> makeFile(const DiskCalls& calls, bool verify = false) const {
    return tests::orFail(create(calls, verify));
  }
  ir::Error writeAt(DiskFile& file, int64_t offset) const {
    return file.write(offset, bytes_.data(), kBytes);
  }
  ir::Error readAt(DiskFile& file, int64_t offset) {
    found_.assign(bytes_.size(), 0);
    return file.read(offset, found_.data(), kBytes);
  }
  void expectRoundTrip(DiskFile& file, int64_t offset) {
    tests::orFail(writeAt(file, offset));
    tests::orFail(readAt(file, offset));
    EXPECT_EQ(found_, bytes_);
  }
  void expectError(ir::Error error, ir::ErrorCode code, const std::string& words) const {
    expectDiskError(std::move(error), folder_, code, words);
  }

  /// Makes a file, writes, reads and syncs; the first error, with the file still in use after it.
  ir::Error use(const DiskCalls& calls) {
    ir::Expected<std::unique_ptr<DiskFile>> file = create(calls);
    if (!file) return file.takeError();
    const auto steps = std::array<std::function<ir::Error()>, 3>{
        [&] { return writeAt(**file, 0); },
        [&] { return readAt(**file, 0); },
        [&] { return (*file)->sync(); },
    };
    for (const auto& step : steps) {
      ir::Error error = step();
      if (!error) continue;
      expectRoundTrip(**file, 128 * kDiskBlock);
      expectRoundTrip(**file, 0);
      return error;
    }
    EXPECT_EQ(found_, bytes_);
    return ir::success();
  }

  /// Lets each call fail once with `number`. `prepare` changes the calls of a run.
  void failEach(int number, const std::function<void(DiskCalls&)>& prepare) {
    FailingCalls none(-1, 0);
    prepare(none.calls);
    tests::orFail(use(none.calls));
    ASSERT_GT(none.count(), 10);
    for (int call = 0; call < none.count(); ++call) {
      FailingCalls failing(call, number);
      prepare(failing.calls);
      ir::Error error = use(failing.calls);
      SCOPED_TRACE(failing.failed() + ": " + std::strerror(number));
      ASSERT_NE(failing.failed(), "");
      if (number == EINTR || failing.failed() == "statx") {
        EXPECT_EQ(ir::describe(std::move(error)), "");
      } else {
        expectError(std::move(error), ir::ErrorCode::kEnvironment, std::strerror(number));
      }
      EXPECT_TRUE(isEmpty());
    }
  }

  std::vector<uint8_t> bytes_ = std::vector<uint8_t>(static_cast<size_t>(kBytes));
  std::vector<uint8_t> found_;
};

TEST_F(DiskFaultsTest, EachCallFailsOnce) {
  for (const int number : {EIO, ENOSPC, EINTR}) failEach(number, [](DiskCalls&) {});
}

TEST_F(DiskFaultsTest, EachCallFailsOnceWithoutNamelessFilesAndReservation) {
  const auto refuse = [](auto&&...) {
    errno = EOPNOTSUPP;
    return -1;
  };
  for (const int number : {EIO, ENOSPC, EINTR}) {
    failEach(number, [&](DiskCalls& calls) {
      calls.open = refuse;
      calls.fallocate = refuse;
    });
  }
}

TEST_F(DiskFaultsTest, ErrorsNameTheFirstOffset) {
  DiskCalls calls = systemCalls();
  const auto fail = [](auto&&...) {
    errno = EIO;
    return -1;
  };
  calls.pread = fail;
  calls.pwrite = fail;
  const std::unique_ptr<DiskFile> file = makeFile(calls);
  expectError(writeAt(*file, 4096), ir::ErrorCode::kEnvironment,
              "cannot write 8192 bytes at offset 4096 of its file: Input/output error");
  expectError(readAt(*file, 4096), ir::ErrorCode::kEnvironment,
              "cannot read 8192 bytes at offset 4096 of its file: Input/output error");
}

TEST_F(DiskFaultsTest, FullDisksSayWhatIsFree) {
  DiskCalls calls = systemCalls();
  calls.fstatvfs = [](int, struct statvfs* space) {
    *space = {};
    space->f_blocks = 1000;
    space->f_bavail = 300;
    space->f_frsize = 4096;
    return 0;
  };
  bool isTried = false;
  calls.fallocate = [&](int, int64_t) {
    isTried = true;
    errno = ENOSPC;
    return -1;
  };
  expectError(create(calls).takeError(), ir::ErrorCode::kEnvironment,
              "cannot reserve its file of 1.00 MiB (1048576 bytes), 1.17 MiB (1228800 bytes) are "
              "free: No space left on device");
  EXPECT_TRUE(isTried);
  isTried = false;
  expectError(DiskFile::create(folder_, 2_MiB, {.calls = &calls}).takeError(),
              ir::ErrorCode::kEnvironment, "1.17 MiB (1228800 bytes) are free");
  EXPECT_FALSE(isTried) << "other programs would find the disk full";
  EXPECT_TRUE(isEmpty());
}

TEST_F(DiskFaultsTest, FileSystemsWithoutDirectAccessAreRefused) {
  const auto refuse = [](auto&&...) {
    errno = EINVAL;
    return -1;
  };
  DiskCalls calls = systemCalls();
  calls.open = refuse;
  calls.setFlags = refuse;
  expectError(create(calls).takeError(), ir::ErrorCode::kEnvironment, "that knows O_DIRECT");
  EXPECT_TRUE(isEmpty());
}

#ifdef STATX_DIOALIGN
DiskCalls callsWithAlignment(uint32_t memory, uint32_t offset) {
  DiskCalls calls = systemCalls();
  calls.statx = [=](int, unsigned, struct statx* about) {
    about->stx_mask = STATX_DIOALIGN;
    about->stx_dio_mem_align = memory;
    about->stx_dio_offset_align = offset;
    return 0;
  };
  return calls;
}

TEST_F(DiskFaultsTest, AlignmentsAreThoseOfTheFileSystem) {
  const DiskCalls none = callsWithAlignment(0, 0);
  expectError(create(none).takeError(), ir::ErrorCode::kEnvironment, "that knows O_DIRECT");
  const DiskCalls large = callsWithAlignment(512, 65536);
  expectError(create(large).takeError(), ir::ErrorCode::kEnvironment,
              "in blocks of 65536 bytes, expected at most 4096");
  const DiskCalls strict = callsWithAlignment(16384, 4096);
  const std::unique_ptr<DiskFile> file = makeFile(strict);
  EXPECT_EQ(file->memoryAlignment(), 16384);
  expectRoundTrip(*file, 4096);
}
#endif

TEST_F(DiskFaultsTest, ShortTransfersAreContinued) {
  for (const size_t most : {512U, 700U, 4096U, 5000U, 8191U}) {
    std::atomic<int> turn = 0;
    DiskCalls calls = systemCalls();
    // Every second transfer is short; what is beyond it in memory and file is garbage.
    calls.pread = [&](int file, void* to, size_t bytes, int64_t offset) -> ssize_t {
      const ssize_t moved = systemCalls().pread(file, to, bytes, offset);
      if (turn++ % 2 != 0 || moved <= static_cast<ssize_t>(most)) return moved;
      std::memset(static_cast<uint8_t*>(to) + most, 0xEE, static_cast<size_t>(moved) - most);
      return static_cast<ssize_t>(most);
    };
    calls.pwrite = [&](int file, const void* from, size_t bytes, int64_t offset) -> ssize_t {
      if (turn++ % 2 != 0) return systemCalls().pwrite(file, from, bytes, offset);
      const size_t moved = std::min(bytes, most) / 512 * 512;
      const ssize_t done = systemCalls().pwrite(file, from, moved, offset);
      return done < 0 ? done : static_cast<ssize_t>(std::min(bytes, most));
    };
    const std::unique_ptr<DiskFile> file = makeFile(calls);
    for (int64_t i = 0; i < 4; ++i) expectRoundTrip(*file, i * 16 * kDiskBlock);
  }
}

TEST_F(DiskFaultsTest, TransfersThatDoNotGoOnEnd) {
  DiskCalls calls = systemCalls();
  std::atomic<ssize_t> moved = 0;
  calls.pread = [&](int, void*, size_t, int64_t) { return moved.load(); };
  calls.pwrite = [&](int, const void*, size_t, int64_t) { return moved.load(); };
  const std::unique_ptr<DiskFile> file = makeFile(calls);
  for (const ssize_t bytes : {0, 1}) {
    moved = bytes;
    const std::string only = "of its file: the disk moved " + std::to_string(bytes) + " bytes";
    expectError(writeAt(*file, 0), ir::ErrorCode::kEnvironment,
                "cannot write 8192 bytes at offset 0 " + only);
    expectError(readAt(*file, 0), ir::ErrorCode::kEnvironment,
                "cannot read 8192 bytes at offset 0 " + only);
  }
}

TEST_F(DiskFaultsTest, ChangedBytesAreFound) {
  for (const int64_t changed : {int64_t{0}, int64_t{8191}, int64_t{20000}, kBytes - 1}) {
    DiskCalls calls = systemCalls();
    bool isChanging = true;
    calls.pread = [&](int file, void* to, size_t bytes, int64_t offset) {
      const ssize_t moved = systemCalls().pread(file, to, bytes, offset);
      if (isChanging && changed >= offset && changed < offset + moved) {
        static_cast<uint8_t*>(to)[changed - offset] ^= 0x10U;
      }
      return moved;
    };
    const std::unique_ptr<DiskFile> file = makeFile(calls, /*verify=*/true);
    tests::orFail(writeAt(*file, 0));
    expectError(readAt(*file, 0), ir::ErrorCode::kEnvironment,
                "read other bytes than were written");
    isChanging = false;
    tests::orFail(readAt(*file, 0));
    isChanging = true;
    const std::string piece = " bytes at offset " + std::to_string(changed / 8192 * 8192) + " of";
    expectError(readAt(*file, 0), ir::ErrorCode::kEnvironment, piece);
  }
}

TEST_F(DiskFaultsTest, RangesOfFailedWritesCountAsNeverWritten) {
  DiskCalls calls = systemCalls();
  std::atomic<bool> isFailing = false;
  calls.pwrite = [&](int file, const void* from, size_t bytes, int64_t offset) -> ssize_t {
    if (!isFailing) return systemCalls().pwrite(file, from, bytes, offset);
    errno = EIO;
    return -1;
  };
  const std::unique_ptr<DiskFile> file = makeFile(calls, /*verify=*/true);
  expectRoundTrip(*file, 0);
  isFailing = true;
  expectError(writeAt(*file, 0), ir::ErrorCode::kEnvironment, "cannot write");
  expectError(readAt(*file, 0), ir::ErrorCode::kInvalidArgument, "no write began there");
  isFailing = false;
  expectRoundTrip(*file, 0);
}

/// Calls that arrive here leave when there are so many.
class Meeting {
 public:
  explicit Meeting(int expected) : expected_(expected) {}
  bool arrive() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return arrived_ >= expected_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int expected_;
  int arrived_ = 0;
};

TEST_F(DiskFaultsTest, SeveralRequestsOfBothDirectionsAreUnderWay) {
  DiskCalls calls = systemCalls();
  Meeting meeting(6);  // 3 of each direction: no direction waits for the other
  std::atomic<bool> isMeeting = false;
  calls.pread = [&](int file, void* to, size_t bytes, int64_t offset) {
    EXPECT_TRUE(!isMeeting || meeting.arrive());
    return systemCalls().pread(file, to, bytes, offset);
  };
  calls.pwrite = [&](int file, const void* from, size_t bytes, int64_t offset) {
    EXPECT_TRUE(!isMeeting || meeting.arrive());
    return systemCalls().pwrite(file, from, bytes, offset);
  };
  const std::unique_ptr<DiskFile> file = tests::orFail(create(calls, false, 3));
  expectRoundTrip(*file, 0);
  isMeeting = true;
  std::thread writer([&] { tests::orFail(writeAt(*file, 128 * kDiskBlock)); });
  tests::orFail(readAt(*file, 0));
  writer.join();
  EXPECT_EQ(found_, bytes_);
}

}  // namespace
}  // namespace stowage::runtime
