// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/host_state/outside_tensors.h"

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/xxhash.h>

namespace stowage::runtime {
namespace {

constexpr size_t kHashedBytes = size_t{1} << 20;

}  // namespace

uint64_t OutsideTensors::hashOf(const c10::Storage& storage) {
  const bool isHashed = storage.device_type() == c10::kCPU && storage.nbytes() <= kHashedBytes;
  if (!isHashed || storage.nbytes() == 0) return 0;
  return llvm::xxHash64(
      llvm::StringRef(static_cast<const char*>(storage.data()), storage.nbytes()));
}

void OutsideTensors::take(const std::string& name, const StorageFacts& facts) {
  // What may not stay (from_blob) was copied when the step was captured.
  if (!facts.real || facts.contents.defined()) return;
  Taken& taken = taken_[name];
  taken.storage = facts.real;
  // Tracing the step counts as writing what it writes.
  const bool isCounted = facts.version.enabled() && !facts.written;
  taken.version = isCounted ? facts.version : c10::VariableVersion(c10::VariableVersion::DISABLED);
  taken.countThen = isCounted ? facts.version.current_version() : 0;
  taken.hashThen = hashOf(facts.real);
}

ir::Error OutsideTensors::checkUnchanged() const {
  for (const auto& [name, taken] : taken_) {
    const uint32_t count = taken.version.enabled() ? taken.version.current_version() : 0;
    if (count == taken.countThen && hashOf(taken.storage) == taken.hashThen) continue;
    return ir::makeError(
        ir::ErrorCode::kPlanMismatch,
        "a tensor of " + std::to_string(taken.storage.nbytes()) +
            " bytes from outside of the step ('" + name +
            "' in the plan) was written between two steps since the plan took its values, which go "
            "on without it; give it to the loss as an input of the step, or write it inside of the "
            "step alone");
  }
  return ir::success();
}

}  // namespace stowage::runtime
