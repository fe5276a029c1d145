// SPDX-License-Identifier: Apache-2.0
#include "runtime/training/eager_training.h"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <vector>

#include "runtime/torch/torch_types.h"
#include "runtime/training/batches_ahead.h"
#include "runtime/training/module_state.h"
#include "runtime/training/reference_mode.h"
#include "runtime/training/step_timer.h"

namespace stowage::runtime {

namespace {

void waitFor(c10::Device device) {
  if (device.is_cuda()) at::accelerator::synchronizeDevice(device.index());
}

Bytes peakOf(c10::Device device) {
  const auto stats = at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return Bytes(
      stats.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)].peak);
}

}  // namespace

ir::Expected<TrainingRecord> trainEagerly(const MakeClosures& make, const ir::Target& target,
                                          uint64_t seed, int64_t steps,
                                          const BatchSource& batches) {
  if (ir::Error error = checkReference(target)) return error;
  const ReferenceMode mode(target);
  const c10::Device device = toDevice(target.device);
  if (device.is_cuda()) at::getDeviceAllocator(device.type())->resetPeakStats(device.index());
  at::manual_seed(seed);
  ir::Expected<StepFunctions> functions = make();
  if (!functions) return functions.takeError();
  seedSteps(seed);
  TrainingRecord record;
  StepTimer timer;
  at::Tensor last;
  const auto stop = [&] {
    waitFor(device);
    timer.finished();
    return ir::success();
  };
  BatchesAhead ahead(batches, 0, steps, stop, [&] { timer.leaveOut(); });
  for (int64_t step = 0; step < steps; ++step) {
    ir::Expected<Batch> batch = ahead.next();
    if (!batch) return batch.takeError();
    for (at::Tensor& input : *batch) input = input.to(device);
    const std::vector<at::Tensor> reports = functions->loss(*batch);
    functions->update();
    // As training loops do it on a GPU: the loss of the step before is read, so that nothing waits
    // for this step. It is a copy, since this step may write over the tensor.
    if (last.defined()) record.add(last);
    last = reports.front().detach().clone();
    if (step == 0) waitFor(device);
    timer.stepDone();
  }
  if (last.defined()) record.add(last);
  waitFor(device);
  timer.finished();
  record.secondsPerStep = timer.secondsPerStep();
  if (device.is_cuda()) record.peak = peakOf(device);
  keepState({.module = functions->module, .optimizer = functions->optimizer}, record);
  return record;
}

}  // namespace stowage::runtime
