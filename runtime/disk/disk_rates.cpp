// SPDX-License-Identifier: Apache-2.0
#include "runtime/disk/disk_rates.h"

#include <llvm/ADT/STLFunctionalExtras.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/disk/disk_file.h"
#include "runtime/disk/disk_folder.h"
#include "runtime/memory/mapped_arena.h"

namespace stowage::runtime {

namespace {

constexpr int64_t kUnit = int64_t{4} << 20;     // the file is a multiple of it
constexpr int64_t kTensor = int64_t{64} << 20;  // bytes of one transfer, as of a large tensor
constexpr int kSmallAccesses = 33;

using Clock = std::chrono::steady_clock;

/// What one direction moved in a stretch of time.
struct Moved {
  int64_t bytes = 0;
  Nanoseconds time{0};

  BytesPerSecond rate() const {
    const double seconds = static_cast<double>(std::max<int64_t>(time.value(), 1)) * 1e-9;
    return BytesPerSecond(
        std::max<int64_t>(static_cast<int64_t>(static_cast<double>(bytes) / seconds), 1));
  }
};

struct Range {
  int64_t begin;
  int64_t end;
};

int permille(BytesPerSecond part, BytesPerSecond whole) {
  const double share = static_cast<double>(part.value()) / static_cast<double>(whole.value());
  return static_cast<int>(std::clamp(share * 1000, 1.0, 1000.0));
}

class DiskBench {
 public:
  DiskBench(std::string folder, std::unique_ptr<DiskFile> file, MappedArena memory)
      : folder_(std::move(folder)), file_(std::move(file)), memory_(std::move(memory)) {
    // No zeros: some disks compress.
    uint64_t state = 0x9E3779B97F4A7C15U;
    for (int64_t i = 0; i + 8 <= memory_.bytes().value(); i += 8) {
      state ^= state << 13U;
      state ^= state >> 7U;
      state ^= state << 17U;
      std::memcpy(memory_.base() + i, &state, sizeof(state));
    }
  }

  ir::Expected<DiskRates> measure() {
    const Range all{.begin = 0, .end = file_->bytes().value()};
    const std::atomic<bool> isOver = false;
    // The first write of a block also makes it, which those of later steps do not.
    ir::Expected<Moved> written = write(all, isOver);
    if (written) written = write(all, isOver);
    if (!written) return written.takeError();
    ir::Expected<Moved> read = readBack(all, isOver);
    if (!read) return read.takeError();
    ir::Expected<Nanoseconds> smallWrite =
        typical([&](int64_t offset) { return writeMarked(offset, kDiskBlock); });
    if (!smallWrite) return smallWrite.takeError();
    ir::Expected<Nanoseconds> smallRead =
        typical([&](int64_t offset) { return file_->read(offset, buffer(1), kDiskBlock); });
    if (!smallRead) return smallRead.takeError();
    DiskRates rates{.write = {written->rate(), *smallWrite}, .read = {read->rate(), *smallRead}};
    ir::Expected<int> both = measureBoth(rates);
    if (!both) return both.takeError();
    rates.bothPermille = *both;
    return rates;
  }

 private:
  /// 0: what is written; 1: what was read.
  uint8_t* buffer(int which) { return memory_.base() + which * memory_.bytes().value() / 2; }

  /// No two blocks alike: some disks keep equal blocks once.
  ir::Error writeMarked(int64_t offset, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += kDiskBlock) {
      const int64_t mark = offset + i;
      std::memcpy(buffer(0) + i, &mark, sizeof(mark));
    }
    return file_->write(offset, buffer(0), bytes);
  }

  /// Moves `range` tensor by tensor until its end, or until `isOver`; at least one.
  ir::Expected<Moved> each(
      Range range, const std::atomic<bool>& isOver,
      llvm::function_ref<ir::Error(int64_t offset, int64_t bytes)> move) const {
    const auto begin = Clock::now();
    int64_t offset = range.begin;
    do {
      const int64_t bytes = std::min(memory_.bytes().value() / 2, range.end - offset);
      if (ir::Error error = move(offset, bytes)) return error;
      offset += bytes;
    } while (offset < range.end && !isOver);
    return Moved{.bytes = offset - range.begin, .time = since(begin)};
  }

