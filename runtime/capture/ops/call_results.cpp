// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/ops/call_results.h"

#include <ATen/core/List.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "runtime/capture/ops/encode_argument.h"
#include "runtime/capture/ops/meta_kernel.h"
#include "runtime/capture/ops/op_facts.h"
#include "runtime/capture/ops/operand_rules.h"

namespace stowage::runtime {
namespace {

class ResultMaker {
 public:
  ResultMaker(const TracedCall& call, const FakeOrigin& origin) : call_(call), origin_(origin) {}

  at::Tensor make(const OutputTensor& output) {
    switch (output.kind) {
      case OutputTensor::Kind::kUndefined:
        return {};
      case OutputTensor::Kind::kArgument:
        return output.base;
      case OutputTensor::Kind::kView:
        TORCH_CHECK(extentOf(output.shape) <= static_cast<int64_t>(output.base.storage().nbytes()),
                    "it makes a view that reaches outside of its storage");
        return makeTensor(output.base.storage(), output.shape);
      case OutputTensor::Kind::kFresh:
        break;
    }
    TORCH_CHECK_NOT_IMPLEMENTED(!output.shape.conjugated && !output.shape.negated,
                                "its result stands for other numbers than its bytes");
    return makeTensor(storageFor(output), output.shape);
  }

 private:
  c10::Storage storageFor(const OutputTensor& output) {
    for (const auto& [group, storage] : groups_) {
      if (group == output.storageGroup && group >= 0) return storage;
    }
    c10::Storage made =
        makeFakeStorage(std::max(extentOf(output.shape), output.storageBytes),
                        output.device.value_or(call_.device), call_.op.emptyFactory, origin_);
    groups_.emplace_back(output.storageGroup, made);
    return made;
  }

  const TracedCall& call_;
  const FakeOrigin& origin_;
  llvm::SmallVector<std::pair<int32_t, c10::Storage>, 4> groups_;
};

c10::IValue valueOf(const Output& output, llvm::ArrayRef<at::Tensor> tensors) {
  if (!output.isList) return tensors.empty() ? output.plain : c10::IValue(tensors.front());
  c10::List<at::Tensor> list;
  for (const at::Tensor& tensor : tensors) list.push_back(tensor);
  return list;
}

bool isView(const OutputTensor& output) {
  return output.kind == OutputTensor::Kind::kArgument || output.kind == OutputTensor::Kind::kView;
}

}  // namespace

Outputs findOutputs(const TracedCall& call) {
  checkOperands(call);
  if (call.op.resultsBy == ResultsBy::kRule) return call.op.rule(call);
  return call.op.cache != nullptr ? call.op.cache->runMetaKernel(call) : runMetaKernel(call);
}

CallResults makeResults(const TracedCall& call, const FakeOrigin& origin) {
  ResultMaker maker(call, origin);
  CallResults results;
  bool allViews = true;
  for (const Output& output : findOutputs(call)) {
    const size_t first = results.tensors.size();
    for (const OutputTensor& tensor : output.tensors) {
      allViews = allViews && isView(tensor);
      results.tensors.push_back(maker.make(tensor));
    }
    results.values.push_back(
        valueOf(output, llvm::ArrayRef<at::Tensor>(results.tensors).drop_front(first)));
  }
  results.onlyViews = allViews && !results.tensors.empty();
  return results;
}

c10::Device deviceOfCall(llvm::ArrayRef<c10::IValue> args) {
  for (const c10::IValue& value : args) {
    if (!value.isDevice()) continue;
    // "cuda" without a number is the only device that a step has.
    const c10::Device named = value.toDevice();
    return named.is_cpu() || named.has_index() ? named : c10::Device(named.type(), 0);
  }
  c10::Device device(c10::kCPU);
  forEachTensor(args, [&](const at::Tensor& tensor) {
    if (device.is_cpu()) device = tensor.device();
  });
  return device;
}

}  // namespace stowage::runtime
