// SPDX-License-Identifier: Apache-2.0
#include "runtime/disk/disk_calls.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

namespace stowage::runtime {

const DiskCalls& systemCalls() {
  static const DiskCalls kCalls{
      .open = [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
      .mkostemp = [](char* pattern, int flags) { return ::mkostemp(pattern, flags); },
      .unlink = [](const char* path) { return ::unlink(path); },
      .setFlags = [](int file, int flags) { return ::fcntl(file, F_SETFL, flags); },
      .fstatvfs = [](int file, struct statvfs* space) { return ::fstatvfs(file, space); },
      .fallocate = [](int file, int64_t bytes) { return ::fallocate(file, 0, 0, bytes); },
      .ftruncate = [](int file, int64_t bytes) { return ::ftruncate(file, bytes); },
      .statx = [](int file, unsigned mask,
                  struct statx* about) { return ::statx(file, "", AT_EMPTY_PATH, mask, about); },
      .pread = [](int file, void* to, size_t bytes,
                  int64_t offset) { return ::pread(file, to, bytes, offset); },
      .pwrite = [](int file, const void* from, size_t bytes,
                   int64_t offset) { return ::pwrite(file, from, bytes, offset); },
      .fdatasync = [](int file) { return ::fdatasync(file); },
  };
  return kCalls;
}

}  // namespace stowage::runtime
