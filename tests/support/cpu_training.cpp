// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cpu_training.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <random>
#include <utility>

#include "runtime/executor/boundary_state.h"
#include "runtime/runner/replay.h"
#include "tests/support/fake_training.h"

namespace stowage::tests {

namespace {

using ir::StorageId;

ir::DType firstDType(const ir::Graph& graph, StorageId storage) {
  for (const ir::Value& value : graph.values()) {
    if (value.storage == storage) return value.type.dtype;
  }
  return ir::DType::kU8;
}

template <typename Number, typename Draw>
void fill(std::vector<uint8_t>& bytes, Draw draw) {
  for (size_t i = 0; i + sizeof(Number) <= bytes.size(); i += sizeof(Number)) {
    const auto number = static_cast<Number>(draw());
    std::memcpy(bytes.data() + i, &number, sizeof(Number));
  }
}

class Training {
 public:
  Training(runtime::Device& device, const runtime::PlanSource& plan,
           const CpuTrainingOptions& options)
      : device_(device), plan_(plan), options_(options), feed_(plan.graph) {}

  ir::Error run() {
    auto replay = runtime::Replay::make(plan_.graph);
    if (!replay) return replay.takeError();
    if (ir::Error error = runReplay(**replay)) return error;
    plan_.feed = &feed_;
    auto executor = runtime::Executor::create(device_, plan_);
    if (!executor) return executor.takeError();
    if (ir::Error error = runPlanned(**executor)) return error;
    return runtime::drainState(**executor, [&](StorageId id, llvm::ArrayRef<uint8_t> bytes) {
      auto replayed = (*replay)->read(id);
      if (!replayed) return replayed.takeError();
      return compare(id, bytes, *replayed, "state after the last step");
    });
  }

 private:
  struct Inputs {
    std::vector<std::vector<uint8_t>> data;
    std::vector<runtime::InputBytes> bytes;
  };

  Inputs makeInputs(int step) const {
    Inputs inputs;
    for (size_t i = 0; i < plan_.graph.storages().size(); ++i) {
      if (plan_.graph.storages()[i].role != ir::Role::kInput) continue;
      inputs.data.push_back(makeNumbers(plan_.graph, StorageId(i), step, options_));
      inputs.bytes.push_back({StorageId(i), {}});
    }
    for (size_t i = 0; i < inputs.data.size(); ++i) inputs.bytes[i].bytes = inputs.data[i];
    return inputs;
  }

  static void seedGenerator() {
    at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
    generator.set_current_seed(7);
  }

  ir::Error runReplay(runtime::Replay& replay) {
    seedGenerator();
    for (size_t i = 0; i < plan_.graph.storages().size(); ++i) {
      if (!plan_.graph.storages()[i].persistent) continue;
      const auto numbers = makeNumbers(plan_.graph, StorageId(i), -1, options_);
      if (ir::Error error = replay.write(StorageId(i), numbers)) return error;
    }
    CountingFeed feed(plan_.graph);
    for (int step = 0; step < options_.steps; ++step) {
      feed.begin(step);
      const Inputs inputs = makeInputs(step);
      if (ir::Error error = replay.runStep(inputs.bytes, *feed.join())) return error;
      outputs_.emplace_back(plan_.graph.storages().size());
      for (size_t i = 0; i < plan_.graph.storages().size(); ++i) {
        if (!plan_.graph.storages()[i].output) continue;
        auto bytes = replay.read(StorageId(i));
        if (!bytes) return bytes.takeError();
        outputs_.back()[i] = std::move(*bytes);
      }
    }
    return replay.finish();
  }

  ir::Error runPlanned(runtime::Executor& executor) {
    seedGenerator();
    const auto initial = [&](StorageId storage, llvm::MutableArrayRef<uint8_t> bytes) {
      const auto numbers = makeNumbers(plan_.graph, storage, -1, options_);
      std::copy(numbers.begin(), numbers.end(), bytes.begin());
      return ir::success();
    };
    if (ir::Error error = runtime::loadState(executor, initial)) return error;
    for (int step = 0; step < options_.steps; ++step) {
      const Inputs inputs = makeInputs(step);
      auto enqueued = executor.enqueueStep(inputs.bytes);
      if (!enqueued) return enqueued.takeError();
      if (step == 0) continue;
      if (ir::Error error = checkOutputs(executor, step - 1)) return error;
    }
    return checkOutputs(executor, options_.steps - 1);
  }

  ir::Error checkOutputs(runtime::Executor& executor, int step) {
    for (size_t i = 0; i < plan_.graph.storages().size(); ++i) {
      if (!plan_.graph.storages()[i].output) continue;
      auto bytes = executor.output(step, StorageId(i));
      if (!bytes) return bytes.takeError();
      if (ir::Error error = compare(StorageId(i), *bytes, outputs_[static_cast<size_t>(step)][i],
                                    "output of step " + std::to_string(step))) {
        return error;
      }
    }
    return ir::success();
  }

  ir::Error compare(StorageId storage, llvm::ArrayRef<uint8_t> found,
                    llvm::ArrayRef<uint8_t> expected, const std::string& what) {
    if (found == expected) return ir::success();
    return ir::makeError(ir::ErrorCode::kInternal,
                         "'" + plan_.graph.storage(storage).name + "' differs, " + what);
  }

  runtime::Device& device_;
  runtime::PlanSource plan_;
  CpuTrainingOptions options_;
  CountingFeed feed_;
  std::vector<std::vector<std::vector<uint8_t>>> outputs_;  // by step, by storage
};

}  // namespace

std::vector<uint8_t> makeNumbers(const ir::Graph& graph, StorageId storage, int64_t step,
                                 const CpuTrainingOptions& options) {
  std::vector<uint8_t> bytes(static_cast<size_t>(graph.storage(storage).bytes.value()));
  std::mt19937_64 engine(storage.index() * 7919 + static_cast<uint64_t>(step + 1) * 104729 +
                         options.seed);
  const auto real = [&] { return static_cast<double>(engine() >> 11) * 0x1p-52 - 1.0; };
  const auto integer = [&] {
    return static_cast<int64_t>(engine() % static_cast<uint64_t>(options.integersBelow));
  };
  switch (firstDType(graph, storage)) {
    case ir::DType::kF64:
      fill<double>(bytes, real);
      break;
    case ir::DType::kF32:
      fill<float>(bytes, real);
      break;
    case ir::DType::kBF16:
      fill<c10::BFloat16>(bytes, [&] { return static_cast<float>(real()); });
      break;
    case ir::DType::kI64:
      fill<int64_t>(bytes, integer);
      break;
    default:
      fill<uint8_t>(bytes, [&] { return engine() % 2; });
  }
  return bytes;
}

std::string compareWithReplay(runtime::Device& device, const runtime::PlanSource& plan,
                              const CpuTrainingOptions& options) {
  return ir::describe(Training(device, plan, options).run());
}

}  // namespace stowage::tests
