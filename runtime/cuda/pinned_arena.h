// SPDX-License-Identifier: Apache-2.0
//
// The host arena of a CUDA device: one range of pinned host memory of exactly the bytes asked for,
// in whole pages of 4096 bytes, returned when the object goes. Huge pages lie within it: they never
// make it larger.
#ifndef STOWAGE_RUNTIME_CUDA_PINNED_ARENA_H_
#define STOWAGE_RUNTIME_CUDA_PINNED_ARENA_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "ir/base/error.h"
#include "ir/base/units.h"

namespace stowage::runtime {

/// Host memory that copy engines read and write while the host does other things. Its pages are
/// made by several threads before they are pinned, which is where the time goes. On a machine of
/// several NUMA nodes they come from the GPU's, as long as it has free ones.
class PinnedArena {
 public:
  using Report = std::function<void(Bytes done, Bytes all)>;

  /// `report` (may be empty) is called from the calling thread while pages are made. `most`:
  /// addresses to keep for `grow`; as many as there are, if fewer. Errors: kOutOfDeviceMemory with
  /// the bytes and what refused them.
  static ir::Expected<PinnedArena> allocate(Bytes bytes, const Report& report, Bytes most = {});
  /// At the same base, with what it holds. Errors: as `allocate`, also for more than `most`; then
  /// it is as before, or of no use if its own bytes cannot be pinned again.
  ir::Error grow(Bytes bytes, const Report& report);
  PinnedArena(PinnedArena&& other) noexcept;
  PinnedArena& operator=(PinnedArena&&) = delete;
  ~PinnedArena();

  uint8_t* base() const { return base_; }
  Bytes bytes() const { return bytes_; }

 private:
  PinnedArena(uint8_t* base, Bytes most) : base_(base), most_(most) {}
  ir::Error pin(Bytes bytes);
  uint8_t* base_;  // null: no bytes
  Bytes most_;     // addresses that it has
  Bytes bytes_;
  bool pinned_ = false;      // known to the driver
  std::optional<int> node_;  // on which threads make pages, where the kernel refuses policies
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_PINNED_ARENA_H_
