// SPDX-License-Identifier: Apache-2.0
#include "runtime/ranks/shard_bytes.h"

#include <algorithm>
#include <cstring>

namespace stowage::runtime {

void cutShard(llvm::ArrayRef<uint8_t> whole, int32_t rank, llvm::MutableArrayRef<uint8_t> shard) {
  const size_t begin = std::min(whole.size(), static_cast<size_t>(rank) * shard.size());
  const size_t there = std::min(whole.size() - begin, shard.size());
  std::copy_n(whole.begin() + begin, there, shard.begin());
  std::fill(shard.begin() + there, shard.end(), uint8_t{0});
}

ir::Error joinShards(Communicator& ranks, llvm::ArrayRef<uint8_t> shard,
                     llvm::MutableArrayRef<uint8_t> whole) {
  std::vector<uint8_t> all(shard.size() * static_cast<size_t>(ranks.count()));
  if (ir::Error error = ranks.allGather(shard, all)) return error;
  if (all.size() < whole.size()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "found shards of " + std::to_string(all.size()) +
                             " bytes together, expected at least " + std::to_string(whole.size()));
  }
  std::copy_n(all.begin(), whole.size(), whole.begin());
  return ir::success();
}

ir::Expected<std::vector<std::vector<uint8_t>>> gatherEach(Communicator& ranks,
                                                           llvm::ArrayRef<uint8_t> own) {
  std::vector<uint8_t> all(own.size() * static_cast<size_t>(ranks.count()));
  if (ir::Error error = ranks.allGather(own, all)) return error;
  std::vector<std::vector<uint8_t>> each;
  for (size_t i = 0; i < static_cast<size_t>(ranks.count()); ++i) {
    const llvm::ArrayRef<uint8_t> theirs =
        llvm::ArrayRef<uint8_t>(all).slice(i * own.size(), own.size());
    each.emplace_back(theirs.begin(), theirs.end());
  }
  return each;
}

ir::Expected<std::vector<uint8_t>> takeFromFirst(Communicator& ranks, llvm::ArrayRef<uint8_t> own) {
  const auto length = static_cast<uint64_t>(own.size());
  ir::Expected<std::vector<std::vector<uint8_t>>> lengths =
      gatherEach(ranks, {reinterpret_cast<const uint8_t*>(&length), sizeof(length)});
  if (!lengths) return lengths.takeError();
  uint64_t first = 0;
  std::memcpy(&first, lengths->front().data(), sizeof(first));
  std::vector<uint8_t> said(first);
  if (ranks.rank() == 0) std::copy(own.begin(), own.end(), said.begin());
  ir::Expected<std::vector<std::vector<uint8_t>>> each = gatherEach(ranks, said);
  if (!each) return each.takeError();
  return std::move(each->front());
}

}  // namespace stowage::runtime
