// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/host_need.h"

#include <string>

namespace stowage::runtime {

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
/// Threads, libraries' own memory and first values on their way into an arena.
constexpr Bytes kBesideArenas{64 * kMiB};
/// A page of 4096 bytes has an entry of 8 in a page table.
constexpr int64_t kBytesPerTableByte = 512;

/// What of `usable` can be arenas.
Bytes roomForArenas(Bytes usable) {
  if (usable <= kBesideArenas) return {};
  const int64_t rest = (usable - kBesideArenas).value();
  return Bytes(rest - rest / (kBytesPerTableByte + 1) - 1);
}

std::string partsText(const HostNeed& need) {
  if (need.device == Bytes(0)) return "";
  return ", " + formatBytes(need.host) + " for the host arena and " + formatBytes(need.device) +
         " for the CPU's device arena";
}

}  // namespace

Bytes HostNeed::total() const {
  const Bytes arenas = host + device;
  return arenas + Bytes(arenas.value() / kBytesPerTableByte) + kBesideArenas;
}

HostNeed hostNeedOf(const ir::Schedule& schedule, ir::DeviceKind device) {
  const bool onHost = device == ir::DeviceKind::kCpu;
  return {.host = schedule.arenaBytes(ir::Space::kHost),
          .device = onHost ? schedule.arenaBytes(ir::Space::kDevice) : Bytes(0)};
}

ir::Error checkHostMemory(const HostNeed& need, const UsableMemory& usable) {
  if (need.host + need.device == Bytes(0) || need.total() <= usable.bytes) return ir::success();
  ir::PlanError error(ir::ErrorCode::kEnvironment,
                      "the plan's arenas need " + formatBytes(need.host + need.device) +
                          " of host memory" + partsText(need) + ", and " +
                          formatBytes(need.total() - need.host - need.device) +
                          " go beside them: " + usable.source);
  const std::optional<Bytes> limit = largestHostArena(need.device, usable);
  if (limit && *limit < need.host) {
    const std::string size = std::to_string(limit->value() / kMiB) + "MiB";
    error.note("plan with a host limit of at most " + size + " (--host " + size +
               ", in Python host=\"" + size +
               "\"); with a disk, what the host has no room for goes there (--disk, disk=)");
  } else if (need.device > Bytes(0)) {
    error.note("plan with a smaller budget: the CPU's device arena is host memory, too");
  }
  return ir::makeError(std::move(error));
}

std::optional<Bytes> largestHostArena(Bytes device, const UsableMemory& usable) {
  const Bytes room = roomForArenas(usable.bytes - Bytes(usable.bytes.value() / 16));
  const int64_t whole = (room - device).value() / kMiB * kMiB;
  return whole > 0 ? std::optional(Bytes(whole)) : std::nullopt;
}

}  // namespace stowage::runtime
