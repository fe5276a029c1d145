// SPDX-License-Identifier: Apache-2.0
//
// The machine a plan is for: alignment, memory, peak rates of kernels and links, and the libraries
// that choose its kernels. A plan carries the target's identity. A run on another machine is
// refused (V3), because bits or sizes could differ. Profiles of common devices: planner/profiles/.
// Measured costs replace the rates, never the identity.
#ifndef STOWAGE_IR_SCHEDULE_TARGET_H_
#define STOWAGE_IR_SCHEDULE_TARGET_H_

#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/units.h"
#include "ir/graph/type.h"

namespace stowage::ir {

enum class DeviceKind : uint8_t { kCpu, kCuda };
const char* deviceKindName(DeviceKind kind);  // "cpu", "cuda"
std::optional<DeviceKind> findDeviceKind(llvm::StringRef name);

/// One direction of a link: time of a copy = latency + bytes / bandwidth.
struct LinkRate {
  BytesPerSecond bandwidth{1};
  Nanoseconds latency{0};
};

/// Copy engines and the link between ranks, which run beside each other, beside compute, and beside
/// updates on the host. `launch`: the launch overhead of a copy, with the events before and after
/// it.
struct LinkModel {
  LinkRate deviceToHost;
  LinkRate hostToDevice;
  LinkRate diskRead;
  LinkRate diskWrite;
  // What part of its own rate an engine keeps while another one runs; 1000: all of it.
  int bothPermille = 1000;        // either direction between device and host, beside the other
  int diskBothPermille = 1000;    // disk reads and disk writes, beside the other
  int besideHostPermille = 1000;  // host to device, beside an update on the host
  /// Bytes that updates on the host read and write, beside copies both ways; 0: not known.
  BytesPerSecond hostUpdates{0};
  Nanoseconds launch{0};
  /// What a rank receives from all others together, while all ranks are at it. 0: not known.
  LinkRate betweenRanks{.bandwidth = BytesPerSecond(0)};
  int besideRanksPermille = 1000;  // compute, beside a collective
};

/// Memory that libraries keep on the device for themselves while steps run; part of the budget.
struct ReservedRegion {
  std::string what;  // "cublas", "cublaslt"
  int stream = 0;
  Bytes offset;  // in the device arena; set by placement
  Bytes bytes;
  friend bool operator==(const ReservedRegion&, const ReservedRegion&) = default;
};

struct Target {
  std::string profile;  // "h200", "cpu", ...
  DeviceKind device = DeviceKind::kCpu;
  int64_t alignBytes = 512;   // every storage base is a multiple of this; a power of two
  int intraOpThreads = 0;     // CPU: fixed per plan; 0 on CUDA
  bool deterministic = true;  // deterministic algorithms are on in capture, run and reference alike
  std::vector<std::pair<std::string, std::string>> libraries;  // name, version; sorted by name
  std::vector<ReservedRegion> reserved;  // sizes only; they select kernels and so bits

  // What follows is used for estimates and checks of size, and is no part of the identity.
  Bytes memory;   // of the device
  Bytes outside;  // of it, what a process takes beside its arena: context, kernels, libraries
  std::vector<std::pair<DType, int64_t>> flopsPerSecond;  // dense matrix work by dtype
  BytesPerSecond memoryBandwidth{1};
  Nanoseconds kernelOverhead{0};  // on the device, added to each kernel of the roofline estimate
  LinkModel links;

  // Choices that libraries make by device; capture pins them.
  int computeCapability = 0;  // 90 for sm_90; 0 on CPU
  int cudnnVersion = 0;       // 91900 for 9.19; 0: none
};

}  // namespace stowage::ir

#endif  // STOWAGE_IR_SCHEDULE_TARGET_H_
