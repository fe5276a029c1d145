// SPDX-License-Identifier: Apache-2.0
//
// Digests of bytes: their length and the 128 bits of XXH3. Two trainings are compared by them,
// because memory does not hold the state of a large model twice.
#ifndef STOWAGE_RUNTIME_TRAINING_BYTE_DIGEST_H_
#define STOWAGE_RUNTIME_TRAINING_BYTE_DIGEST_H_

#include <ATen/core/Tensor.h>
#include <llvm/ADT/ArrayRef.h>

#include <cstdint>

namespace stowage::runtime {

struct ByteDigest {
  uint64_t bytes = 0;
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const ByteDigest&, const ByteDigest&) = default;
};

ByteDigest digestOf(llvm::ArrayRef<uint8_t> bytes);
/// Of its elements in row-major order, wherever it lies.
ByteDigest digestOf(const at::Tensor& tensor);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TRAINING_BYTE_DIGEST_H_
