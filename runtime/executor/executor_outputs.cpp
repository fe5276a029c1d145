// SPDX-License-Identifier: Apache-2.0
//
// What leaves a step: outputs on their way to the caller, and to a feed that compares the step with
// its code before the updates.
#include <string>
#include <utility>

#include "runtime/executor/executor.h"

namespace stowage::runtime {

// What the step does not write is the same all through it.
ir::Error Executor::readUnwrittenOutputs() {
  for (size_t k = 0; k < plan_.outputs.size(); ++k) {
    const OutputPort& port = plan_.outputs[k];
    if (port.writer.isValid()) continue;
    auto& bytes = outputs_[static_cast<size_t>(nextStep_ % 2)][k];
    if (ir::Error error = device_.read(ir::Space::kHost, port.hostOffset, bytes)) return error;
  }
  return ir::success();
}

ir::Error Executor::deliver(const EnqueueRecord& record) {
  const auto k = static_cast<size_t>(record.output);
  const Delivery delivery{record.stream, plan_.outputs[k].hostOffset,
                          outputs_[static_cast<size_t>(nextStep_ % 2)][k]};
  return program_->deliver(delivery);
}

bool Executor::comesBeforeUpdates(ir::StorageId output) const {
  const int32_t position = plan_.findOutput(output);
  if (position < 0) return false;
  const ir::CommandId writer = plan_.outputs[static_cast<size_t>(position)].writer;
  // Inputs follow a graph's launch on their stream.
  if (!writer.isValid()) return source_.schedule.graphMode == ir::GraphMode::kNone;
  const bool isWhole = source_.schedule.graphMode == ir::GraphMode::kWhole;
  return !isWhole && writer.index() < plan_.firstUpdate;
}

// Values that are delivered by the first `enqueued` commands are waited for; others come too late.
ir::Error Executor::tellFeed(size_t enqueued) {
  for (size_t k = 0; k < wantedOutputs_.size(); ++k) {
    const int32_t output = wantedOutputs_[k];
    const OutputPort* port = output < 0 ? nullptr : &plan_.outputs[static_cast<size_t>(output)];
    const bool comes =
        port != nullptr && (!port->writer.isValid() || port->writer.index() < enqueued);
    if (!comes) {
      source_.feed->tell(k, std::nullopt);
      continue;
    }
    if (port->event >= 0) {
      if (ir::Error error = program_->waitOnHost({port->event, passOf(nextStep_)})) return error;
    }
    source_.feed->tell(
        k, llvm::ArrayRef<uint8_t>(
               outputs_[static_cast<size_t>(nextStep_ % 2)][static_cast<size_t>(output)]));
  }
  return ir::success();
}

ir::Expected<llvm::ArrayRef<uint8_t>> Executor::output(int64_t step, ir::StorageId storage) {
  // The step before one that was refused is done.
  const bool isLastDone = endedWithoutUpdates_ && step == nextStep_ - 1;
  if (!isLastDone) {
    if (ir::Error error = checkRunning()) return error;
  }
  const int32_t position = plan_.findOutput(storage);
  if (position < 0) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "storage " + std::to_string(storage.raw()) + " is no output of the step");
  }
  if (step < 0 || step >= nextStep_ || step + 2 < nextStep_) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "outputs of step " + std::to_string(step + 1) + " are not kept: " +
                             std::to_string(nextStep_) + " steps were enqueued");
  }
  // Steps before the current turn were finished when it began.
  const auto k = static_cast<size_t>(position);
  const int32_t event = plan_.outputs[k].event;
  if (step >= firstStepOfTurn_ && event >= 0) {
    if (ir::Error error = program_->waitOnHost({event, passOf(step)}))
      return stop(std::move(error));
  }
  return llvm::ArrayRef<uint8_t>(outputs_[static_cast<size_t>(step % 2)][k]);
}

}  // namespace stowage::runtime
