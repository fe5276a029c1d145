// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/mapped_arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

namespace stowage::runtime {
namespace {

ir::Error failed(const char* step, Bytes bytes, const std::string& what) {
  return ir::makeError(ir::ErrorCode::kOutOfDeviceMemory,
                       "could not " + std::string(step) + " " + formatBytes(bytes) + " (" +
                           std::to_string(bytes.value()) + " bytes) for " + what + ": " +
                           std::strerror(errno));
}

}  // namespace

// Reserves room for fences and alignment without access, then opens the arena's own pages. What
// lies between the arena's last byte and the end of its last page cannot be fenced.
ir::Expected<MappedArena> MappedArena::map(Bytes bytes, const std::string& what, Bytes most) {
  const auto reserve = [](int64_t open) {
    const auto mapped = static_cast<size_t>(open + 2 * kArenaAlignment);
    void* mapping =
        mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return std::pair(mapping, mapped);
  };
  const int64_t page = sysconf(_SC_PAGESIZE);
  auto [mapping, mapped] = reserve(roundUp(std::max(bytes, most), page).value());
  if (mapping == MAP_FAILED) {
    std::tie(mapping, mapped) = reserve(roundUp(bytes, page).value());
  }
  if (mapping == MAP_FAILED) return failed("reserve", bytes, what);
  // At least one page stays closed on either side.
  const auto alignment = static_cast<uintptr_t>(kArenaAlignment);
  const uintptr_t past =
      (reinterpret_cast<uintptr_t>(mapping) + static_cast<uintptr_t>(page)) % alignment;
  uint8_t* base = static_cast<uint8_t*>(mapping) + page + (past == 0 ? 0 : alignment - past);
  MappedArena arena(mapping, mapped, base);
  if (ir::Error error = arena.grow(bytes, what)) return error;
  return arena;
}

ir::Error MappedArena::grow(Bytes bytes, const std::string& what) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t open = roundUp(bytes_, page).value();
  const int64_t wanted = roundUp(bytes, page).value();
  const auto before = static_cast<size_t>(base_ - static_cast<uint8_t*>(mapping_));
  if (before + static_cast<size_t>(wanted + page) > mapped_) {
    errno = ENOMEM;
    return failed("keep addresses for", bytes, what);
  }
  if (wanted > open &&
      mmap(base_ + open, static_cast<size_t>(wanted - open), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0) == MAP_FAILED) {
    return failed("map", bytes, what);
  }
  bytes_ = std::max(bytes_, bytes);
  return ir::success();
}

// Pages of a new mapping over the old one, which go back; not counted as memory while closed.
ir::Error MappedArena::release(const std::string& what) {
  const auto open = static_cast<size_t>(roundUp(bytes_, sysconf(_SC_PAGESIZE)).value());
  if (open > 0 &&
      mmap(base_, open, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
    return failed("release", bytes_, what);
  }
  return ir::success();
}

// Not by a mapping over it: one that is refused may leave a hole for others to map into.
ir::Error MappedArena::restore(const std::string& what) {
  const auto open = static_cast<size_t>(roundUp(bytes_, sysconf(_SC_PAGESIZE)).value());
  if (mprotect(base_, open, PROT_READ | PROT_WRITE) != 0) return failed("restore", bytes_, what);
  (void)madvise(base_, open, MADV_POPULATE_WRITE);  // Linux 5.14; else when they are touched
  return ir::success();
}

MappedArena::MappedArena(MappedArena&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_(std::exchange(other.mapped_, 0)),
      base_(std::exchange(other.base_, nullptr)),
      bytes_(std::exchange(other.bytes_, Bytes(0))) {}

MappedArena& MappedArena::operator=(MappedArena&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedArena::~MappedArena() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

}  // namespace stowage::runtime
