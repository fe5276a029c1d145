// SPDX-License-Identifier: Apache-2.0
#include "runtime/calibrate.h"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/bound_tensors.h"
#include "runtime/deterministic_mode.h"
#include "runtime/op_call.h"
#include "runtime/rng_keeper.h"
#include "runtime/run_accesses.h"
#include "runtime/served_allocator.h"
#include "runtime/torch_boundary.h"
#include "runtime/valid_values.h"

namespace stowage::runtime {

namespace {

using Clock = std::chrono::steady_clock;

Nanoseconds since(Clock::time_point begin) {
  return Nanoseconds(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

/// Memory for one operand, at an address that is a multiple of the alignment.
class Buffer {
 public:
  Buffer(Bytes bytes, int64_t alignment)
      : bytes_(bytes), room_(static_cast<size_t>(bytes.value() + alignment)) {
    const auto first = reinterpret_cast<uintptr_t>(room_.data());
    const auto unit = static_cast<uintptr_t>(alignment);
    begin_ = room_.data() + ((unit - first % unit) % unit);
  }
  llvm::MutableArrayRef<uint8_t> bytes() { return {begin_, static_cast<size_t>(bytes_.value())}; }

 private:
  Bytes bytes_;
  std::vector<uint8_t> room_;
  uint8_t* begin_;
};

class Calibrator {
 public:
  Calibrator(const ir::Graph& graph, const CalibrateOptions& options, BoundTensors tensors)
      : graph_(graph), options_(options), tensors_(std::move(tensors)) {}

  ir::Expected<ir::OpCost> measure(ir::NodeId node) {
    auto call = prepareCall(graph_, node, CallForm::kAsCaptured,
                            [&](ir::ValueId value) { return tensors_.tensor(value); });
    if (!call) return call.takeError();
    makeOperands(node);
    ir::OpCost cost;
    cost.source = ir::CostSource::kMeasured;
    // The first call may fill caches that stay: it is not what a step does.
    if (ir::Error error = runOnce(node, *call, nullptr, cost)) return error;
    AllocationLog log;
    if (ir::Error error = runOnce(node, *call, &log, cost)) return error;
    // Others on the machine only ever add to a run; the shortest one is nearest to the op's own.
    std::vector<Nanoseconds> times;
    for (int i = 0; i < options_.runs; ++i) {
      if (ir::Error error = runOnce(node, *call, nullptr, cost)) return error;
      times.push_back(cost.time);
    }
    if (times.empty()) return cost;
    std::sort(times.begin(), times.end());
    cost.time = times.front();
    if (options_.spread != nullptr) {
      options_.spread->shortest += times.front();
      options_.spread->median += times[times.size() / 2];
    }
    return cost;
  }

  AllocationSource& allocations() { return allocations_; }

 private:
  void makeOperands(ir::NodeId node) {
    buffers_.clear();
    ir::forEachTensorArgument(graph_.node(node), [&](ir::ValueId value) {
      const ir::StorageId storage = graph_.value(value).storage;
      const auto known = [&](const Operand& operand) { return operand.storage == storage; };
      if (std::any_of(buffers_.begin(), buffers_.end(), known)) return;
      buffers_.push_back(
          {storage, value, Buffer(graph_.storage(storage).bytes, options_.alignBytes)});
      tensors_.bind(storage, buffers_.back().buffer.bytes().data());
    });
  }

  // Anew before every call: in-place ops would drive the numbers out of range.
  void fillOperands(ir::NodeId node) {
    for (Operand& operand : buffers_) {
      fillValidValues(graph_.value(operand.value).type.dtype,
                      findIntegerBound(graph_, node, operand.value),
                      static_cast<uint64_t>(operand.storage.raw()), operand.buffer.bytes());
    }
  }

  ir::Error runOnce(ir::NodeId node, const OpCall& call, AllocationLog* log, ir::OpCost& cost) {
    fillOperands(node);
    const std::vector<ScalarValue> scalars = capturedScalars();
    std::vector<c10::IValue> stack;
    allocations_.logging.store(log, std::memory_order_release);
    ir::Error error = callTorch(graph_.describeNode(node), [&] {
      const at::AutoDispatchBelowADInplaceOrView below;
      stack = makeStack(call, scalars);
      const auto begin = Clock::now();
      call.op.callBoxed(stack);
      cost.time = since(begin);
    });
    allocations_.logging.store(nullptr, std::memory_order_release);
    if (error || log == nullptr) return error;
    if (ir::Error wrong = log->summarize(findFresh(node, stack), options_.alignBytes, cost)) {
      return ir::makeError(ir::ErrorCode::kUnsupported,
                           graph_.describeNode(node) + ": " + ir::describe(std::move(wrong)));
    }
    return ir::success();
  }

  std::vector<ScalarValue> capturedScalars() const {
    std::vector<ScalarValue> scalars;
    for (const ir::StepScalar& scalar : graph_.scalars()) {
      scalars.push_back({scalar.isInteger, scalar.value, scalar.integer});
    }
    return scalars;
  }

  // First bytes of the storages that the call made, in the order that plans use.
  std::vector<const void*> findFresh(ir::NodeId node, const std::vector<c10::IValue>& stack) const {
    const auto& results = graph_.node(node).results;
    std::vector<const void*> made;
    for (const ir::StorageId storage : freshResults(graph_, node)) {
      size_t next = 0;
      bool found = false;
      forEachResult(stack, [&](const at::Tensor& result) {
        const size_t k = next++;
        if (found || k >= results.size() || !results[k].isValid() || !result.defined()) return;
        if (graph_.value(results[k]).storage != storage) return;
        made.push_back(result.storage().data());
        found = true;
      });
    }
    return made;
  }

  struct Operand {
    ir::StorageId storage;
    ir::ValueId value;  // whose type says what the numbers are
    Buffer buffer;
  };

  const ir::Graph& graph_;
  const CalibrateOptions& options_;
  BoundTensors tensors_;
  std::vector<Operand> buffers_;
  AllocationSource allocations_;
};

struct Unmeasured {
  ir::NodeId node;
  std::string signature;
};

/// The first node of each signature that the table does not have.
std::vector<Unmeasured> findUnmeasured(const ir::Graph& graph, const ir::CostTable& table) {
  std::vector<Unmeasured> missing;
  std::set<std::string> seen;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    std::string signature = nodeSignature(graph, ir::NodeId(n));
    if (table.bySignature.count(signature) > 0 || !seen.insert(signature).second) continue;
    missing.push_back({ir::NodeId(n), std::move(signature)});
  }
  return missing;
}

ir::Error measureAll(const ir::Graph& graph, const CalibrateOptions& options,
                     Calibrator& calibrator, ir::CostTable& table) {
  const std::vector<Unmeasured> missing = findUnmeasured(graph, table);
  for (size_t i = 0; i < missing.size(); ++i) {
    if (options.report) options.report(i, missing.size());
    auto cost = calibrator.measure(missing[i].node);
    if (!cost) return cost.takeError();
    table.bySignature.emplace(missing[i].signature, *cost);
  }
  return ir::success();
}

}  // namespace

ir::Expected<ir::CostTable> calibrate(const ir::Graph& graph, const CalibrateOptions& options) {
  auto tensors = BoundTensors::make(graph, c10::Device(c10::DeviceType::CPU));
  if (!tensors) return tensors.takeError();
  installServedAllocator();
  const DeterministicMode mode(options.deterministic);
  Calibrator calibrator(graph, options, std::move(*tensors));
  ir::CostTable table = options.known;
  table.source = ir::CostSource::kMeasured;
  table.device = "cpu, " + std::to_string(options.intraOpThreads) + " threads";
  std::optional<ir::Error> result;
  // A thread of its own, as in a run: its OpenMP workers are not those of the caller.
  std::thread worker([&] {
    at::set_num_threads(options.intraOpThreads);
    registerAllocatingThreads(&calibrator.allocations());
    const RngRestore restore;
    result.emplace(measureAll(graph, options, calibrator, table));
    registerAllocatingThreads(nullptr);
  });
  worker.join();
  if (*result) return std::move(*result);
  return table;
}

ir::LinkModel measureMemoryLinks() {
  constexpr size_t kBytes = size_t{64} << 20;
  std::vector<uint8_t> from(kBytes, 1);
  std::vector<uint8_t> to(kBytes, 0);
  Nanoseconds best(INT64_MAX);
  for (int i = 0; i < 5; ++i) {
    const auto begin = Clock::now();
    std::memcpy(to.data(), from.data(), kBytes);
    best = std::min(best, since(begin));
  }
  const double perSecond = static_cast<double>(kBytes) * 1e9 / static_cast<double>(best.value());
  const ir::LinkRate rate{BytesPerSecond(static_cast<int64_t>(perSecond)), Nanoseconds(0)};
  ir::LinkModel links;
  links.deviceToHost = rate;
  links.hostToDevice = rate;
  return links;
}

}  // namespace stowage::runtime
