// SPDX-License-Identifier: Apache-2.0
#include "runtime/ranks/collective.h"

#include <llvm/Support/Endian.h>

namespace stowage::runtime {

namespace {

namespace endian = llvm::support::endian;

constexpr uint32_t kMark = 0x57545331;  // changes with the form of the head

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
  endian::write32le(head.data(), kMark);
  endian::write32le(head.data() + 4, static_cast<uint32_t>(collective.kind));
  endian::write64le(head.data() + 8, static_cast<uint64_t>(collective.number));
  endian::write64le(head.data() + 16, static_cast<uint64_t>(collective.bytes));
  return head;
}

std::optional<Collective> readHead(const CollectiveHead& head) {
  const uint32_t kind = endian::read32le(head.data() + 4);
  const auto number = static_cast<int64_t>(endian::read64le(head.data() + 8));
  const auto bytes = static_cast<int64_t>(endian::read64le(head.data() + 16));
  const bool isKind = kind >= static_cast<uint32_t>(CollectiveKind::kAllGather) &&
                      kind <= static_cast<uint32_t>(CollectiveKind::kGiveUp);
  const bool isMarked = endian::read32le(head.data()) == kMark;
  if (!isMarked || !isKind || number < 0 || bytes < 0) return std::nullopt;
  return Collective{.kind = static_cast<CollectiveKind>(kind), .number = number, .bytes = bytes};
}

}  // namespace stowage::runtime
