// SPDX-License-Identifier: Apache-2.0
#include "runtime/calibrate/op_measurement.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <set>

#include "runtime/calibrate/valid_values.h"
#include "runtime/collectives/collective_ops.h"
#include "runtime/executor/run_accesses.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {

namespace {

constexpr uint64_t kSeed = 1;  // of the random numbers that ops draw when they are repeated

/// Zeros index whatever has an element: what integers are where there is one attempt alone.
constexpr IntegerRange kZeros = {.begin = 0, .end = 1};

/// What integers are when nothing says that they are indices. Some ops look at them before they
/// begin: a start that has to be 0, a pivot that has to be 1 at least.
constexpr IntegerRange kIntegers[] = {{.begin = 0, .end = 2}, kZeros, {.begin = 1, .end = 2}};

class OpMeasurement {
 public:
  OpMeasurement(const ir::Graph& graph, const CalibrateOptions& options, BoundTensors tensors,
                OpBench& bench)
      : graph_(graph), options_(options), tensors_(std::move(tensors)), bench_(bench) {}

  ir::Expected<ir::OpCost> measure(ir::NodeId node) {
    // A GPU that an op has refused values on takes no other op of this process.
    if (bench_.isLostAfterAnError()) return measureWith(node, kZeros);
    ir::Expected<ir::OpCost> cost = measureWith(node, kIntegers[0]);
    if (cost) return cost;
    const ir::PlanError first = ir::takePayload(cost.takeError());
    if (first.code() != ir::ErrorCode::kTorch) return ir::makeError(first);
    for (const IntegerRange& integers : llvm::ArrayRef(kIntegers).drop_front()) {
      cost = measureWith(node, integers);
      if (cost) return cost;
      llvm::consumeError(cost.takeError());
    }
    return ir::makeError(
        first.code(),
        first.text() + " (it was measured with made-up values, and takes none of them)");
  }

 private:
  struct Operand {
    ir::StorageId storage;
    ir::ValueId value;  // whose type says what the numbers are
    uint8_t* at = nullptr;
  };

  ir::Expected<ir::OpCost> measureWith(ir::NodeId node, IntegerRange integers) {
    integers_ = integers;
    auto call = prepareCall(graph_, node, CallForm::kAsCaptured,
                            [&](ir::ValueId value) { return tensors_.tensor(value); });
    if (!call) return call.takeError();
    if (ir::Error error = makeOperands(node)) return error;
    ir::OpCost cost;
    cost.source = ir::CostSource::kMeasured;
    // The first call may fill caches that stay: it is not what a step does.
    ir::Expected<CallTime> first = runOnce(node, *call, nullptr, cost);
    if (!first) return first.takeError();
    AllocationLog log;
    ir::Expected<CallTime> logged = runOnce(node, *call, &log, cost);
    if (!logged) return logged.takeError();
    cost.work = logged->work;
    // Others on the machine only ever add to a run; the shortest one is nearest to the op's own.
    std::vector<Nanoseconds> times;
    Nanoseconds launch(INT64_MAX);
    for (int i = 0; i < options_.runs; ++i) {
      ir::Expected<CallTime> took = runOnce(node, *call, nullptr, cost);
      if (!took) return took.takeError();
      times.push_back(took->work);
      launch = std::min(launch, took->launch);
    }
    if (options_.repeats > 1) {
      if (ir::Error error = checkRepeats(node, *call)) return error;
    }
    if (times.empty()) return cost;
    std::sort(times.begin(), times.end());
    cost.work = times.front();
    cost.launch = launch;
    if (options_.spread != nullptr) {
      options_.spread->shortest += times.front();
      options_.spread->median += times[times.size() / 2];
    }
    return cost;
  }

  /// Behind blocks of `before` bytes.
  ir::Error makeOperands(ir::NodeId node, llvm::ArrayRef<int64_t> before = {}) {
    operands_.clear();
    bench_.clear();
    for (const int64_t bytes : before) {
      ir::Expected<uint8_t*> block = bench_.place(ir::Space::kDevice, Bytes(bytes));
      if (!block) return block.takeError();
    }
    std::vector<ir::ValueId> values;
    ir::forEachTensorArgument(graph_.node(node),
                              [&](ir::ValueId value) { values.push_back(value); });
    for (const ir::ValueId value : values) {
      const ir::StorageId storage = graph_.value(value).storage;
      const auto known = [&](const Operand& operand) { return operand.storage == storage; };
      if (std::any_of(operands_.begin(), operands_.end(), known)) continue;
      const ir::Storage& info = graph_.storage(storage);
      ir::Expected<uint8_t*> at = bench_.place(info.home, info.bytes);
      if (!at) return at.takeError();
      operands_.push_back({storage, value, *at});
      tensors_.bind(storage, *at);
    }
    return ir::success();
  }

