// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "runtime/capture/capture.h"
#include "runtime/capture/captured_step_impl.h"
#include "runtime/torch_boundary.h"

namespace stowage::runtime {

CapturedStep::CapturedStep(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

CapturedStep::~CapturedStep() {
  if (!impl_->stored) impl_->moduleTensors.swapOut();
}

CapturedStep::Impl& CapturedStep::internals() { return *impl_; }

const ir::Graph& CapturedStep::graph() const { return impl_->assembled.graph; }

}  // namespace stowage::runtime
