// SPDX-License-Identifier: Apache-2.0
#include "runtime/ranks/collective.h"

namespace stowage::runtime {

namespace {

constexpr uint32_t kMark = 0x57545331;  // changes with the form of the head

template <typename Number>
void put(CollectiveHead& head, size_t at, Number value) {
  for (size_t i = 0; i < sizeof(Number); ++i) {
    head[at + i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
  }
}

uint64_t take(const CollectiveHead& head, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(head[at + i]) << (8 * i);
  return value;
}

}  // namespace

std::string collectiveText(const Collective& collective) {
  std::string number = "collective " + std::to_string(collective.number);
  if (collective.kind == CollectiveKind::kGiveUp) return number + " (none: it gives up)";
  const bool isGather = collective.kind == CollectiveKind::kAllGather;
  return number + " (" + (isGather ? "all_gather" : "all_to_all") + " of " +
         std::to_string(collective.bytes) + " bytes a rank)";
}

CollectiveHead writeHead(const Collective& collective) {
  CollectiveHead head{};
  put(head, 0, kMark);
  put(head, 4, static_cast<uint32_t>(collective.kind));
  put(head, 8, collective.number);
  put(head, 16, collective.bytes);
  return head;
}

std::optional<Collective> readHead(const CollectiveHead& head) {
  const uint64_t kind = take(head, 4, 4);
  const auto number = static_cast<int64_t>(take(head, 8, 8));
  const auto bytes = static_cast<int64_t>(take(head, 16, 8));
  const bool isKind = kind >= static_cast<uint64_t>(CollectiveKind::kAllGather) &&
                      kind <= static_cast<uint64_t>(CollectiveKind::kGiveUp);
  if (take(head, 0, 4) != kMark || !isKind || number < 0 || bytes < 0) return std::nullopt;
  return Collective{.kind = static_cast<CollectiveKind>(kind), .number = number, .bytes = bytes};
}

}  // namespace stowage::runtime
