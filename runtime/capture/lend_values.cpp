// SPDX-License-Identifier: Apache-2.0
//
// Lets somebody look at a captured module in the middle of a training: its tensors get what they
// hold now, as copies, and afterwards everything is as it was before: tensors without memory,
// gradients, train() and eval(), requires_grad. Tensors from outside that the step writes are lent,
// too: their own bytes stay behind while a plan runs, and are put back.
// Not here: optimizer state, which stays without memory; the generator (runner_read.cpp).
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/capture/captured_step_impl.h"
#include "runtime/capture/graph/graph_replay.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {
namespace {

class LentValues : public LentState {
 public:
  explicit LentValues(CapturedStep::Impl& step)
      : step_(step), modes_(step.functions.module, step.moduleTensors) {}
  ~LentValues() override { llvm::consumeError(takeBack()); }

  ir::Error give(const RunnableStep::ValueOf& bytesOf) {
    if (ir::Error error = giveModule(bytesOf)) return error;
    return step_.storeOutsideTensors([&](ir::StorageId id) -> ir::Expected<at::Tensor> {
      outside_.emplace(id.index(), bytesTensor(step_.factsOf(id).real).clone());
      return bytesOf(id);
    });
  }

  ir::Error takeBack() override {
    if (std::exchange(isBack_, true)) return ir::success();
    const auto putBack = [&] {
      for (Held& held : held_) {
        held.tensor.set_data(held.before);
        if (held.isParameter) held.tensor.mutable_grad() = held.gradient;
      }
      modes_.putBack();
    };
    if (ir::Error error = callTorch("putting back a module that was read", putBack)) return error;
    return step_.storeOutsideTensors([&](ir::StorageId id) -> ir::Expected<at::Tensor> {
      const auto before = outside_.find(id.index());
      return before != outside_.end() ? before->second : bytesTensor(step_.factsOf(id).real);
    });
  }

 private:
  struct Held {
    at::Tensor tensor;
    at::Tensor before;    // of the same storage, without memory
    at::Tensor gradient;  // may be undefined
    bool isParameter;
  };

  ir::Error giveModule(const RunnableStep::ValueOf& bytesOf) {
    std::unordered_map<FakeId, c10::Storage> storages;
    for (const ModuleTensor& entry : step_.moduleTensors.all()) {
      const bool isParameter = entry.role == ir::Role::kParameter;
      if (!isParameter && entry.role != ir::Role::kBuffer) continue;
      c10::Storage& storage = storages[entry.id];
      if (!storage) {
        ir::Expected<at::Tensor> bytes = bytesOf(step_.idOf.at(entry.id));
        if (!bytes) return bytes.takeError();
        storage = bytes->storage();
      }
      if (ir::Error error = giveTensor(entry.tensor, storage, isParameter)) return error;
    }
    return ir::success();
  }

  ir::Error giveTensor(const at::Tensor& tensor, const c10::Storage& storage, bool isParameter) {
    return callTorch("giving a tensor its value", [&] {
      const TensorShape shape = shapeOf(tensor);
      held_.push_back({.tensor = tensor,
                       .before = makeTensor(tensor.storage(), shape),
                       .gradient = isParameter ? tensor.grad() : at::Tensor(),
                       .isParameter = isParameter});
      held_.back().tensor.set_data(makeTensor(storage, shape));
      if (isParameter) held_.back().tensor.mutable_grad().reset();
    });
  }

  CapturedStep::Impl& step_;
  ModuleModes modes_;
  std::vector<Held> held_;
  std::unordered_map<size_t, at::Tensor> outside_;  // bytes before, by storage
  bool isBack_ = false;
};

}  // namespace

ir::Expected<std::unique_ptr<LentState>> CapturedStep::lend(const ValueOf& bytesOf) {
  auto lent = std::make_unique<LentValues>(*impl_);
  if (ir::Error error = lent->give(bytesOf)) return error;
  return lent;
}

}  // namespace stowage::runtime
