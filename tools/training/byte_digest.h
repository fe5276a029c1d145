// SPDX-License-Identifier: Apache-2.0
//
// Bytes by their length and the 128 bits of XXH3: what two trainings are compared by, because the
// state of a large model fits no second time beside it.
#ifndef STOWAGE_TOOLS_TRAINING_BYTE_DIGEST_H_
#define STOWAGE_TOOLS_TRAINING_BYTE_DIGEST_H_

#include <ATen/core/Tensor.h>
#include <llvm/ADT/ArrayRef.h>

#include <cstdint>

namespace stowage::tools {

struct ByteDigest {
  uint64_t bytes = 0;
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const ByteDigest&, const ByteDigest&) = default;
};

ByteDigest digestOf(llvm::ArrayRef<uint8_t> bytes);
/// Of its elements in row-major order, wherever it lies.
ByteDigest digestOf(const at::Tensor& tensor);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_TRAINING_BYTE_DIGEST_H_
