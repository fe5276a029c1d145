// SPDX-License-Identifier: Apache-2.0
#include "tests/support/op_agreement.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <numeric>

#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/torch/torch_boundary.h"
#include "tests/support/real_recorder.h"

namespace stowage::tests {
namespace {

const c10::Device kCpu(c10::kCPU);
const c10::Device kGpu(c10::kCUDA, 0);

std::set<std::string>& agreed() {
  static std::set<std::string> ops;
  return ops;
}

std::string nameOf(const std::string& text) { return text.substr(0, text.find(' ')); }

/// The same bytes in the same layout on `device`.
at::Tensor moved(const at::Tensor& tensor, c10::Device device) {
  if (device.is_cpu()) return tensor;
  const auto bytes = static_cast<int64_t>(tensor.storage().nbytes());
  const at::Tensor raw =
      at::empty({0}, tensor.options().dtype(at::kByte)).set_(tensor.storage(), 0, {bytes}, {1});
  return raw.to(device)
      .view(tensor.scalar_type())
      .as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

template <typename Change>
Tensors changed(const Tensors& tensors, Change change) {
  Tensors made;
  for (const at::Tensor& tensor : tensors)
    made.push_back(tensor.defined() ? change(tensor) : tensor);
  return made;
}

ir::Expected<CallTexts> runFake(const OpCase& op, const Tensors& real, c10::Device device) {
  const Tensors fake = changed(real, [&](const at::Tensor& t) { return standIn(t, device); });
  ir::Target target;
  if (device.is_cuda()) target.device = ir::DeviceKind::kCuda;
  return recordFake(target, [&] { op.code(fake); });
}

ir::Expected<CallTexts> runReal(const OpCase& op, const Tensors& inputs, c10::Device device) {
  const Tensors real = changed(inputs, [&](const at::Tensor& t) { return moved(t, device); });
  CallTexts texts;
  ir::Error error = runtime::callTorch("", [&] { texts = recordReal([&] { op.code(real); }); });
  if (error) return error;
  return texts;
}

}  // namespace

at::Tensor standIn(const at::Tensor& real, c10::Device device) {
  const c10::Storage storage =
      runtime::makeFakeStorage(static_cast<int64_t>(real.storage().nbytes()), device, false);
  return runtime::makeTensor(storage, runtime::shapeOf(real));
}

std::string disagreement(const OpCase& op, c10::Device device) {
  const Tensors inputs = op.inputs();
  auto expected = runReal(op, inputs, device);
  if (!expected) return "the real op fails: " + ir::describe(expected.takeError());
  if (expected->empty()) return "the real op made no call";
  auto traced = runFake(op, inputs, device);
  if (!traced) return ir::describe(traced.takeError());
  const std::string difference = firstDifference(*expected, *traced);
  if (difference.empty()) {
    for (const std::string& text : *expected) agreed().insert(nameOf(text));
  }
  return difference;
}

void expectAgreement(const std::vector<OpCase>& cases) {
  for (const OpCase& op : cases) EXPECT_EQ(disagreement(op), "") << op.name;
}

void expectAgreement(const std::function<Tensors()>& inputs, const std::vector<Call>& calls) {
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(disagreement({"", inputs, calls[i]}), "") << "call " << i << " of the list";
  }
}

void expectAgreementOn(const Tensors& tensors, const std::vector<Call>& calls, Where where) {
  for (const c10::Device device : {kCpu, kGpu}) {
    if (device.is_cuda() && (where == Where::kCpu || !at::hasCUDA())) continue;
    for (size_t layout = 0; layout < tensors.size(); ++layout) {
      const auto inputs = [&] { return Tensors{tensors[layout]}; };
      for (size_t i = 0; i < calls.size(); ++i) {
        EXPECT_EQ(disagreement({"", inputs, calls[i]}, device), "")
            << "call " << i << ", layout " << layout << " on " << device;
      }
    }
  }
}

Tensors layoutsOf(const std::vector<int64_t>& shape, at::ScalarType dtype) {
  const auto rand = [&](std::vector<int64_t> sizes) { return at::rand(sizes).to(dtype); };
  std::vector<int64_t> reversed(shape.rbegin(), shape.rend()), order(shape.size());
  std::iota(order.rbegin(), order.rend(), 0);
  std::vector<int64_t> wide = shape, one = shape;
  wide.back() *= 2;
  one.front() = 1;
  Tensors made = {rand(shape), rand(reversed).permute(order),
                  rand(wide).slice(-1, 0, wide.back(), 2), rand(one).expand(shape)};
  if (shape.size() == 4) made.push_back(rand(shape).contiguous(at::MemoryFormat::ChannelsLast));
  if (shape.size() == 5) made.push_back(rand(shape).contiguous(at::MemoryFormat::ChannelsLast3d));
  return made;
}

std::string resultsOnCuda(const std::string& op, const OpCase& code) {
  const Tensors inputs = code.inputs();
  auto traced = runFake(code, inputs, kGpu);
  if (!traced) return ir::describe(traced.takeError());
  if (at::hasCUDA()) {
    auto real = runReal(code, inputs, kGpu);
    if (!real) return "the real op fails: " + ir::describe(real.takeError());
    const std::string difference = firstDifference(*real, *traced);
    if (!difference.empty()) return difference;
  }
  for (const std::string& text : *traced) {
    if (nameOf(text) != op) continue;
    agreed().insert(op);
    return text.substr(text.find("->") + 3);
  }
  return "the tracer saw no call of " + op;
}

const std::set<std::string>& agreedOps() { return agreed(); }

}  // namespace stowage::tests
