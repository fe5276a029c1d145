// SPDX-License-Identifier: Apache-2.0
//
// What a rank takes a collective to be. Every rank sends it before its bytes, so that ranks that
// are not at the same point find out instead of reading each other's bytes as something else.
#ifndef STOWAGE_RUNTIME_RANKS_COLLECTIVE_H_
#define STOWAGE_RUNTIME_RANKS_COLLECTIVE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace stowage::runtime {

enum class CollectiveKind : uint32_t {
  kAllGather = 1,
  kAllToAll = 2,
  kGiveUp = 3  // no collective: the rank ends, and its bytes say why
};

struct Collective {
  CollectiveKind kind = CollectiveKind::kAllGather;
  int64_t number = 0;  // counts all collectives of a communicator
  int64_t bytes = 0;   // that go from one rank to one other

  bool operator==(const Collective&) const = default;
};

/// "collective 17 (all_gather of 4096 bytes a rank)"
std::string collectiveText(const Collective& collective);

constexpr size_t kCollectiveBytes = 24;
using CollectiveHead = std::array<uint8_t, kCollectiveBytes>;

/// Little endian, whatever the machine.
CollectiveHead writeHead(const Collective& collective);
/// Nothing for bytes that no rank of this version sends.
std::optional<Collective> readHead(const CollectiveHead& head);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RANKS_COLLECTIVE_H_
