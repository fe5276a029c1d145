// SPDX-License-Identifier: Apache-2.0
//
// The file of the disk tier: one nameless file on a disk, reserved as a whole before the first
// step, to which tensors in host memory are written and from which they are read back. The page
// cache is not used. Nothing is left of it, also when the process is killed.
//
// Each transfer is cut into pieces, which threads move at the same time:
//
//   write(0, data, 10 MiB)   [0, 4 MiB)  [4 MiB, 8 MiB)  [8 MiB, 10 MiB)    one request each
//
// The caller waits until all pieces are moved. It decides who uses which range; this class does
// not.
#ifndef STOWAGE_RUNTIME_DISK_DISK_FILE_H_
#define STOWAGE_RUNTIME_DISK_DISK_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "runtime/disk/direct_file.h"
#include "runtime/disk/piece_checksums.h"
#include "runtime/disk/piece_pool.h"

namespace stowage::runtime {

struct DiskFileOptions {
  Bytes piece{int64_t{4} << 20};     // moved by one request; a multiple of kDiskBlock
  int threads = 8;                   // of each direction: requests in flight
  bool verify = false;               // compare a checksum of each piece when it is read
  const DiskCalls* calls = nullptr;  // null: the system's. Tests make calls fail
};

class DiskFile {
 public:
  /// Reserves `bytes`, rounded up to whole blocks of kDiskBlock.
  /// Errors: kInvalidArgument for wrong options and for what is no folder; kEnvironment for memory
  /// (tmpfs), for a file system without O_DIRECT, and with the free bytes if there are too few.
  static ir::Expected<std::unique_ptr<DiskFile>> create(const std::string& folder, Bytes bytes,
                                                        const DiskFileOptions& options = {});

  /// `offset` is a multiple of kDiskBlock; `bytes` and the address of `data` are any. The bytes up
  /// to the end of the last block become zeros; those after it stay. Several threads may write and
  /// read disjoint blocks at the same time. Memory that the file cannot take as it is costs a copy
  /// on the host (`memoryAlignment`).
  /// Errors: kInvalidArgument for a range outside the file, kEnvironment with folder and offset
  /// when the disk fails. The range then holds anything; others are as they were.
  ir::Error write(int64_t offset, const void* data, int64_t bytes);
  /// As `write`; after an error `data` holds anything. With `verify`, the range must have start and
  /// size of an earlier write: others, and ranges never written whole or partly overwritten since,
  /// are kInvalidArgument. Bytes other than those written are kEnvironment.
  ir::Error read(int64_t offset, void* data, int64_t bytes);
  /// Returns when the disk says that what was written is on it. Reads do not need it.
  /// Errors: kEnvironment.
  ir::Error sync() { return file_.sync(); }

  Bytes bytes() const { return file_.bytes(); }
  /// Memory at multiples of this moves without a copy on the host, except the last partial block.
  int64_t memoryAlignment() const { return file_.memoryAlignment(); }

 private:
  struct FreeMemory {
    void operator()(uint8_t* memory) const;
  };
  /// The threads of one direction, and memory to copy through for each.
  struct Lane {
    std::unique_ptr<uint8_t, FreeMemory> stages;
    PiecePool pool;
  };
  struct Piece {
    int64_t begin;  // in the transfer
    int64_t bytes;
  };

  DiskFile(DirectFile file, const DiskFileOptions& options);
  ir::Error allocateStages();
  ir::Error checkRange(const std::string& verb, int64_t offset, int64_t bytes) const;
  int64_t countPieces(int64_t bytes) const;
  Piece pieceAt(int64_t index, int64_t bytes) const;
  int64_t directBytes(const uint8_t* memory, int64_t bytes) const;
  ir::Error writePiece(int64_t offset, const uint8_t* from, int64_t bytes, uint8_t* stage) const;
  ir::Error readPiece(int64_t offset, uint8_t* to, int64_t bytes, uint8_t* stage) const;

  DirectFile file_;
  DiskFileOptions options_;
  PieceChecksums checksums_;  // used with `verify` alone
  Lane writers_;
  Lane readers_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_DISK_DISK_FILE_H_
