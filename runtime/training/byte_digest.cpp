// SPDX-License-Identifier: Apache-2.0
#include "runtime/training/byte_digest.h"

#include <xxhash.h>

namespace stowage::runtime {

ByteDigest digestOf(llvm::ArrayRef<uint8_t> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {.bytes = bytes.size(), .low = hash.low64, .high = hash.high64};
}

ByteDigest digestOf(const at::Tensor& tensor) {
  const at::Tensor own = tensor.detach().cpu().contiguous();
  return digestOf(
      llvm::ArrayRef<uint8_t>(static_cast<const uint8_t*>(own.const_data_ptr()), own.nbytes()));
}

}  // namespace stowage::runtime
