// SPDX-License-Identifier: Apache-2.0
//
// Every in-place reuse row of the op table on the real op, on the CPU: the allocation that becomes
// the result is served at the operand's address, and the bytes must be those of a plain call. Sizes
// are above the parallel grain and leave a tail after the vector loop. A control shows that the
// method catches an op that may not do this. Also: batch norm's replay form.

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/randn.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ir/graph/op_table.h"

namespace stowage::ir {
namespace {

constexpr int64_t kElements = 3 * 32768 + 17;

// Forwards to the allocator that was there, counts the calls of one thread, and serves one of them
// at a given address.
class ServingAllocator final : public c10::Allocator {
 public:
  explicit ServingAllocator(c10::Allocator* below) : below_(below) {}

  void arm(int ordinal, void* address, size_t bytes) {
    ordinal_ = ordinal;
    address_ = address;
    bytes_ = bytes;
  }
  const std::vector<void*>& seen() const { return seen_; }

  c10::DataPtr allocate(size_t bytes) override {
    if (std::this_thread::get_id() != owner_) return below_->allocate(bytes);
    const bool isServed = static_cast<int>(seen_.size()) == ordinal_ && bytes == bytes_;
    c10::DataPtr memory =
        isServed ? c10::DataPtr(address_, c10::DeviceType::CPU) : below_->allocate(bytes);
    seen_.push_back(memory.get());
    return memory;
  }
  c10::DeleterFnPtr raw_deleter() const override { return below_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    below_->copy_data(to, from, count);
  }

 private:
  c10::Allocator* below_;
  std::thread::id owner_ = std::this_thread::get_id();
  int ordinal_ = -1;
  void* address_ = nullptr;
  size_t bytes_ = 0;
  std::vector<void*> seen_;
};

class Installed {
 public:
  explicit Installed(c10::Allocator* allocator) : before_(c10::GetCPUAllocator()) {
    c10::SetCPUAllocator(allocator, kHighest);
  }
  ~Installed() { c10::SetCPUAllocator(before_, kHighest); }
  Installed(const Installed&) = delete;
  Installed& operator=(const Installed&) = delete;

