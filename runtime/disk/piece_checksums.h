// SPDX-License-Identifier: Apache-2.0
//
// What was written where, with a checksum of each piece. A write makes all earlier ones unknown
// that share a block with it. May be used by several threads at once.
#ifndef STOWAGE_RUNTIME_DISK_PIECE_CHECKSUMS_H_
#define STOWAGE_RUNTIME_DISK_PIECE_CHECKSUMS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace stowage::runtime {

/// 64 bits of xxh3. Memory may have any alignment.
uint64_t checksumOf(const uint8_t* data, int64_t bytes);

class PieceChecksums {
 public:
  struct Found {
    std::vector<uint64_t> sums;  // a piece each
    std::string fault;           // why there are none; "" if there are
  };

  /// Before a write begins.
  void forget(int64_t offset, int64_t bytes);
  /// After it ended well.
  void keep(int64_t offset, int64_t bytes, std::vector<uint64_t> sums);
  /// Those of the write that began at `offset` and had `bytes`.
  Found find(int64_t offset, int64_t bytes) const;

 private:
  struct Write {
    int64_t bytes;
    std::vector<uint64_t> sums;
  };

  mutable std::mutex mutex_;
  std::map<int64_t, Write> writes_;  // by offset; none shares a block with another
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_DISK_PIECE_CHECKSUMS_H_
