// SPDX-License-Identifier: Apache-2.0
//
// One block of memory of exactly so many bytes, in place from the start (no page is fetched later)
// and fenced: the pages before and behind it cannot be touched. It is what the CPU device calls its
// device memory and its host memory. Its base is a multiple of 2 MiB, as large device allocations
// are.
#ifndef STOWAGE_RUNTIME_MEMORY_MAPPED_ARENA_H_
#define STOWAGE_RUNTIME_MEMORY_MAPPED_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "ir/base/error.h"
#include "ir/base/units.h"

namespace stowage::runtime {

inline constexpr int64_t kArenaAlignment = int64_t{2} << 20;

class MappedArena {
 public:
  /// `what` names the arena in messages. `most`: addresses to keep for `grow`; as many as there
  /// are, if fewer. Errors: kOutOfDeviceMemory with the bytes asked for.
  static ir::Expected<MappedArena> map(Bytes bytes, const std::string& what, Bytes most = {});
  /// At the same base, with what it holds. Errors: as `map`, also for more than `most`.
  ir::Error grow(Bytes bytes, const std::string& what);
  /// Gives the pages back and keeps the addresses, which cannot be touched until `restore`. Errors:
  /// kOutOfDeviceMemory, when the system has no room to note it.
  ir::Error release(const std::string& what);
  /// After `release`: pages of zeros at the same base. Errors: as `map`; can be tried again.
  ir::Error restore(const std::string& what);
  MappedArena(MappedArena&& other) noexcept;
  MappedArena& operator=(MappedArena&& other) noexcept;
  ~MappedArena();

  uint8_t* base() const { return base_; }
  Bytes bytes() const { return bytes_; }

 private:
  MappedArena(void* mapping, size_t mapped, uint8_t* base)
      : mapping_(mapping), mapped_(mapped), base_(base) {}

  void* mapping_ = nullptr;  // the whole reservation
  size_t mapped_ = 0;
  uint8_t* base_ = nullptr;
  Bytes bytes_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_MEMORY_MAPPED_ARENA_H_
