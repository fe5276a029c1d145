// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/step_allocator.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace stowage::runtime {

StepAllocator::StepAllocator(uint8_t* base, Bytes arena, int64_t unit)
    : base_(base), arena_(arena), unit_(unit), low_(unit), high_(unit) {}

void StepAllocator::beginLaunch(const LaunchPlacement& placement, std::string op) {
  const std::lock_guard<std::mutex> lock(mutex_);
  assert(launch_ == nullptr && "a launch inside a launch");
  launch_ = &placement;
  op_ = std::move(op);
  nextOrdinal_ = 0;
  resultsServed_ = 0;
  note(placement.operandsEnd);
  low_ = FirstFit(unit_);
  high_ = FirstFit(unit_);
  refused_.reset();
}

ir::Error StepAllocator::endLaunch() {
  const std::lock_guard<std::mutex> lock(mutex_);
  assert(launch_ != nullptr && "the end of no launch");
  const LaunchPlacement& launch = *std::exchange(launch_, nullptr);
  if (refused_) return ir::makeError(*std::exchange(refused_, std::nullopt));
  if (resultsServed_ != launch.results.size()) {
    return ir::makeError(ir::ErrorCode::kPlanMismatch,
                         op_ + " made " + std::to_string(resultsServed_) +
                             " of the results that its " + std::to_string(nextOrdinal_) +
                             " allocations were expected to hold, expected " +
                             std::to_string(launch.results.size()));
  }
  const Bytes kept = low_.bytesInUse() + high_.bytesInUse();
  if (kept.value() == 0) return ir::success();
  return ir::makeError(
      ir::ErrorCode::kPlanMismatch,
      op_ + " keeps " + std::to_string(kept.value()) + " bytes of temporaries after its call");
}

uint8_t* StepAllocator::allocate(Bytes bytes, AllocatingThread thread) {
  const std::lock_guard<std::mutex> lock(mutex_);
  assert(launch_ != nullptr && "an allocation outside a launch");
  if (thread == AllocatingThread::kMain) {
    const int32_t ordinal = nextOrdinal_++;
    const auto* found =
        std::find_if(launch_->results.begin(), launch_->results.end(),
                     [&](const LaunchPlacement::Result& r) { return r.ordinal == ordinal; });
    if (found != launch_->results.end()) return serveResult(*found, bytes);
  }
  return serveTemporary(bytes, thread);
}

uint8_t* StepAllocator::serveResult(const LaunchPlacement::Result& result, Bytes bytes) {
  if (bytes != result.bytes) {
    return refuse(ir::ErrorCode::kPlanMismatch,
                  op_ + " asks for " + std::to_string(bytes.value()) + " bytes in allocation " +
                      std::to_string(result.ordinal) + ", expected a result of " +
                      std::to_string(result.bytes.value()));
  }
  ++resultsServed_;
  note(result.offset + roundUp(bytes, unit_).value());
  return base_ + result.offset;
}

uint8_t* StepAllocator::serveTemporary(Bytes bytes, AllocatingThread thread) {
  const bool fromBelow = thread == AllocatingThread::kMain;
  FirstFit& own = fromBelow ? low_ : high_;
  const FirstFit& other = fromBelow ? high_ : low_;
  const Bytes limit = launch_->tempBytes - other.top();
  const std::optional<int64_t> offset = own.take(bytes, limit);
  if (!offset) {
    const Bytes used = low_.bytesInUse() + high_.bytesInUse();
    return refuse(ir::ErrorCode::kOutOfDeviceMemory,
                  op_ + " asks for " + std::to_string(bytes.value()) +
                      " bytes of temporaries with " + std::to_string(used.value()) +
                      " in use, its temp region has " + std::to_string(launch_->tempBytes.value()));
  }
  const int64_t size = std::max(roundUp(bytes, unit_).value(), unit_);
  const int64_t place =
      launch_->tempOffset + (fromBelow ? *offset : launch_->tempBytes.value() - *offset - size);
  note(place + size);
  return base_ + place;
}

// The first refusal is the cause, others follow from it.
uint8_t* StepAllocator::refuse(ir::ErrorCode code, std::string what) {
  if (!refused_) refused_.emplace(code, std::move(what));
  return nullptr;
}

void StepAllocator::release(uint8_t* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (launch_ == nullptr) return;
  const int64_t offset = address - base_ - launch_->tempOffset;
  if (low_.release(offset)) return;
  high_.releaseEndingAt(launch_->tempBytes.value() - offset);
}

Bytes StepAllocator::servedPeak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Bytes(served_);
}

bool StepAllocator::owns(const void* address) const {
  const auto* byte = static_cast<const uint8_t*>(address);
  return byte >= base_ && byte < base_ + arena_.value();
}

}  // namespace stowage::runtime