  ir::Expected<Moved> write(Range range, const std::atomic<bool>& isOver) {
    const auto begin = Clock::now();
    ir::Expected<Moved> moved = each(
        range, isOver, [&](int64_t offset, int64_t bytes) { return writeMarked(offset, bytes); });
    if (!moved) return moved.takeError();
    if (ir::Error error = file_->sync()) return error;
    moved->time = since(begin);
    return moved;
  }

  ir::Expected<Moved> readBack(Range range, const std::atomic<bool>& isOver) {
    return each(range, isOver, [&](int64_t offset, int64_t bytes) -> ir::Error {
      if (ir::Error error = file_->read(offset, buffer(1), bytes)) return error;
      for (int64_t i = 0; i < bytes; i += kDiskBlock) {
        const int64_t mark = offset + i;
        if (std::memcmp(buffer(1) + i, &mark, sizeof(mark)) == 0) continue;
        return diskError(ir::ErrorCode::kEnvironment, folder_,
                         "read other bytes than were written, at offset " + std::to_string(mark));
      }
      return ir::success();
    });
  }

  /// Writes one half of the file while it reads the other. Whichever ends first ends both.
  ir::Expected<int> measureBoth(const DiskRates& alone) {
    const int64_t half = file_->bytes().value() / 2 / kUnit * kUnit;
    if (half == 0) return 1000;
    std::atomic<bool> isOver = false;
    Moved written;
    std::optional<ir::PlanError> failure;
    std::thread writer([&] {
      ir::Expected<Moved> moved = write({.begin = 0, .end = half}, isOver);
      isOver = true;
      if (moved) {
        written = *moved;
      } else {
        failure = ir::takePayload(moved.takeError());
      }
    });
    ir::Expected<Moved> read = readBack({.begin = half, .end = 2 * half}, isOver);
    isOver = true;
    writer.join();
    if (!read) return read.takeError();
    if (failure) return ir::makeError(std::move(*failure));
    return (permille(written.rate(), alone.write.bandwidth) +
            permille(read->rate(), alone.read.bandwidth)) /
           2;
  }

  /// The median of small accesses, spread over the file.
  ir::Expected<Nanoseconds> typical(llvm::function_ref<ir::Error(int64_t offset)> access) const {
    std::vector<Nanoseconds> times;
    for (int i = 0; i < kSmallAccesses; ++i) {
      const int64_t offset =
          i * (file_->bytes().value() / kSmallAccesses) / kDiskBlock * kDiskBlock;
      const auto begin = Clock::now();
      if (ir::Error error = access(offset)) return error;
      times.push_back(since(begin));
    }
    std::nth_element(times.begin(), times.begin() + kSmallAccesses / 2, times.end());
    return times[kSmallAccesses / 2];
  }

  static Nanoseconds since(Clock::time_point begin) {
    return Nanoseconds(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
  }

  std::string folder_;
  std::unique_ptr<DiskFile> file_;
  MappedArena memory_;
};

}  // namespace

ir::Expected<DiskRates> measureDisk(const std::string& folder, Bytes sample) {
  const Bytes bytes = roundUp(std::max(sample, Bytes(1)), kUnit);
  ir::Expected<std::unique_ptr<DiskFile>> file = DiskFile::create(folder, bytes);
  if (!file) return file.takeError();
  ir::Expected<MappedArena> memory =
      MappedArena::map(Bytes(2 * std::min(kTensor, bytes.value())), "tensors written to a disk");
  if (!memory) return memory.takeError();
  return DiskBench(folder, std::move(*file), std::move(*memory)).measure();
}

}  // namespace stowage::runtime
