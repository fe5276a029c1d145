// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_training.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/executor/boundary_state.h"
#include "runtime/fake/fake_device.h"
#include "runtime/fake/fake_kernels.h"

namespace stowage::tests {

namespace {

using ir::StorageId;
using runtime::ByteVector;

class Training {
 public:
  Training(runtime::Device& device, const runtime::PlanSource& plan, int64_t stepsPerNumber)
      : device_(device),
        plan_(plan),
        feed_(plan.graph, stepsPerNumber),
        referenceFeed_(plan.graph, stepsPerNumber),
        reference_(plan.graph) {}

  ir::Error run(int steps) {
    plan_.feed = &feed_;
    auto executor = runtime::Executor::create(device_, plan_);
    if (!executor) return executor.takeError();
    const auto initial = [&](StorageId storage, llvm::MutableArrayRef<uint8_t> bytes) {
      const ByteVector made = runtime::makeFakeBytes(plan_.graph, storage, -1);
      std::copy(made.begin(), made.end(), bytes.begin());
      return ir::success();
    };
    if (ir::Error error = runtime::loadState(**executor, initial)) return error;
    for (int step = 0; step < steps; ++step) {
      if (ir::Error error = enqueueStep(**executor, step)) return error;
      // One step later than they are made: the tail of a step runs beside the next one.
      if (step > 0) {
        if (ir::Error error = checkOutputs(**executor, step - 1)) return error;
      }
      advanceReference(step);
    }
    if (ir::Error error = checkOutputs(**executor, steps - 1)) return error;
    // What is pending then counts as a step more among the launches.
    if (ir::Error error = (*executor)->finish()) return error;
    reference_.finish();
    results_.push_back(reference_.results());
    if (ir::Error error = checkLaunches()) return error;
    return runtime::drainState(**executor, [&](StorageId storage, llvm::ArrayRef<uint8_t> bytes) {
      return compare(storage, bytes, reference_.bytes(storage), "state after the last step");
    });
  }

 private:
  ir::Error enqueueStep(runtime::Executor& executor, int step) {
    std::vector<ByteVector> data;
    std::vector<runtime::InputBytes> inputs;
    for (size_t i = 0; i < plan_.graph.storages().size(); ++i) {
      if (plan_.graph.storages()[i].role != ir::Role::kInput) continue;
      data.push_back(runtime::makeFakeBytes(plan_.graph, StorageId(i), step));
      inputs.push_back({StorageId(i), {}});
    }
    for (size_t i = 0; i < data.size(); ++i) inputs[i].bytes = data[i];
    auto enqueued = executor.enqueueStep(inputs);
    return enqueued ? ir::success() : enqueued.takeError();
  }

  void advanceReference(int step) {
    referenceFeed_.begin(step);
    reference_.runStep(*referenceFeed_.join());
    results_.push_back(reference_.results());
    expected_.emplace_back();
    for (size_t i = 0; i < plan_.graph.storages().size(); ++i) {
      expected_.back().push_back(reference_.bytes(StorageId(i)));
    }
  }

  ir::Error checkOutputs(runtime::Executor& executor, int step) {
    for (size_t i = 0; i < plan_.graph.storages().size(); ++i) {
      if (!plan_.graph.storages()[i].output) continue;
      auto bytes = executor.output(step, StorageId(i));
      if (!bytes) return bytes.takeError();
      if (ir::Error error = compare(StorageId(i), *bytes, expected_[static_cast<size_t>(step)][i],
                                    "output of step " + std::to_string(step))) {
        return error;
      }
    }
    return ir::success();
  }

  ir::Error checkLaunches() {
    if (ir::Error error = device_.synchronize()) return error;
    const auto* fake = dynamic_cast<const runtime::FakeDevice*>(&device_);
    if (fake == nullptr) return ir::success();
    std::map<std::pair<int64_t, ir::NodeId>, int> originals;
    for (const runtime::FakeLaunch& launch : fake->launches()) {
      const ir::NodeId node = plan_.schedule.command(launch.command).node;
      if (plan_.schedule.command(launch.command).recompute == 0) ++originals[{launch.step, node}];
      const auto& expected = results_[static_cast<size_t>(launch.step)][node.index()];
      for (const runtime::FakeResult& result : launch.results) {
        if (std::find(expected.begin(), expected.end(), result) != expected.end()) continue;
        return ir::makeError(ir::ErrorCode::kInternal,
                             "c" + std::to_string(launch.command.raw()) + " of step " +
                                 std::to_string(launch.step) + " wrote other bytes into '" +
                                 plan_.graph.storage(result.storage).name + "'");
      }
    }
    for (size_t n = 0; n < plan_.graph.nodes().size(); ++n) {
      const bool isDeferred = plan_.graph.nodes()[n].phase == ir::Phase::kDeferred;
      if (originals[{isDeferred ? 1 : 0, ir::NodeId(n)}] == 1) continue;
      return ir::makeError(ir::ErrorCode::kInternal,
                           plan_.graph.describeNode(ir::NodeId(n)) + " did not run once");
    }
    return ir::success();
  }

  ir::Error compare(StorageId storage, llvm::ArrayRef<uint8_t> found, const ByteVector& expected,
                    const std::string& what) {
    if (found == llvm::ArrayRef<uint8_t>(expected)) return ir::success();
    return ir::makeError(ir::ErrorCode::kInternal,
                         "'" + plan_.graph.storage(storage).name + "' differs, " + what);
  }

  runtime::Device& device_;
  runtime::PlanSource plan_;
  CountingFeed feed_;
  CountingFeed referenceFeed_;
  runtime::FakeReference reference_;
  std::vector<std::vector<ByteVector>> expected_;                       // by step, by storage
  std::vector<std::vector<std::vector<runtime::FakeResult>>> results_;  // by step, by node
};

}  // namespace

CountingFeed::CountingFeed(const ir::Graph& graph, int64_t stepsPerNumber)
    : graph_(graph), stepsPerNumber_(stepsPerNumber) {}

void CountingFeed::begin(int64_t step) {
  values_.clear();
  const int64_t times = step / stepsPerNumber_;
  for (const ir::StepScalar& scalar : graph_.scalars()) {
    values_.push_back(
        {scalar.isInteger, scalar.value / static_cast<double>(times + 1), scalar.integer + times});
  }
}

ir::Expected<llvm::ArrayRef<runtime::ScalarValue>> CountingFeed::join() {
  return llvm::ArrayRef<runtime::ScalarValue>(values_);
}

std::string compareWithReference(runtime::Device& device, const runtime::PlanSource& plan,
                                 int steps, int64_t stepsPerNumber) {
  return ir::describe(Training(device, plan, stepsPerNumber).run(steps));
}

}  // namespace stowage::tests
