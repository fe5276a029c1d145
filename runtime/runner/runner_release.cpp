// SPDX-License-Identifier: Apache-2.0
//
// Between two steps, the device arena's memory goes back to the system for a while.
#include <utility>

#include "runtime/memory/arena_spans.h"
#include "runtime/memory/canary.h"
#include "runtime/runner/runner_impl.h"

namespace stowage::runtime {

ir::Error Runner::Impl::checkNotReleased() {
  if (!home().released) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "the memory of the device arena was released: call restore() before");
}

std::vector<ir::ByteRange> Runner::Impl::stateOnDevice() const {
  std::vector<ir::ByteRange> spans =
      stateSpans(plan.graph, plan.schedule, plan.target, ir::Space::kDevice);
  if (!shared) return spans;
  const std::vector<ir::ByteRange> beside = shared->besidePlan();
  spans.insert(spans.end(), beside.begin(), beside.end());
  return mergeSpans(std::move(spans));
}

ir::Expected<ArenaCopy> Runner::release() {
  if (impl_->main != nullptr) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "found release() of a further runner, expected it of the main one, whose "
                         "device arena it is");
  }
  if (ir::Error error = impl_->checkOpen()) return error;
  // The main plan's turn, so that further runners may go while there is no memory.
  if (ir::Error error = impl_->enter()) return error;
  if (ir::Error error = impl_->executor->finish()) return error;
  ir::Expected<ArenaCopy> copied = impl_->device->release(impl_->stateOnDevice());
  impl_->released = static_cast<bool>(copied);
  return copied;
}

ir::Expected<ArenaCopy> Runner::restore() {
  if (!isReleased()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "found restore() of a device arena that is there, expected release() "
                         "before it");
  }
  ir::Expected<ArenaCopy> copied = impl_->device->restore(canaryPattern());
  impl_->home().released = !copied;
  return copied;
}

bool Runner::isReleased() const { return impl_->home().released; }

}  // namespace stowage::runtime
