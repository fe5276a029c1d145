// SPDX-License-Identifier: Apache-2.0
#include "tests/support/captured_run.h"

#include <ATen/ops/equal.h>

namespace stowage::tests {

using runtime::FirstValue;

CapturedRun::CapturedRun(runtime::CapturedStep& step)
    : step_(step), graph_(step.graph()), replay_(graph_) {}

ir::Expected<at::Tensor> CapturedRun::firstBytes(ir::StorageId storage) {
  if (step_.firstValue(storage) == FirstValue::kLive) return step_.liveValue(storage).clone();
  return step_.makeState(storage, [&](ir::StorageId other) -> ir::Expected<at::Tensor> {
    return replay_.bytesOf(other);
  });
}

ir::Error CapturedRun::load() {
  const auto isMade = [&](ir::StorageId id) {
    return step_.firstValue(id) == FirstValue::kConstruction;
  };
  ir::Error replayed = step_.replayConstruction([](ir::StorageId) { return true; },
                                                [&](ir::StorageId id, const at::Tensor& bytes) {
                                                  replay_.bind(id, bytes.clone().storage());
                                                  return ir::success();
                                                });
  if (replayed) return replayed;
  for (const FirstValue source : {FirstValue::kLive, FirstValue::kStep}) {
    for (size_t i = 0; i < graph_.storages().size(); ++i) {
      const ir::StorageId id(i);
      if (!graph_.storage(id).persistent || isMade(id) || step_.firstValue(id) != source) continue;
      ir::Expected<at::Tensor> bytes = firstBytes(id);
      if (!bytes) return bytes.takeError();
      replay_.bind(id, bytes->storage());
    }
  }
  return ir::success();
}

ir::Expected<std::vector<at::Tensor>> CapturedRun::step(const std::vector<at::Tensor>& inputs) {
  for (size_t i = 0; i < graph_.storages().size(); ++i) {
    if (!graph_.storages()[i].persistent) replay_.release(ir::StorageId(i));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    replay_.bind(graph_.value(step_.inputs()[i]).storage, inputs[i].storage());
  }
  auto scalars = step_.nextScalars({});
  if (!scalars) return scalars.takeError();
  for (size_t i = 0; i < graph_.nodes().size(); ++i) {
    if (ir::Error error = replay_.run(ir::NodeId(i), *scalars)) return error;
  }
  std::vector<at::Tensor> reports;
  for (const ir::ValueId report : step_.reports()) {
    reports.push_back(replay_.bytesOf(graph_.value(report).storage).clone());
  }
  return reports;
}

at::Tensor CapturedRun::bytes(const std::string& name) const {
  for (size_t i = 0; i < graph_.storages().size(); ++i) {
    if (graph_.storages()[i].name == name) return replay_.bytesOf(ir::StorageId(i));
  }
  return {};
}

}  // namespace stowage::tests
