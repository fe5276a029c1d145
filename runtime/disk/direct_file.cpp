// SPDX-License-Identifier: Apache-2.0
#include "runtime/disk/direct_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <limits>
#include <utility>

#include "runtime/disk/disk_calls.h"
#include "runtime/disk/disk_folder.h"

namespace stowage::runtime {

namespace {

constexpr int kMostStalls = 8;  // transfers in a row that move less than the file's alignment

/// Calls again while signals interrupt it.
template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

std::string withBytes(Bytes bytes) {
  return formatBytes(bytes) + " (" + std::to_string(bytes.value()) + " bytes)";
}

ir::Error noDirectAccess(const std::string& folder) {
  return diskError(ir::ErrorCode::kEnvironment, folder,
                   "its files cannot be read past the page cache, expected a file system that "
                   "knows O_DIRECT");
}

}  // namespace

ir::Expected<DirectFile> DirectFile::create(const std::string& folder, Bytes bytes,
                                            const DiskCalls& calls) {
  if (ir::Error error = checkIsDisk(folder)) return error;
  const int file = uninterrupted(
      [&] { return calls.open(folder.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600); });
  const bool isRefused = file < 0 && errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL;
  if (isRefused) return systemError(folder, "cannot make a file", errno);
  ir::Expected<DirectFile> made =
      file < 0 ? createNamed(folder, calls) : DirectFile(folder, calls, file);
  if (!made) return made.takeError();
  if (ir::Error error = made->findAlignment()) return error;
  if (ir::Error error = made->reserve(roundUp(bytes, kDiskBlock))) return error;
  return made;
}

// For file systems without nameless files.
ir::Expected<DirectFile> DirectFile::createNamed(const std::string& folder,
                                                 const DiskCalls& calls) {
  std::string name = folder + "/.stowage-disk-XXXXXX";
  const int file = uninterrupted([&] { return calls.mkostemp(name.data(), O_CLOEXEC); });
  if (file < 0) return systemError(folder, "cannot make a file", errno);
  DirectFile made(folder, calls, file);
  if (uninterrupted([&] { return calls.unlink(name.c_str()); }) != 0) {
    const int failure = errno;
    calls.unlink(name.c_str());
    return systemError(folder, "cannot take the name off its file", failure);
  }
  if (uninterrupted([&] { return calls.setFlags(file, O_DIRECT); }) != 0) {
    if (errno == EINVAL) return noDirectAccess(folder);
    return systemError(folder, "cannot pass the page cache", errno);
  }
  return made;
}

// Kernels before 6.1 do not say: a block is enough for all of them.
ir::Error DirectFile::findAlignment() {
#ifdef STATX_DIOALIGN
  struct statx about = {};
  const int result =
      uninterrupted([&] { return calls_->statx(file_.get(), STATX_DIOALIGN, &about); });
  if (result != 0 || (about.stx_mask & STATX_DIOALIGN) == 0) return ir::success();
  if (about.stx_dio_mem_align == 0 || about.stx_dio_offset_align == 0) {
    return noDirectAccess(folder_);
  }
  memoryAlignment_ = about.stx_dio_mem_align;
  offsetAlignment_ = about.stx_dio_offset_align;
  if (kDiskBlock % offsetAlignment_ != 0) {
    return diskError(ir::ErrorCode::kEnvironment, folder_,
                     "its files are read past the page cache in blocks of " +
                         std::to_string(offsetAlignment_) + " bytes, expected at most " +
                         std::to_string(kDiskBlock));
  }
#endif
  return ir::success();
}

// What is not free is not tried: until that fails, some file systems have nothing left for others.
ir::Error DirectFile::reserve(Bytes bytes) {
  bytes_ = bytes;
  const std::string what = "cannot reserve its file of " + withBytes(bytes);
  struct statvfs space = {};
  if (uninterrupted([&] { return calls_->fstatvfs(file_.get(), &space); }) != 0) {
    return systemError(folder_, what + ", nor ask for the free bytes", errno);
  }
  const bool isKnown = space.f_blocks > 0 && space.f_frsize > 0;
  const uint64_t most = std::numeric_limits<int64_t>::max();
  const uint64_t unit = std::max<uint64_t>(space.f_frsize, 1);
  const Bytes available(
      static_cast<int64_t>(std::min<uint64_t>(space.f_bavail, most / unit) * unit));
  const std::string all = isKnown ? what + ", " + withBytes(available) + " are free" : what;
  if (isKnown && bytes >= available) return systemError(folder_, all, ENOSPC);
  if (uninterrupted([&] { return calls_->fallocate(file_.get(), bytes.value()); }) == 0) {
    return ir::success();
  }
  if (errno != EOPNOTSUPP) return systemError(folder_, all, errno);
  // The file system reserves nothing: its size is set, and writes find out whether there is room.
  if (uninterrupted([&] { return calls_->ftruncate(file_.get(), bytes.value()); }) == 0) {
    return ir::success();
  }
  return systemError(folder_, all, errno);
}

ir::Error DirectFile::write(int64_t offset, const uint8_t* from, int64_t bytes) const {
  return transfer("write", offset, bytes, [&](int64_t done) {
    return calls_->pwrite(file_.get(), from + done, static_cast<size_t>(bytes - done),
                          offset + done);
  });
}

ir::Error DirectFile::read(int64_t offset, uint8_t* to, int64_t bytes) const {
  return transfer("read", offset, bytes, [&](int64_t done) {
    return calls_->pread(file_.get(), to + done, static_cast<size_t>(bytes - done), offset + done);
  });
}

// The rest of a short transfer begins at the last address and offset that the file takes.
ir::Error DirectFile::transfer(const std::string& verb, int64_t offset, int64_t bytes,
                               llvm::function_ref<ssize_t(int64_t done)> call) const {
  assert(offset % kDiskBlock == 0 && bytes % kDiskBlock == 0 && "no whole blocks");
  const int64_t unit = std::max(memoryAlignment_, offsetAlignment_);
  int stalls = 0;
  for (int64_t done = 0; done < bytes;) {
    const ssize_t moved = uninterrupted([&] { return call(done); });
    const int failure = errno;
    const bool isWhole = moved == bytes - done;
    const int64_t kept = isWhole ? moved : moved / unit * unit;
    stalls = kept > 0 ? 0 : stalls + 1;
    if (moved <= 0 || stalls == kMostStalls) {
      const std::string what = "cannot " + verb + " " + std::to_string(bytes - done) +
                               " bytes at offset " + std::to_string(offset + done) + " of its file";
      if (moved < 0) return systemError(folder_, what, failure);
      return diskError(ir::ErrorCode::kEnvironment, folder_,
                       what + ": the disk moved " + std::to_string(moved) +
                           " bytes, expected all of them: is the file as long as it was made?");
    }
    done += kept;
  }
  return ir::success();
}

ir::Error DirectFile::sync() const {
  if (uninterrupted([&] { return calls_->fdatasync(file_.get()); }) == 0) return ir::success();
  return systemError(folder_, "cannot make sure that its file is on the disk", errno);
}

}  // namespace stowage::runtime
