// SPDX-License-Identifier: Apache-2.0
#include "runtime/disk/disk_rates.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/memory/mapped_arena.h"

namespace stowage::runtime {

namespace {

constexpr int64_t kBlock = int64_t{4} << 20;
constexpr int64_t kSmallBlock = 4096;
constexpr int kWorkers = 4;  // enough under way at once for a disk that serves several queues
constexpr int kSmallAccesses = 33;

using Clock = std::chrono::steady_clock;

Nanoseconds since(Clock::time_point begin) {
  return Nanoseconds(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

ir::Error diskError(ir::ErrorCode code, const std::string& folder, const std::string& what) {
  return ir::makeError(code, "disk '" + folder + "': " + what);
}

ir::Error systemError(ir::ErrorCode code, const std::string& folder, const std::string& what,
                      int number) {
  return diskError(code, folder, what + ": " + std::strerror(number));
}

/// Whole blocks at a multiple of their size, past the page cache.
class DirectFile {
 public:
  static ir::Expected<DirectFile> create(const std::string& folder) {
    const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
    if (file >= 0) return DirectFile(file);
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
      return systemError(ir::ErrorCode::kEnvironment, folder, "cannot make a file", errno);
    }
    return createNamed(folder);
  }
  DirectFile(DirectFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  DirectFile& operator=(DirectFile&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~DirectFile() {
    if (file_ >= 0) close(file_);
  }

  /// 0, or what went wrong.
  int write(const uint8_t* from, int64_t bytes, int64_t offset) const {
    return whole(pwrite(file_, from, static_cast<size_t>(bytes), offset), bytes);
  }
  int read(uint8_t* to, int64_t bytes, int64_t offset) const {
    return whole(pread(file_, to, static_cast<size_t>(bytes), offset), bytes);
  }
  /// Nothing where the file system cannot: then the writes do it. What is not free is not tried:
  /// until that fails, some file systems have nothing left for others.
  int reserve(int64_t bytes) const {
    struct statvfs space = {};
    if (fstatvfs(file_, &space) != 0) return errno;
    const bool isKnown = space.f_blocks > 0 && space.f_frsize > 0;
    if (isKnown && static_cast<uint64_t>(bytes) / space.f_frsize >= space.f_bavail) return ENOSPC;
    return fallocate(file_, 0, 0, bytes) == 0 || errno == EOPNOTSUPP ? 0 : errno;
  }
  int settle() const { return fdatasync(file_) == 0 ? 0 : errno; }

 private:
  explicit DirectFile(int file) : file_(file) {}

  // File systems without nameless files.
  static ir::Expected<DirectFile> createNamed(const std::string& folder) {
    std::string name = folder + "/.stowage-disk-XXXXXX";
    const int file = mkostemp(name.data(), O_CLOEXEC);
    if (file < 0) {
      return systemError(ir::ErrorCode::kEnvironment, folder, "cannot make a file", errno);
    }
    DirectFile made(file);
    unlink(name.c_str());
    if (fcntl(file, F_SETFL, O_DIRECT) != 0) {
      return systemError(ir::ErrorCode::kEnvironment, folder,
                         "its files cannot be read past the page cache, expected a file system "
                         "that knows O_DIRECT",
                         errno);
    }
    return made;
  }

  static int whole(ssize_t done, int64_t bytes) {
    if (done == bytes) return 0;
    return done < 0 ? errno : EIO;
  }

  int file_;
};

/// Calls `access` for every block, from several threads; its first failure, or 0.
int forEachBlock(int64_t blocks, const std::function<int(int64_t block, int worker)>& access) {
  std::atomic<int64_t> next = 0;
  std::atomic<int> failure = 0;
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      for (int64_t block = next++; block < blocks && failure == 0; block = next++) {
        const int result = access(block, worker);
        int none = 0;
        if (result != 0) failure.compare_exchange_strong(none, result);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  return failure;
}

class DiskBench {
 public:
  DiskBench(std::string folder, DirectFile file, MappedArena memory, int64_t blocks)
      : folder_(std::move(folder)),
        file_(std::move(file)),
        memory_(std::move(memory)),
        blocks_(blocks) {
    // No zeros, and no two blocks alike: some disks compress, some keep equal blocks once.
    uint64_t state = 0x9E3779B97F4A7C15U;
    for (int64_t i = 0; i + 8 <= memory_.bytes().value(); i += 8) {
      state ^= state << 13U;
      state ^= state >> 7U;
      state ^= state << 17U;
      std::memcpy(memory_.base() + i, &state, sizeof(state));
    }
  }

  ir::Expected<DiskRates> measure() {
    DiskRates rates;
    // The file's extents exist before the clock runs: a tier's file is made once.
    if (ir::Error error = passed(file_.reserve(blocks_ * kBlock), "cannot reserve its file")) {
      return error;
    }
    ir::Expected<Nanoseconds> written = timed("cannot write", [&] {
      const int failure = forEachBlock(blocks_, [&](int64_t block, int worker) {
        uint8_t* bytes = bufferOf(worker);
        std::memcpy(bytes, &block, sizeof(block));
        return file_.write(bytes, kBlock, block * kBlock);
      });
      return failure != 0 ? failure : file_.settle();
    });
    if (!written) return written.takeError();
    ir::Expected<Nanoseconds> read = timed("cannot read", [&] {
      return forEachBlock(blocks_, [&](int64_t block, int worker) {
        uint8_t* bytes = bufferOf(worker);
        if (const int failure = file_.read(bytes, kBlock, block * kBlock)) return failure;
        return std::memcmp(bytes, &block, sizeof(block)) == 0 ? 0 : EIO;
      });
    });
    if (!read) return read.takeError();
    ir::Expected<Nanoseconds> smallWrite = typical("cannot write", [&](int64_t offset) {
      return file_.write(bufferOf(0), kSmallBlock, offset);
    });
    if (!smallWrite) return smallWrite.takeError();
    ir::Expected<Nanoseconds> smallRead = typical("cannot read", [&](int64_t offset) {
      return file_.read(bufferOf(0), kSmallBlock, offset);
    });
    if (!smallRead) return smallRead.takeError();
    return DiskRates{.write = {rateOf(*written), *smallWrite}, .read = {rateOf(*read), *smallRead}};
  }

 private:
  uint8_t* bufferOf(int worker) { return memory_.base() + worker * kBlock; }

  ir::Error passed(int failure, const std::string& what) const {
    if (failure == 0) return ir::success();
    // EINVAL: blocks of 4096 bytes at multiples of it are not what this file system takes.
    const bool ofMachine = failure == ENOSPC || failure == EDQUOT || failure == EFBIG ||
                           failure == EINVAL || failure == EOPNOTSUPP;
    return systemError(
        ofMachine ? ir::ErrorCode::kEnvironment : ir::ErrorCode::kIo, folder_,
        what + " (" + formatBytes(Bytes(blocks_ * kBlock)) + ", past the page cache)", failure);
  }

  ir::Expected<Nanoseconds> timed(const std::string& what, const std::function<int()>& work) const {
    const auto begin = Clock::now();
    const int failure = work();
    const Nanoseconds time = since(begin);
    if (ir::Error error = passed(failure, what)) return error;
    return time;
  }

  /// The median of small accesses, spread over the file.
  ir::Expected<Nanoseconds> typical(const std::string& what,
                                    const std::function<int(int64_t offset)>& access) const {
    std::vector<Nanoseconds> times;
    for (int i = 0; i < kSmallAccesses; ++i) {
      const int64_t offset = i * (blocks_ * kBlock / kSmallAccesses) / kSmallBlock * kSmallBlock;
      ir::Expected<Nanoseconds> time = timed(what, [&] { return access(offset); });
      if (!time) return time.takeError();
      times.push_back(*time);
    }
    std::nth_element(times.begin(), times.begin() + kSmallAccesses / 2, times.end());
    return times[kSmallAccesses / 2];
  }

  BytesPerSecond rateOf(Nanoseconds time) const {
    return BytesPerSecond(std::max<int64_t>(
        static_cast<int64_t>(static_cast<double>(blocks_ * kBlock) * 1e9 /
                             static_cast<double>(std::max<int64_t>(time.value(), 1))),
        1));
  }

  std::string folder_;
  DirectFile file_;
  MappedArena memory_;
  int64_t blocks_;
};

ir::Error checkIsDisk(const std::string& folder) {
  struct stat about = {};
  if (stat(folder.c_str(), &about) != 0) {
    return systemError(ir::ErrorCode::kInvalidArgument, folder, "expected a folder", errno);
  }
  if (!S_ISDIR(about.st_mode)) {
    return diskError(ir::ErrorCode::kInvalidArgument, folder, "is a file, expected a folder");
  }
  struct statfs system = {};
  if (statfs(folder.c_str(), &system) != 0) {
    return systemError(ir::ErrorCode::kEnvironment, folder, "cannot ask its file system", errno);
  }
  if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC) {
    return diskError(ir::ErrorCode::kEnvironment, folder,
                     "is memory (tmpfs), expected a folder on a disk");
  }
  return ir::success();
}

}  // namespace

ir::Expected<DiskRates> measureDisk(const std::string& folder, Bytes sample) {
  if (ir::Error error = checkIsDisk(folder)) return error;
  ir::Expected<DirectFile> file = DirectFile::create(folder);
  if (!file) return file.takeError();
  ir::Expected<MappedArena> memory =
      MappedArena::map(Bytes(kWorkers * kBlock), "blocks written to a disk");
  if (!memory) return memory.takeError();
  const int64_t blocks = std::max<int64_t>((sample.value() + kBlock - 1) / kBlock, 1);
  return DiskBench(folder, std::move(*file), std::move(*memory), blocks).measure();
}

}  // namespace stowage::runtime
