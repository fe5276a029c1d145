// SPDX-License-Identifier: Apache-2.0
#include "tests/support/real_recorder.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>

#include <map>
#include <sstream>

#include "runtime/capture/ops/call_results.h"
#include "runtime/capture/ops/encode_argument.h"
#include "runtime/torch/internals/trace_key.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::tests {
namespace {

using runtime::isWrappedNumber;
using runtime::OpFacts;

/// Turns calls into text. Keeps storages alive, so that no address is used twice.
class CallPrinter {
 public:
  std::string print(const OpFacts& op, llvm::ArrayRef<c10::IValue> args,
                    llvm::ArrayRef<at::Tensor> results) {
    std::string text = op.name;
    runtime::forEachTensor(args, [&](const at::Tensor& tensor) { text += " " + describe(tensor); });
    text += " ->";
    for (const at::Tensor& result : results) text += " " + describe(result);
    return text;
  }

 private:
  std::string describe(const at::Tensor& tensor) {
    if (!tensor.defined()) return "(undefined)";
    if (isWrappedNumber(tensor)) return "(number)";
    const auto [found, isNew] = numbers_.try_emplace(tensor.storage().unsafeGetStorageImpl(),
                                                     static_cast<int>(numbers_.size()));
    if (isNew) kept_.push_back(tensor.storage());
    std::ostringstream text;
    text << "(" << tensor.scalar_type() << tensor.sizes() << " strides=" << tensor.strides()
         << " offset=" << tensor.storage_offset() << " #" << found->second << " "
         << tensor.storage().nbytes() << " B)";
    return text.str();
  }

  std::map<const c10::StorageImpl*, int> numbers_;
  std::vector<c10::Storage> kept_;
};

bool sharesStorage(const at::Tensor& result, llvm::ArrayRef<c10::IValue> args) {
  bool shares = false;
  runtime::forEachTensor(args, [&](const at::Tensor& tensor) {
    shares = shares ||
             tensor.storage().unsafeGetStorageImpl() == result.storage().unsafeGetStorageImpl();
  });
  return shares;
}

ObserveCall& observer() {
  static ObserveCall observe;
  return observe;
}

class RealRecorder : public runtime::CallHandler {
 public:
  void handle(const c10::OperatorHandle& handle, c10::DispatchKeySet keys,
              torch::jit::Stack* stack) override {
    const OpFacts& op = ops_.lookUp(handle);
    const size_t count = op.schema().arguments().size();
    const std::vector<c10::IValue> args(stack->end() - static_cast<std::ptrdiff_t>(count),
                                        stack->end());
    if (observer()) {
      const c10::impl::ExcludeDispatchKeyGuard notRecorded(runtime::kTraceKey);
      observer()(op, args);
    }
    {
      const at::AutoDispatchBelowADInplaceOrView belowAutograd;
      passOn(handle, keys, stack);
    }
    std::vector<at::Tensor> results;
    const size_t returns = op.schema().returns().size();
    for (size_t i = stack->size() - returns; i < stack->size(); ++i) {
      const c10::IValue& value = (*stack)[i];
      if (value.isTensor()) results.push_back(value.toTensor());
      if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) results.push_back(tensor);
      }
    }
    if (counts(op, args, results)) texts.push_back(printer_.print(op, args, results));
  }

  CallTexts texts;

 private:
  static bool counts(const OpFacts& op, llvm::ArrayRef<c10::IValue> args,
                     llvm::ArrayRef<at::Tensor> results) {
    if (op.readsBack || op.changesShape) return false;
    bool anyTensor = false, allNumbers = true;
    runtime::forEachTensor(args, [&](const at::Tensor& tensor) {
      anyTensor = true;
      allNumbers = allNumbers && isWrappedNumber(tensor);
    });
    if (anyTensor && allNumbers) return false;
    const bool isAnswer = results.empty() && !op.schema().returns().empty();
    if (isAnswer && op.writtenArguments.empty()) return false;
    bool onlyViews = !results.empty();
    for (const at::Tensor& result : results) {
      onlyViews = onlyViews && result.defined() && sharesStorage(result, args);
    }
    return !onlyViews || !op.writtenArguments.empty();
  }

  runtime::OpFactsTable ops_;
  CallPrinter printer_;
};

class PrintingSink : public runtime::OpSink {
 public:
  void recordOp(const runtime::TracedCall& call, llvm::ArrayRef<at::Tensor> results) override {
    texts.push_back(printer_.print(call.op, call.args, results));
  }
  void recordReadBack(const at::Tensor&) override {}
  std::string place() const override { return "test"; }

  CallTexts texts;

 private:
  CallPrinter printer_;
};

/// A tracer whose answers can be changed, for tests that must fail.
class EditedTracer : public runtime::CallHandler {
 public:
  EditedTracer(runtime::Tracer& tracer, const EditResults& edit) : tracer_(tracer), edit_(edit) {}

  void handle(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
              torch::jit::Stack* stack) override {
    tracer_.handle(op, keys, stack);
    if (edit_) edit_(ops_.lookUp(op).name, *stack);
  }

 private:
  runtime::Tracer& tracer_;
  const EditResults& edit_;
  runtime::OpFactsTable ops_;
};

}  // namespace

void observeRealCalls(ObserveCall observe) { observer() = std::move(observe); }

CallTexts recordReal(const std::function<void()>& code) {
  RealRecorder recorder;
  const runtime::TracingScope scope(recorder);
  code();
  return std::move(recorder.texts);
}

ir::Expected<CallTexts> recordFake(const ir::Target& target, const std::function<void()>& code,
                                   const EditResults& edit) {
  PrintingSink sink;
  runtime::TracerOptions options;
  options.target = target;
  runtime::Tracer tracer(std::move(options), sink);
  EditedTracer edited(tracer, edit);
  ir::Error error = runtime::callTorch("recording", [&] {
    const runtime::TracingScope scope(edited);
    code();
  });
  if (error) return error;
  return std::move(sink.texts);
}

std::string firstDifference(const CallTexts& real, const CallTexts& fake) {
  for (size_t i = 0; i < std::max(real.size(), fake.size()); ++i) {
    const std::string left = i < real.size() ? real[i] : "(nothing)";
    const std::string right = i < fake.size() ? fake[i] : "(nothing)";
    if (left == right) continue;
    const std::string before = i > 0 ? "\n  before: " + real[i - 1] : "";
    return "call " + std::to_string(i) + before + "\n  real: " + left + "\n  fake: " + right;
  }
  return "";
}

}  // namespace stowage::tests
