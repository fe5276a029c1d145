// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/trace/step_recorder.h"

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/graph_task.h>

#include <limits>
#include <utility>

#include "runtime/capture/ops/call_results.h"
#include "runtime/capture/ops/encode_argument.h"

namespace stowage::runtime {
namespace {

bool isInBackward() { return torch::autograd::get_current_graph_task_id() != -1; }

/// Autograd numbers its nodes when a forward op makes them, just before the op reaches the backend.
uint64_t currentSequence() {
  if (!isInBackward()) return at::sequence_number::peek();
  const auto node = torch::autograd::get_current_node();
  if (node == nullptr) return 0;
  const uint64_t number = node->sequence_nr();
  return number == std::numeric_limits<uint64_t>::max() ? 0 : number + 1;
}

at::Tensor accumulatedParameter() {
  if (!isInBackward()) return {};
  const auto node = torch::autograd::get_current_node();
  const auto* accumulate = dynamic_cast<torch::autograd::AccumulateGrad*>(node.get());
  return accumulate == nullptr ? at::Tensor() : accumulate->variable;
}

}  // namespace

void StepRecorder::beginStep() {
  trace_.clear();
  trace_.firstId = nextFakeId();
  inUpdate_ = false;
  pathOfSequence_.clear();
}

void StepRecorder::beginUpdate() {
  inUpdate_ = true;
  trace_.updateBegin = trace_.nodes.size();
}

void StepRecorder::beginUpdateAfterBackward() {
  if (inUpdate_) return;
  beginUpdate();
  size_t& begin = trace_.updateBegin;
  while (begin > 0 && trace_.nodes[begin - 1].phase != ir::Phase::kBackward) --begin;
  if (begin == 0) begin = trace_.nodes.size();
  for (size_t i = begin; i < trace_.nodes.size(); ++i) {
    trace_.nodes[i].phase = ir::Phase::kOptimizer;
  }
}

StepTrace StepRecorder::endStep() { return std::exchange(trace_, StepTrace{}); }

void StepRecorder::reuse(StepTrace trace) { trace_ = std::move(trace); }

ir::ValueId StepRecorder::idOf(const at::Tensor& tensor) {
  const StorageKey key = storages_.keyOf(tensor);
  const auto path = modulePaths_.find(key);
  if (path != modulePaths_.end()) lastPath_ = path->second;
  return trace_.tensors.intern({key, irType(shapeOf(tensor))});
}

/// A tensor that host code filled by hand is a constant: its bytes are taken before it is first
/// used.
void StepRecorder::noteHostBytes(const TracedCall& call) {
  forEachTensor(call.args, [&](const at::Tensor& tensor) {
    if (!isFake(tensor)) return;
    StorageFacts& facts = storages_.get(storages_.keyOf(tensor));
    if (!facts.unwritten || facts.handFilled) return;
    if (!wasTouched(*tensor.storage().unsafeGetStorageImpl())) return;
    facts.handFilled = true;
    facts.contents = copyOfBytes(tensor.storage());
  });
}

bool StepRecorder::coversStorage(const at::Tensor& tensor) const {
  return tensor.storage_offset() == 0 && tensor.is_non_overlapping_and_dense() &&
         tensor.nbytes() == tensor.storage().nbytes();
}

void StepRecorder::noteWrites(const TracedCall& call, TracedNode& node) {
  for (const uint32_t index : call.op.writtenArguments) {
    forEachTensor(call.args.slice(index, 1), [&](const at::Tensor& tensor) {
      node.writes.push_back(
          {.value = idOf(tensor), .whole = call.op.overwrites && coversStorage(tensor)});
      StorageFacts& facts = storages_.get(storages_.keyOf(tensor));
      facts.unwritten = false;
      facts.written = true;
      facts.trained = facts.trained || (inUpdate_ && tensor.requires_grad());
    });
  }
}

void StepRecorder::recordOp(const TracedCall& call, llvm::ArrayRef<at::Tensor> results) {
  TracedNode node;
  node.op = &call.op;
  node.phase = inUpdate_        ? ir::Phase::kOptimizer
               : isInBackward() ? ir::Phase::kBackward
                                : ir::Phase::kForward;
  node.sequence = currentSequence();
  if (const at::Tensor parameter = accumulatedParameter(); parameter.defined()) {
    node.accumulates = storages_.keyOf(parameter);
  }
  const auto& arguments = call.op.schema().arguments();
  for (size_t i = 0; i < call.args.size(); ++i) {
    node.args.push_back(encodeArgument(call.args[i], arguments[i],
                                       [&](const at::Tensor& tensor) { return idOf(tensor); }));
  }
  noteHostBytes(call);
  noteWrites(call, node);
  for (const at::Tensor& result : results) {
    node.results.push_back(result.defined() ? idOf(result) : ir::ValueId());
    if (result.defined() && call.op.emptyFactory) {
      storages_.get(storages_.keyOf(result)).unwritten = true;
    }
  }
  if (node.phase == ir::Phase::kForward) pathOfSequence_.try_emplace(node.sequence, lastPath_);
  trace_.nodes.push_back(std::move(node));
}

void StepRecorder::recordReadBack(const at::Tensor& tensor) {
  trace_.readBacks.push_back(
      {.tensor = idOf(tensor), .before = trace_.nodes.size(), .place = place()});
}

bool StepRecorder::isWritten(const at::Tensor& tensor) const {
  return storages_.get(storages_.keyOf(tensor)).written;
}

std::string StepRecorder::place() const {
  if (inUpdate_) return "optimizer";
  std::string path = lastPath_;
  if (isInBackward()) {
    const auto found = pathOfSequence_.find(currentSequence());
    path = found == pathOfSequence_.end() ? "" : found->second;
  }
  const std::string phase = isInBackward() ? "backward" : "forward";
  return path.empty() ? phase : "near " + path + ", " + phase;
}

}  // namespace stowage::runtime
