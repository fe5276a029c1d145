// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/ops/output_cache.h"

#include <c10/core/DefaultDtype.h>
#include <llvm/ADT/STLExtras.h>

#include <utility>
#include <vector>

#include "runtime/capture/ops/call_results.h"
#include "runtime/capture/ops/encode_argument.h"
#include "runtime/capture/ops/meta_kernel.h"
#include "runtime/capture/ops/op_facts.h"

namespace stowage::runtime {
namespace {

constexpr size_t kMostKept = 4096;  // of one op

/// Writes down what the outputs of a call depend on.
class KeyWriter {
 public:
  explicit KeyWriter(const TracedCall& call) : call_(call) {
    forEachTensor(call.args, [&](const at::Tensor& tensor) { tensors_.push_back(tensor); });
  }

  /// False when something among the arguments has no key.
  bool write() {
    put(static_cast<int64_t>(c10::get_default_dtype_as_scalartype()));
    put(static_cast<int64_t>(call_.device.type()));
    for (const c10::IValue& value : call_.args) {
      if (!writeValue(value)) return false;
    }
    return true;
  }

  std::string take() { return std::move(key_); }
  const std::vector<at::Tensor>& tensors() const { return tensors_; }

 private:
  void put(int64_t number) { key_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  void put(double number) { key_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  void tag(char letter) { key_.push_back(letter); }

  bool writeValue(const c10::IValue& value) {
    if (value.isNone()) {
      tag('n');
    } else if (value.isTensor()) {
      writeTensor(value.toTensor());
    } else if (value.isBool()) {
      tag(value.toBool() ? 't' : 'f');
    } else if (value.isInt()) {
      tag('i');
      put(value.toInt());
    } else if (value.isDouble()) {
      writeDouble(value.toDouble());
    } else if (value.isDevice()) {
      tag('d');
      put(static_cast<int64_t>(value.toDevice().type()));
    } else if (value.isString()) {
      tag('s');
      put(static_cast<int64_t>(value.toStringRef().size()));
      key_ += value.toStringRef();
    } else {
      return writeList(value);
    }
    return true;
  }

  /// A factory may count by it; an op on tensors computes with it.
  void writeDouble(double number) {
    tag('x');
    if (tensors_.empty()) put(number);
  }

  bool writeList(const c10::IValue& value) {
    if (!value.isList()) return false;
    tag('l');
    const auto list = value.toListRef();
    put(static_cast<int64_t>(list.size()));
    return llvm::all_of(list, [&](const c10::IValue& element) { return writeValue(element); });
  }

  void writeTensor(const at::Tensor& tensor) {
    if (!tensor.defined()) return tag('u');
    tag('T');
    const c10::StorageImpl* impl = tensor.storage().unsafeGetStorageImpl();
    put(static_cast<int64_t>(tensor.scalar_type()));
    put(static_cast<int64_t>(isWrappedNumber(tensor)) | tensor.is_conj() << 1 |
        tensor.is_neg() << 2 | static_cast<int64_t>(tensor.device().type()) << 3);
    put(positionOf([&](const at::Tensor& other) { return other.is_same(tensor); }));
    put(positionOf(
        [&](const at::Tensor& other) { return other.storage().unsafeGetStorageImpl() == impl; }));
    put(static_cast<int64_t>(tensor.storage().nbytes()));
    put(tensor.storage_offset());
    put(tensor.dim());
    for (const int64_t size : tensor.sizes()) put(size);
    for (const int64_t stride : tensor.strides()) put(stride);
  }

  template <typename IsIt>
  int64_t positionOf(IsIt isIt) const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (isIt(tensors_[i])) return static_cast<int64_t>(i);
    }
    return -1;
  }

  const TracedCall& call_;
  std::vector<at::Tensor> tensors_;
  std::string key_;
};

int32_t positionOf(const std::vector<at::Tensor>& tensors, const at::Tensor& tensor) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].is_same(tensor)) return static_cast<int32_t>(i);
  }
  return -1;
}

template <typename Visit>
void forEachBase(Outputs& outputs, Visit visit) {
  for (Output& output : outputs) {
    for (OutputTensor& tensor : output.tensors) visit(tensor.base);
  }
}

}  // namespace

Outputs OutputCache::runMetaKernel(const TracedCall& call) {
  KeyWriter writer(call);
  if (!writer.write()) return runtime::runMetaKernel(call);
  const std::vector<at::Tensor>& tensors = writer.tensors();
  std::string key = writer.take();
  if (const auto found = kept_.find(key); found != kept_.end()) {
    Outputs outputs = found->second.outputs;
    auto position = found->second.baseOf.begin();
    forEachBase(outputs, [&](at::Tensor& base) {
      const int32_t at = *position++;
      if (at >= 0) base = tensors[static_cast<size_t>(at)];
    });
    return outputs;
  }
  Outputs outputs = runtime::runMetaKernel(call);
  Kept kept{.outputs = outputs, .baseOf = {}};
  bool isComplete = kept_.size() < kMostKept;
  forEachBase(kept.outputs, [&](at::Tensor& base) {
    const int32_t at = base.defined() ? positionOf(tensors, base) : -1;
    isComplete = isComplete && (!base.defined() || at >= 0);
    kept.baseOf.push_back(at);
    base.reset();
  });
  for (const Output& output : outputs) isComplete = isComplete && !output.plain.isTensor();
  if (isComplete) kept_.emplace(std::move(key), std::move(kept));
  return outputs;
}

}  // namespace stowage::runtime
