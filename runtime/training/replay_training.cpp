// SPDX-License-Identifier: Apache-2.0
#include "runtime/training/replay_training.h"

#include <ATen/ops/empty.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/checkpoint/state_io.h"
#include "runtime/checkpoint/state_names.h"
#include "runtime/runner/replay.h"
#include "runtime/torch/torch_types.h"
#include "runtime/training/batches_ahead.h"
#include "runtime/training/reference_mode.h"
#include "runtime/training/step_timer.h"

namespace stowage::runtime {

namespace {

class ReplayRun {
 public:
  explicit ReplayRun(const ReplayTraining& replay) : replay_(replay), graph_(replay.step.graph()) {}

  ir::Error open() {
    ir::Expected<std::unique_ptr<Replay>> made = Replay::make(graph_);
    if (!made) return made.takeError();
    run_ = std::move(*made);
    if (!replay_.weights.empty()) {
      ir::Expected<StateFiles> files = StateFiles::open(replay_.weights);
      if (!files) return files.takeError();
      weights_ = std::move(*files);
    }
    // Masters are made from parameters: those first.
    for (const bool master : {false, true}) {
      for (size_t i = 0; i < graph_.storages().size(); ++i) {
        const ir::Storage& storage = graph_.storages()[i];
        if (!ir::isState(storage) || (storage.role == ir::Role::kMaster) != master) continue;
        if (ir::Error error = fill(ir::StorageId(i))) return error;
      }
    }
    return ir::success();
  }

  ir::Expected<at::Tensor> step(const Batch& batch) {
    std::vector<InputBytes> inputs;
    Batch held;
    for (size_t i = 0; i < batch.size(); ++i) {
      const ir::Value& value = graph_.value(replay_.step.inputs()[i]);
      held.push_back(layOutAs(value.type, batch[i]));
      inputs.push_back(
          {value.storage, {static_cast<const uint8_t*>(held[i].data_ptr()), held[i].nbytes()}});
    }
    const std::vector<ScalarValue> scalars = capturedScalars();
    if (ir::Error error = run_->runStep(inputs, scalars)) return error;
    return loss();
  }

  /// Digests of the state that the planned run has between steps.
  ir::Error keepState(TrainingRecord& record) const {
    if (ir::Error error = run_->finish()) return error;
    for (const ir::BoundaryEntry& entry : replay_.schedule.boundary) {
      const std::string& name = replay_.planned.storage(entry.storage).name;
      for (size_t i = 0; i < graph_.storages().size(); ++i) {
        const ir::Storage& storage = graph_.storages()[i];
        if (storage.name != name || !ir::isState(storage)) continue;
        at::Tensor bytes = at::empty({storage.bytes.value()}, at::kByte).zero_();
        // Without a place between steps it holds nothing; the planned run says zeros.
        if (!entry.at.empty()) {
          ir::Expected<std::vector<uint8_t>> held = run_->read(ir::StorageId(i));
          if (!held) return held.takeError();
          copy(*held, bytes);
        }
        record.state.emplace_back(name, digestOf(bytes));
      }
    }
    record.sortState();
    return ir::success();
  }

 private:
  static void copy(llvm::ArrayRef<uint8_t> from, const at::Tensor& to) {
    std::memcpy(to.data_ptr(), from.data(), std::min(from.size(), to.nbytes()));
  }

  ir::Error fill(ir::StorageId storage) {
    std::vector<uint8_t> place(static_cast<size_t>(graph_.storage(storage).bytes.value()));
    if (weights_ && isModelState(graph_.storage(storage))) {
      if (ir::Error error = weights_->read(graph_, storage, {}, place)) return error;
      return run_->write(storage, place);
    }
    const auto valueOf = [&](ir::StorageId id) -> ir::Expected<at::Tensor> {
      ir::Expected<std::vector<uint8_t>> bytes = run_->read(id);
      if (!bytes) return bytes.takeError();
      at::Tensor value = at::empty({static_cast<int64_t>(bytes->size())}, at::kByte);
      copy(*bytes, value);
      return value;
    };
    ir::Expected<at::Tensor> value = replay_.step.makeState(storage, valueOf);
    if (!value) return value.takeError();
    std::memcpy(place.data(), value->data_ptr(), std::min(place.size(), value->nbytes()));
    return run_->write(storage, place);
  }

  std::vector<ScalarValue> capturedScalars() const {
    std::vector<ScalarValue> scalars;
    for (const ir::StepScalar& scalar : graph_.scalars()) {
      scalars.push_back({scalar.isInteger, scalar.value, scalar.integer});
    }
    return scalars;
  }

  ir::Expected<at::Tensor> loss() const {
    const ir::Value& value = graph_.value(replay_.step.reports().front());
    at::Tensor tensor = at::empty({value.type.numElements()}, toScalarType(value.type.dtype));
    const auto first = static_cast<size_t>(value.type.offset * ir::elementBytes(value.type.dtype));
    ir::Expected<std::vector<uint8_t>> bytes = run_->read(value.storage);
    if (!bytes) return bytes.takeError();
    copy(llvm::ArrayRef<uint8_t>(*bytes).drop_front(first), tensor);
    return tensor.reshape(c10::IntArrayRef(value.type.sizes.data(), value.type.sizes.size()));
  }

  const ReplayTraining& replay_;
  const ir::Graph& graph_;
  std::unique_ptr<Replay> run_;
  std::optional<StateFiles> weights_;
};

}  // namespace

ir::Expected<TrainingRecord> trainByReplay(const ReplayTraining& replay, uint64_t seed,
                                           int64_t steps, const BatchSource& batches) {
  if (ir::Error error = checkReference(replay.target)) return error;
  const ReferenceMode mode(replay.target);
  ReplayRun run(replay);
  if (ir::Error error = run.open()) return error;
  seedSteps(seed);
  TrainingRecord record;
  StepTimer timer;
  BatchesAhead ahead(
      batches, 0, steps, [] { return ir::success(); }, [&] { timer.leaveOut(); });
  for (int64_t step = 0; step < steps; ++step) {
    ir::Expected<Batch> batch = ahead.next();
    if (!batch) return batch.takeError();
    ir::Expected<at::Tensor> loss = run.step(*batch);
    if (!loss) return loss.takeError();
    record.add(*loss);
    timer.stepDone();
  }
  record.secondsPerStep = timer.secondsPerStep();
  if (ir::Error error = run.keepState(record)) return error;
  return record;
}

}  // namespace stowage::runtime
