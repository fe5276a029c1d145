// SPDX-License-Identifier: Apache-2.0
//
// What is written to the file of the disk tier is what is read, whatever the sizes, offsets and
// addresses, with both directions at once; and the file has no name.
#include "runtime/disk/disk_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/disk/disk_calls.h"
#include "tests/support/disk_folder.h"
#include "tests/support/or_fail.h"
#include "tests/support/random.h"

namespace stowage::runtime {
namespace {

using namespace stowage::literals;
using Pattern = std::vector<uint8_t>;

constexpr uint8_t kFence = 0xA5;

Pattern randomBytes(tests::Random& random, int64_t bytes) {
  Pattern pattern(static_cast<size_t>(bytes));
  for (uint8_t& byte : pattern) byte = static_cast<uint8_t>(random.bits());
  return pattern;
}

/// `bytes` at `shift` bytes behind a multiple of 4096, between fences.
class FencedMemory {
 public:
  FencedMemory(int64_t bytes, int64_t shift)
      : bytes_(bytes), memory_(static_cast<size_t>(bytes + 4 * kDiskBlock), kFence) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    begin_ = static_cast<int64_t>(2 * kDiskBlock - address % kDiskBlock) + shift;
  }
  uint8_t* data() { return memory_.data() + begin_; }
  bool isFenceWhole() const {
    const auto isFence = [](uint8_t byte) { return byte == kFence; };
    return std::all_of(memory_.begin(), memory_.begin() + begin_, isFence) &&
           std::all_of(memory_.begin() + begin_ + bytes_, memory_.end(), isFence);
  }

 private:
  int64_t bytes_;
  int64_t begin_;
  Pattern memory_;
};

/// The system's calls, which expect what O_DIRECT does.
DiskCalls alignedCalls(const int64_t& memoryAlignment) {
  DiskCalls calls = systemCalls();
  const auto check = [&memoryAlignment](const void* memory, size_t bytes, int64_t offset) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % static_cast<uintptr_t>(memoryAlignment), 0U);
    EXPECT_EQ(bytes % kDiskBlock, 0U);
    EXPECT_EQ(offset % kDiskBlock, 0);
  };
  calls.pread = [check](int file, void* to, size_t bytes, int64_t offset) {
    check(to, bytes, offset);
    return systemCalls().pread(file, to, bytes, offset);
  };
  calls.pwrite = [check](int file, const void* from, size_t bytes, int64_t offset) {
    check(from, bytes, offset);
    return systemCalls().pwrite(file, from, bytes, offset);
  };
  return calls;
}

class DiskFileTest : public tests::DiskTest {
 protected:
  void SetUp() override {
    if (!takesDirectReads()) GTEST_SKIP() << "no O_DIRECT in " << folder_;
  }
  std::unique_ptr<DiskFile> makeFile(Bytes bytes, const DiskFileOptions& options = {}) const {
    return tests::orFail(DiskFile::create(folder_, bytes, options));
  }
  void expectRefused(ir::Error error, const std::string& words) const {
    expectDiskError(std::move(error), folder_, ir::ErrorCode::kInvalidArgument, words);
  }
};

/// A file and what it should hold. Each half is used by one thread at a time.
class ModelledFile {
 public:
  ModelledFile(std::unique_ptr<DiskFile> file, tests::Random random)
      : file_(std::move(file)), image_(randomBytes(random, file_->bytes().value())) {
    tests::orFail(file_->write(0, image_.data(), file_->bytes().value()));
  }

  void writeSome(int half, tests::Random random) {
    for (int i = 0; i < kTransfers; ++i) {
      const Range range = randomRange(half, random);
      FencedMemory memory(range.bytes, random.pick(kShifts));
      const Pattern pattern = randomBytes(random, range.bytes);
      std::copy(pattern.begin(), pattern.end(), memory.data());
      tests::orFail(file_->write(range.offset, memory.data(), range.bytes));
      const auto begin = image_.begin() + range.offset;
      std::copy(pattern.begin(), pattern.end(), begin);
      std::fill(begin + range.bytes, begin + roundUp(Bytes(range.bytes), kDiskBlock).value(), 0);
    }
  }

  void readSome(int half, tests::Random random) {
    for (int i = 0; i < kTransfers; ++i) {
      const Range range = randomRange(half, random);
      FencedMemory memory(range.bytes, random.pick(kShifts));
      tests::orFail(file_->read(range.offset, memory.data(), range.bytes));
      ASSERT_TRUE(memory.isFenceWhole()) << range.offset << " " << range.bytes;
      ASSERT_TRUE(
          std::equal(memory.data(), memory.data() + range.bytes, image_.begin() + range.offset))
          << range.offset << " " << range.bytes;
    }
  }

