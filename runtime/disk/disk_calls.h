// SPDX-License-Identifier: Apache-2.0
//
// The system calls of a file on a disk, one function each. Tests put others in their place, which
// fail as disks do. Each returns what the call of its name returns, and sets errno.
#ifndef STOWAGE_RUNTIME_DISK_DISK_CALLS_H_
#define STOWAGE_RUNTIME_DISK_DISK_CALLS_H_

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace stowage::runtime {

struct DiskCalls {
  std::function<int(const char* path, int flags, mode_t mode)> open;
  std::function<int(char* pattern, int flags)> mkostemp;
  std::function<int(const char* path)> unlink;
  std::function<int(int file, int flags)> setFlags;  // fcntl(F_SETFL)
  std::function<int(int file, struct statvfs* space)> fstatvfs;
  std::function<int(int file, int64_t bytes)> fallocate;
  std::function<int(int file, int64_t bytes)> ftruncate;
  std::function<int(int file, unsigned mask, struct statx* about)> statx;
  std::function<ssize_t(int file, void* to, size_t bytes, int64_t offset)> pread;
  std::function<ssize_t(int file, const void* from, size_t bytes, int64_t offset)> pwrite;
  std::function<int(int file)> fdatasync;
};

/// The system's own.
const DiskCalls& systemCalls();

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_DISK_DISK_CALLS_H_
