// SPDX-License-Identifier: Apache-2.0
//
// A nameless, reserved file past the page cache (O_DIRECT), and whole transfers of its blocks:
// interrupted calls are repeated and short transfers continued.
#ifndef STOWAGE_RUNTIME_DISK_DIRECT_FILE_H_
#define STOWAGE_RUNTIME_DISK_DIRECT_FILE_H_

#include <llvm/ADT/STLFunctionalExtras.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "ir/schedule/disk_block.h"
#include "runtime/files/file_handle.h"

namespace stowage::runtime {

struct DiskCalls;

/// Offsets in files of this room are multiples of it: disks and file systems work in such blocks.
using ir::kDiskBlock;

class DirectFile {
 public:
  /// Of `bytes`, rounded up to whole blocks. `calls` outlives the file.
  /// Errors: as DiskFile::create.
  static ir::Expected<DirectFile> create(const std::string& folder, Bytes bytes,
                                         const DiskCalls& calls);

  /// `offset` and `bytes` are multiples of kDiskBlock, `from` and `to` of `memoryAlignment`.
  /// Errors: kEnvironment with folder and offset.
  ir::Error write(int64_t offset, const uint8_t* from, int64_t bytes) const;
  ir::Error read(int64_t offset, uint8_t* to, int64_t bytes) const;
  /// Errors: kEnvironment.
  ir::Error sync() const;

  const std::string& folder() const { return folder_; }
  Bytes bytes() const { return bytes_; }
  int64_t memoryAlignment() const { return memoryAlignment_; }

 private:
  DirectFile(std::string folder, const DiskCalls& calls, int file)
      : folder_(std::move(folder)), calls_(&calls), file_(file) {}
  static ir::Expected<DirectFile> createNamed(const std::string& folder, const DiskCalls& calls);
  ir::Error findAlignment();
  ir::Error reserve(Bytes bytes);
  ir::Error transfer(const std::string& verb, int64_t offset, int64_t bytes,
                     llvm::function_ref<ssize_t(int64_t done)> call) const;

  std::string folder_;
  const DiskCalls* calls_;
  FileHandle file_;
  Bytes bytes_;
  int64_t memoryAlignment_ = kDiskBlock;
  int64_t offsetAlignment_ = kDiskBlock;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_DISK_DIRECT_FILE_H_