 private:
  struct Range {
    int64_t offset;
    int64_t bytes;
  };
  static constexpr int kTransfers = 12;
  static constexpr std::array<int64_t, 6> kShifts = {0, 0, 512, 1024, 8, 1};

  Range randomRange(int half, tests::Random& random) const {
    const int64_t size = file_->bytes().value() / 2;
    const int64_t block = random.between(0, size / kDiskBlock - 1);
    int64_t bytes = random.uneven(1, size - block * kDiskBlock);
    if (random.chance(50)) bytes = std::max<int64_t>(bytes / 512 * 512, 512);
    return {.offset = half * size + block * kDiskBlock, .bytes = bytes};
  }

  std::unique_ptr<DiskFile> file_;
  Pattern image_;
};

TEST_F(DiskFileTest, HoldsWhatWasWrittenWithBothDirectionsAtOnce) {
  int64_t alignment = 1;
  const DiskCalls calls = alignedCalls(alignment);
  for (uint64_t seed = 0; seed < 6; ++seed) {
    tests::Random random(seed);
    const DiskFileOptions options{.piece = Bytes(kDiskBlock * random.between(1, 40)),
                                  .threads = static_cast<int>(random.between(1, 5)),
                                  .calls = &calls};
    alignment = 1;
    std::unique_ptr<DiskFile> file = makeFile(2_MiB, options);
    alignment = file->memoryAlignment();
    ModelledFile modelled(std::move(file), random);
    for (int round = 0; round < 4; ++round) {
      const uint64_t turn = random.bits();
      std::thread writer([&] { modelled.writeSome(round % 2, tests::Random(turn)); });
      modelled.readSome(1 - round % 2, tests::Random(turn + 1));
      writer.join();
    }
  }
}

TEST_F(DiskFileTest, AddressesThatFitAreNotCopied) {
  std::vector<const void*> addresses;
  DiskCalls calls = systemCalls();
  calls.pwrite = [&](int file, const void* from, size_t bytes, int64_t offset) {
    addresses.push_back(from);
    return systemCalls().pwrite(file, from, bytes, offset);
  };
  const std::unique_ptr<DiskFile> file = makeFile(1_MiB, {.threads = 1, .calls = &calls});
  FencedMemory memory(2 * kDiskBlock, file->memoryAlignment());
  tests::orFail(file->write(0, memory.data(), kDiskBlock));
  EXPECT_EQ(addresses, std::vector<const void*>({memory.data()}));
  addresses.clear();
  tests::orFail(file->write(0, memory.data(), kDiskBlock + 512));
  ASSERT_EQ(addresses.size(), 2U);
  EXPECT_EQ(addresses[0], memory.data());
  EXPECT_NE(addresses[1], memory.data() + kDiskBlock) << "the file has no half blocks";
}

TEST_F(DiskFileTest, WritesEndWithTheirLastBlock) {
  const std::unique_ptr<DiskFile> file = makeFile(3_MiB);
  const Pattern ones(3 * kDiskBlock, 1);
  const Pattern twos(kDiskBlock + 100, 2);
  tests::orFail(file->write(0, ones.data(), 3 * kDiskBlock));
  tests::orFail(file->write(0, twos.data(), kDiskBlock + 100));
  Pattern expected = ones;
  std::fill(expected.begin(), expected.begin() + 2 * kDiskBlock, 0);
  std::copy(twos.begin(), twos.end(), expected.begin());
  Pattern found(3 * kDiskBlock);
  tests::orFail(file->read(0, found.data(), 3 * kDiskBlock));
  EXPECT_EQ(found, expected);
}

TEST_F(DiskFileTest, HasNoName) {
  {
    const std::unique_ptr<DiskFile> file = makeFile(1_MiB);
    EXPECT_TRUE(isEmpty());
    tests::orFail(file->sync());
  }
  EXPECT_TRUE(isEmpty());
}

TEST_F(DiskFileTest, MayBeAnyNumberOfBytes) {
  const std::unique_ptr<DiskFile> file = makeFile(5000_B);
  EXPECT_EQ(file->bytes(), Bytes(2 * kDiskBlock));
  const Pattern bytes(5000, 3);
  tests::orFail(file->write(0, bytes.data(), 5000));
  Pattern found(5000);
  tests::orFail(file->read(0, found.data(), 5000));
  EXPECT_EQ(found, bytes);
  tests::orFail(file->write(2 * kDiskBlock, nullptr, 0));
  tests::orFail(file->read(0, nullptr, 0));
}

