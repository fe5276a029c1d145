// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a tensor and those of its shards (ir::Storage::shardOf). Shards are of one size; the
// last ones reach beyond the tensor's end, where they are zero when steps begin and where nothing
// is kept.
#ifndef STOWAGE_RUNTIME_RANKS_SHARD_BYTES_H_
#define STOWAGE_RUNTIME_RANKS_SHARD_BYTES_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <vector>

#include "ir/base/error.h"
#include "runtime/ranks/communicator.h"

namespace stowage::runtime {

/// Fills `shard`, which is that of `rank`.
void cutShard(llvm::ArrayRef<uint8_t> whole, int32_t rank, llvm::MutableArrayRef<uint8_t> shard);

/// Every rank's shard, of equal size, into the whole tensor on every rank: a collective.
/// Errors: as Communicator::allGather.
ir::Error joinShards(Communicator& ranks, llvm::ArrayRef<uint8_t> shard,
                     llvm::MutableArrayRef<uint8_t> whole);

/// By rank, what each one has; of equal size. Errors: as Communicator::allGather.
ir::Expected<std::vector<std::vector<uint8_t>>> gatherEach(Communicator& ranks,
                                                           llvm::ArrayRef<uint8_t> own);

/// What rank 0 has; what others have need not be as long. Errors: as Communicator::allGather.
ir::Expected<std::vector<uint8_t>> takeFromFirst(Communicator& ranks, llvm::ArrayRef<uint8_t> own);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RANKS_SHARD_BYTES_H_
