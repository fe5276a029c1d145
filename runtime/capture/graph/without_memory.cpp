// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/graph/without_memory.h"

#include "runtime/capture/graph/construction.h"

namespace stowage::runtime {

struct WithoutMemory::Impl {
  std::shared_ptr<Construction> construction = Construction::create();
  TracingScope scope{construction->tracer()};
};

WithoutMemory::WithoutMemory() : impl_(std::make_unique<Impl>()) {}
WithoutMemory::~WithoutMemory() = default;

}  // namespace stowage::runtime