TEST_F(DiskFileTest, RangesOutsideAreRefused) {
  const std::unique_ptr<DiskFile> file = makeFile(1_MiB);
  Pattern memory(4096);
  const int64_t all = file->bytes().value();
  const std::vector<std::pair<int64_t, int64_t>> wrong = {
      {512, 512},   {-4096, 4096},      {0, -1},           {all, 1},
      {0, all + 1}, {all - 4096, 4097}, {4096, INT64_MAX}, {INT64_MAX - 4095, 4096},
  };
  for (const auto& [offset, bytes] : wrong) {
    const std::string range =
        std::to_string(bytes) + " bytes at offset " + std::to_string(offset) + " of its file";
    expectRefused(file->write(offset, memory.data(), bytes), "cannot write " + range);
    expectRefused(file->read(offset, memory.data(), bytes), "cannot read " + range);
  }
}

TEST_F(DiskFileTest, OptionsThatMakeNoSenseAreRefused) {
  const auto refuse = [&](Bytes bytes, const DiskFileOptions& options, const std::string& words) {
    expectRefused(DiskFile::create(folder_, bytes, options).takeError(), words);
  };
  refuse(0_B, {}, "bytes of the file: found 0, expected 1 to ");
  refuse(Bytes(INT64_MAX), {}, "bytes of the file");
  refuse(1_MiB, {.piece = 5000_B}, "bytes of a piece: found 5000, expected a multiple of 4096");
  refuse(1_MiB, {.piece = 0_B}, "bytes of a piece");
  refuse(1_MiB, {.threads = 0}, "threads: found 0, expected 1 to 64");
  refuse(1_MiB, {.threads = 65}, "threads");
  EXPECT_TRUE(isEmpty());
}

TEST_F(DiskFileTest, MemoryIsNoDisk) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  expectDiskError(DiskFile::create("/dev/shm", 1_MiB).takeError(), "/dev/shm",
                  ir::ErrorCode::kEnvironment, "is memory (tmpfs)");
}

class VerifiedDiskFileTest : public DiskFileTest {
 protected:
  void SetUp() override {
    DiskFileTest::SetUp();
    if (IsSkipped()) return;
    file_ = makeFile(1_MiB, {.piece = 8192_B, .threads = 2, .verify = true});
  }
  void write(int64_t offset, int64_t bytes) {
    tests::orFail(file_->write(offset, bytes_.data(), bytes));
  }
  ir::Error read(int64_t offset, int64_t bytes) {
    return file_->read(offset, bytes_.data(), bytes);
  }

  std::unique_ptr<DiskFile> file_;
  Pattern bytes_ = Pattern(65536, 5);
};

TEST_F(VerifiedDiskFileTest, ReadsWhatAWriteWrote) {
  write(0, 65536);
  write(65536, 5000);
  tests::orFail(read(0, 65536));
  tests::orFail(read(65536, 5000));
  EXPECT_EQ(bytes_, Pattern(65536, 5));
}

TEST_F(VerifiedDiskFileTest, OtherRangesThanWrittenAreRefused) {
  expectRefused(read(0, 4096), "cannot read 4096 bytes at offset 0 of its file: no write began");
  write(4096, 20000);
  expectRefused(read(4096, 8192), "found a write of 20000 bytes");
  expectRefused(read(4096, 20480), "found a write of 20000 bytes");
  expectRefused(read(8192, 4096), "no write began there");
  tests::orFail(read(4096, 20000));
}

TEST_F(VerifiedDiskFileTest, AWriteMakesThoseItOverlapsUnknown) {
  write(0, 8192);
  write(8192, 4097);  // up to 16384
  write(16384, 4096);
  write(12288, 4096);  // the second block of the second one
  tests::orFail(read(0, 8192));
  expectRefused(read(8192, 4097), "no write began there");
  tests::orFail(read(12288, 4096));
  tests::orFail(read(16384, 4096));
  write(4096, 65536);
  for (const int64_t offset : {0, 12288, 16384}) {
    expectRefused(read(offset, 4096), "no write began there");
  }
  tests::orFail(read(4096, 65536));
}

}  // namespace
}  // namespace stowage::runtime