  // Anew before every call: in-place ops would drive the numbers out of range.
  ir::Error fillOperands(ir::NodeId node) {
    for (const Operand& operand : operands_) {
      const ir::Storage& info = graph_.storage(operand.storage);
      const std::optional<int64_t> bound = findIntegerBound(graph_, node, operand.value);
      const OperandFill fill = {.dtype = graph_.value(operand.value).type.dtype,
                                .integers = bound ? IntegerRange{.end = *bound} : integers_,
                                .seed = static_cast<uint64_t>(operand.storage.raw())};
      if (ir::Error error = bench_.fill(info.home, operand.at, info.bytes, fill)) return error;
    }
    return ir::success();
  }

  /// Leaves the results on the stack.
  ir::Expected<CallTime> callOp(ir::NodeId node, const OpCall& call,
                                std::vector<c10::IValue>& stack) {
    const std::vector<ScalarValue> scalars = capturedScalars();
    return bench_.time(graph_.describeNode(node), [&] {
      const at::AutoDispatchBelowADInplaceOrView below;
      const RanksAlike alike;
      stack = makeStack(call, scalars);
      call.op.callBoxed(stack);
    });
  }

  /// `log` for the cost's allocations; may be null.
  ir::Expected<CallTime> runOnce(ir::NodeId node, const OpCall& call, AllocationLog* log,
                                 ir::OpCost& cost) {
    if (ir::Error error = fillOperands(node)) return error;
    std::vector<c10::IValue> stack;
    bench_.allocations().logging.store(log, std::memory_order_release);
    ir::Expected<CallTime> took = callOp(node, call, stack);
    bench_.allocations().logging.store(nullptr, std::memory_order_release);
    if (!took || log == nullptr) return took;
    if (ir::Error wrong = log->summarize(findFresh(node, stack), options_.alignBytes, cost)) {
      return ir::makeError(ir::ErrorCode::kUnsupported,
                           graph_.describeNode(node) + ": " + ir::describe(std::move(wrong)));
    }
    return took;
  }

  /// Each time at other addresses: behind blocks that grow.
  ir::Error checkRepeats(ir::NodeId node, const OpCall& call) {
    constexpr int64_t kSmallStep = 512;
    constexpr int64_t kLargeStep = int64_t{2} << 20;
    std::vector<at::Tensor> first;
    int different = 0;
    for (int run = 0; run < options_.repeats; ++run) {
      if (ir::Error error = makeOperands(node, {kSmallStep * run, kLargeStep * run})) return error;
      if (ir::Error error = fillOperands(node)) return error;
      if (ir::Error error = bench_.disturb()) return error;
      at::manual_seed(kSeed);
      ir::Expected<std::vector<at::Tensor>> now = runForBits(node, call);
      if (!now) return now.takeError();
      if (run == 0) {
        first = std::move(*now);
      } else if (!haveSameBits(first, *now)) {
        ++different;
      }
    }
    if (different > 0 && options_.unrepeated != nullptr) {
      options_.unrepeated->push_back({.node = node, .different = different});
    }
    return ir::success();
  }

  /// All that the call writes, as bytes.
  ir::Expected<std::vector<at::Tensor>> runForBits(ir::NodeId node, const OpCall& call) {
    std::vector<c10::IValue> stack;
    ir::Expected<CallTime> took = callOp(node, call, stack);
    if (!took) return took.takeError();
    return callTorch(graph_.describeNode(node), [&] {
      std::vector<at::Tensor> bits;
      forEachResult(stack, [&](const at::Tensor& result) {
        if (result.defined()) bits.push_back(bytesOf(result));
      });
      for (const ir::Access& access : graph_.accesses(node)) {
        if (!access.writes()) continue;
        for (const Operand& operand : operands_) {
          if (operand.storage != access.storage) continue;
          bits.push_back(bytesOf(tensors_.tensor(operand.value)));
        }
      }
      return bits;
    });
  }

  static at::Tensor bytesOf(const at::Tensor& tensor) {
    return tensor.detach().clone(at::MemoryFormat::Contiguous).reshape({-1}).view(at::kByte);
  }

  static bool haveSameBits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(),
                      [](const at::Tensor& x, const at::Tensor& y) { return x.equal(y); });
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
    for (const ir::StorageId storage : freshDeviceResults(graph_, node)) {
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

  const ir::Graph& graph_;
  const CalibrateOptions& options_;
  BoundTensors tensors_;
  OpBench& bench_;
  std::vector<Operand> operands_;
  IntegerRange integers_;  // of operands that are no indices
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

}  // namespace

ir::Error measureOps(const ir::Graph& graph, const CalibrateOptions& options, c10::Device device,
                     OpBench& bench, ir::CostTable& table) {
  auto tensors = BoundTensors::make(graph, device);
  if (!tensors) return tensors.takeError();
  OpMeasurement measurement(graph, options, std::move(*tensors), bench);
  const std::vector<Unmeasured> missing = findUnmeasured(graph, table);
  for (size_t i = 0; i < missing.size(); ++i) {
    if (options.report) options.report(i, missing.size());
    auto cost = measurement.measure(missing[i].node);
    if (!cost) return cost.takeError();
    table.bySignature.emplace(missing[i].signature, *cost);
  }
  return ir::success();
}

}  // namespace stowage::runtime
