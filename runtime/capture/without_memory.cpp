// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/without_memory.h"

#include <c10/util/Exception.h>

#include "runtime/capture/construction.h"

namespace stowage::runtime {

namespace {
std::shared_ptr<Construction> beginConstruction() {
  TORCH_CHECK(!TracingScope::isOnThisThread(),
              "a WithoutMemory scope is open on this thread (or a step is being traced), expected "
              "one at a time");
  return Construction::create();
}
}  // namespace

struct WithoutMemory::Impl {
  std::shared_ptr<Construction> construction = beginConstruction();
  TracingScope scope{construction->tracer()};
};

WithoutMemory::WithoutMemory() : impl_(std::make_unique<Impl>()) {}
WithoutMemory::~WithoutMemory() = default;

}  // namespace stowage::runtime
