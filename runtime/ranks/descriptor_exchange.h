// SPDX-License-Identifier: Apache-2.0
//
// File descriptors of memory, passed between ranks that are processes of one host: with another
// rank's descriptor, a rank can map that rank's device memory.
#ifndef STOWAGE_RUNTIME_RANKS_DESCRIPTOR_EXCHANGE_H_
#define STOWAGE_RUNTIME_RANKS_DESCRIPTOR_EXCHANGE_H_

#include <llvm/ADT/ArrayRef.h>
#include <unistd.h>

#include <optional>
#include <utility>
#include <vector>

#include "ir/base/error.h"
#include "runtime/ranks/communicator.h"

namespace stowage::runtime {

/// Closes what it holds.
class Descriptor {
 public:
  explicit Descriptor(int descriptor = -1) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor() {
    if (isValid()) ::close(descriptor_);
  }
  int get() const { return descriptor_; }
  bool isValid() const { return descriptor_ >= 0; }
  /// The caller closes it.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

/// [rank][i]: descriptor i of that rank.
using RankDescriptors = std::vector<std::vector<Descriptor>>;

/// Every rank gives `own` descriptors, as many on all ranks and at most 253 (Linux's limit for a
/// message). Returns those of every other rank, and none for this rank. All are close-on-exec.
/// nullopt on all ranks if any rank lacks some: ranks are on several hosts, in several network
/// namespaces, or of several users; a descriptor is invalid; a limit of the system is reached.
/// Waits for other ranks only in collectives; all ranks call it at the same point.
/// Errors: as Communicator::allGather.
ir::Expected<std::optional<RankDescriptors>> exchangeDescriptors(Communicator& between,
                                                                 llvm::ArrayRef<int> own);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RANKS_DESCRIPTOR_EXCHANGE_H_