 private:
  static constexpr uint8_t kHighest = 255;
  c10::Allocator* before_;
};

c10::OperatorHandle handleOf(const std::string& op) {
  const size_t last = op.rfind('.');
  const std::string overload = op.substr(last + 1);
  const std::string name = "aten::" + op.substr(5, last - 5);
  return c10::Dispatcher::singleton().findSchemaOrThrow(
      name.c_str(), overload == "default" ? "" : overload.c_str());
}

// --- arguments --------------------------------------------------------------------------------

bool isMask(const std::string& op, const std::string& argument) {
  return argument == "mask" || argument == "condition" ||
         (op == "aten.native_dropout_backward.default" && argument == "mask");
}

at::Tensor makeTensor(at::ScalarType dtype, bool mask) {
  at::Tensor tensor = at::randn({kElements});
  return mask ? tensor.gt(0) : tensor.to(dtype);
}

std::optional<c10::IValue> makeNumber(const c10::Argument& argument) {
  switch (argument.type()->kind()) {
    case c10::TypeKind::NumberType:
      return c10::IValue(c10::Scalar(0.5));
    case c10::TypeKind::FloatType:
      return c10::IValue(0.5);
    case c10::TypeKind::BoolType:
      return c10::IValue(false);
    default:
      return std::nullopt;
  }
}

c10::IValue makeArgument(const std::string& op, const c10::Argument& argument,
                         at::ScalarType dtype) {
  if (argument.type()->kind() == c10::TypeKind::TensorType) {
    return makeTensor(dtype, isMask(op, argument.name()));
  }
  const bool isLimit = argument.name() == "min" || argument.name() == "max";
  if (op.rfind("aten.clamp", 0) == 0 && isLimit) {
    if (op.find(".Tensor") != std::string::npos) return makeTensor(dtype, false);
    return c10::Scalar(argument.name() == "min" ? -0.5 : 0.5);
  }
  if (argument.name() == "rounding_mode") return std::string("floor");
  if (argument.default_value()) return *argument.default_value();
  if (std::optional<c10::IValue> number = makeNumber(argument)) return *number;
  ADD_FAILURE() << op << ": no value for " << argument.name();
  return {};
}

torch::jit::Stack makeArguments(const std::string& op, at::ScalarType dtype) {
  torch::jit::Stack stack;
  for (const c10::Argument& argument : handleOf(op).schema().arguments()) {
    stack.push_back(makeArgument(op, argument, dtype));
  }
  return stack;
}

torch::jit::Stack copyTensors(const torch::jit::Stack& stack) {
  torch::jit::Stack copy;
  for (const c10::IValue& value : stack) {
    copy.push_back(value.isTensor() ? c10::IValue(value.toTensor().clone()) : value);
  }
  return copy;
}

// --- the experiment ---------------------------------------------------------------------------

struct Outcome {
  bool landed = false;  // the result really lay on the operand
  bool equal = false;   // and had the bytes of a plain call
};

std::vector<char> bytesOf(const at::Tensor& tensor) {
  const auto* data = static_cast<const char*>(tensor.const_data_ptr());
  return {data, data + tensor.nbytes()};
}

// Calls the op with the allocator in place; the stack holds the results afterwards.
void callWith(ServingAllocator& allocator, const std::string& op, torch::jit::Stack& stack) {
  const c10::OperatorHandle handle = handleOf(op);
  const Installed installed(&allocator);
  handle.callBoxed(stack);
}

Outcome landOnOperand(const std::string& op, size_t operand, at::ScalarType dtype) {
  const torch::jit::Stack arguments = makeArguments(op, dtype);
  torch::jit::Stack plain = copyTensors(arguments);
  ServingAllocator counting(c10::GetCPUAllocator());
  callWith(counting, op, plain);
  const at::Tensor expected = plain[0].toTensor();
  int ordinal = -1;  // the last allocation at that address: earlier ones there were freed
  for (size_t i = 0; i < counting.seen().size(); ++i) {
    if (counting.seen()[i] == expected.const_data_ptr()) ordinal = static_cast<int>(i);
  }

  torch::jit::Stack taken = copyTensors(arguments);
  const at::Tensor target = taken[operand].toTensor();
  ServingAllocator serving(c10::GetCPUAllocator());
  serving.arm(ordinal, target.mutable_data_ptr(), target.nbytes());
  callWith(serving, op, taken);
  const at::Tensor result = taken[0].toTensor();
  return {.landed = result.const_data_ptr() == target.const_data_ptr(),
          .equal = bytesOf(result) == bytesOf(expected)};
}

TEST(InPlaceReuse, GivesTheBitsOfAPlainCallForEveryRow) {
  int rows = 0;
  for (const OpInfo& row : allOps()) {
    for (const int8_t operand : {row.inPlaceOperand, row.inPlaceOperand2}) {
      if (operand < 0) continue;
      ++rows;
      for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
        const Outcome outcome = landOnOperand(row.op, static_cast<size_t>(operand), dtype);
        EXPECT_TRUE(outcome.landed) << row.op << " operand " << int{operand} << " " << dtype;
        EXPECT_TRUE(outcome.equal) << row.op << " operand " << int{operand} << " " << dtype;
      }
    }
  }
  EXPECT_GT(rows, 100);
}

// flip reads elements that it has already overwritten: if this passes, the test above shows
// nothing.
TEST(InPlaceReuse, TheMethodCatchesAnOpThatMayNotDoThis) {
  torch::jit::Stack plain = {at::randn({kElements}), std::vector<int64_t>{0}};
  torch::jit::Stack taken = copyTensors(plain);
  ServingAllocator counting(c10::GetCPUAllocator());
  callWith(counting, "aten.flip.default", plain);
  const at::Tensor expected = plain[0].toTensor();
  int ordinal = -1;
  for (size_t i = 0; i < counting.seen().size(); ++i) {
    if (counting.seen()[i] == expected.const_data_ptr()) ordinal = static_cast<int>(i);
  }
  const at::Tensor target = taken[0].toTensor();
  ServingAllocator serving(c10::GetCPUAllocator());
  serving.arm(ordinal, target.mutable_data_ptr(), target.nbytes());
  callWith(serving, "aten.flip.default", taken);
  ASSERT_EQ(taken[0].toTensor().const_data_ptr(), target.const_data_ptr());
  EXPECT_NE(bytesOf(taken[0].toTensor()), bytesOf(expected));
}

TEST(ReplayForm, OfBatchNormGivesTheSameResultsAndLeavesTheStatistics) {
  const at::Tensor input = at::randn({64, 96});
  const at::Tensor mean = at::randn({96});
  const at::Tensor variance = at::randn({96}).abs();
  for (const char* op :
       {"aten.native_batch_norm.default", "aten._native_batch_norm_legit.default"}) {
    torch::jit::Stack original = {
        input, at::randn({96}), at::randn({96}), mean.clone(), variance.clone(), true, 0.1, 1e-5};
    torch::jit::Stack replay = copyTensors(original);
    replay[3] = c10::IValue();
    replay[4] = c10::IValue();
    const at::Tensor runningMean = original[3].toTensor();
    handleOf(op).callBoxed(original);
    EXPECT_NE(bytesOf(runningMean), bytesOf(mean)) << op;
    handleOf(lookUpOp(op).replayForm).callBoxed(replay);
    ASSERT_EQ(original.size(), replay.size());
    for (size_t i = 0; i < original.size(); ++i) {
      EXPECT_EQ(bytesOf(original[i].toTensor()), bytesOf(replay[i].toTensor())) << op << " " << i;
    }
  }
}

}  // namespace
}  // namespace stowage::ir
