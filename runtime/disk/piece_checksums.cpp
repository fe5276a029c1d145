// SPDX-License-Identifier: Apache-2.0
#include "runtime/disk/piece_checksums.h"

#include <xxhash.h>

#include <iterator>
#include <utility>

#include "ir/base/units.h"
#include "runtime/disk/direct_file.h"

namespace stowage::runtime {

namespace {

int64_t endOf(int64_t offset, int64_t bytes) {
  return offset + roundUp(Bytes(bytes), kDiskBlock).value();
}

}  // namespace

uint64_t checksumOf(const uint8_t* data, int64_t bytes) {
  return XXH3_64bits(data, static_cast<size_t>(bytes));
}

void PieceChecksums::forget(int64_t offset, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  auto first = writes_.lower_bound(offset);
  if (first != writes_.begin()) {
    const auto before = std::prev(first);
    if (endOf(before->first, before->second.bytes) > offset) first = before;
  }
  writes_.erase(first, writes_.lower_bound(endOf(offset, bytes)));
}

void PieceChecksums::keep(int64_t offset, int64_t bytes, std::vector<uint64_t> sums) {
  const std::lock_guard lock(mutex_);
  writes_[offset] = Write{.bytes = bytes, .sums = std::move(sums)};
}

PieceChecksums::Found PieceChecksums::find(int64_t offset, int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto write = writes_.find(offset);
  if (write == writes_.end())
    return {.sums = {}, .fault = "no write began there, or not all of it"};
  if (write->second.bytes != bytes) {
    return {.sums = {},
            .fault = "found a write of " + std::to_string(write->second.bytes) +
                     " bytes, expected one of the same size"};
  }
  return {.sums = write->second.sums, .fault = ""};
}

}  // namespace stowage::runtime
