// SPDX-License-Identifier: Apache-2.0
#include "ir/schedule/target.h"

namespace stowage::ir {

const char* deviceKindName(DeviceKind kind) { return kind == DeviceKind::kCuda ? "cuda" : "cpu"; }

std::optional<DeviceKind> findDeviceKind(llvm::StringRef name) {
  if (name == "cpu") return DeviceKind::kCpu;
  if (name == "cuda") return DeviceKind::kCuda;
  return std::nullopt;
}

}  // namespace stowage::ir
