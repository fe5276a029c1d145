// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/pt2_shapes.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <utility>

#include "runtime/capture/fake_tensor.h"
#include "runtime/capture/meta_kernel.h"
#include "runtime/op_call.h"
#include "runtime/torch_boundary.h"

namespace stowage::runtime {
namespace {

/// The same elements at the same places: strides of dimensions of size 1 do not count.
bool samePlaces(const TensorShape& a, const TensorShape& b) {
  if (a.dtype != b.dtype || a.sizes != b.sizes) return false;
  if (llvm::is_contained(a.sizes, 0)) return true;
  for (size_t i = 0; i < a.sizes.size(); ++i) {
    if (a.sizes[i] != 1 && a.strides[i] != b.strides[i]) return false;
  }
  return a.offset == b.offset;
}

std::string listText(const c10::DimVector& numbers) {
  std::string text = "[";
  for (const int64_t number : numbers) {
    text += (text.size() > 1 ? "," : "") + std::to_string(number);
  }
  return text + "]";
}

std::string describe(const TensorShape& shape) {
  return std::string(c10::toString(shape.dtype)) + " " + listText(shape.sizes) + " with strides " +
         listText(shape.strides) + " from element " + std::to_string(shape.offset);
}

class ShapeChecker {
 public:
  ShapeChecker(const Pt2Graph& draft, const ir::Target& target)
      : draft_(draft),
        target_(target),
        device_(target.device == ir::DeviceKind::kCuda ? c10::Device(c10::kCUDA, 0)
                                                       : c10::Device(c10::kCPU)) {}

  void makeTensors() {
    const ir::Graph& graph = draft_.calls;
    std::vector<c10::Storage> storages;
    for (const ir::Storage& storage : graph.storages()) {
      const bool onHost = storage.home == ir::Space::kHost;
      storages.push_back(makeFakeStorage(storage.bytes.value(),
                                         onHost ? c10::Device(c10::kCPU) : device_,
                                         /*hostWritable=*/false));
    }
    for (const ir::Value& value : graph.values()) {
      tensors_.push_back(makeTensor(storages[value.storage.index()], shapeOf(value.type)));
    }
  }

  ir::Error check(ir::NodeId node) {
    const OpFacts& facts = *draft_.ops[node.index()]->facts;
    const bool byRule = facts.resultsBy == ResultsBy::kRule;
    if (!byRule && facts.resultsBy != ResultsBy::kMeta) return ir::success();
    const auto tensorOf = [&](ir::ValueId value) { return tensors_[value.index()]; };
    ir::Expected<OpCall> prepared =
        prepareCall(draft_.calls, node, CallForm::kAsCaptured, tensorOf);
    if (!prepared) return prepared.takeError();
    const TracedCall call{
        .op = facts, .args = prepared->stack, .target = target_, .device = device_};
    ir::Expected<Outputs> outputs = callTorch("libtorch refuses these arguments", [&] {
      const at::AutoDispatchBelowADInplaceOrView below;
      return byRule ? facts.rule(call) : runMetaKernel(call);
    });
    if (!outputs) return malformed(ir::describe(outputs.takeError()));
    return compare(node, *outputs);
  }

 private:
  static ir::Error malformed(const std::string& message) {
    return ir::makeError(ir::ErrorCode::kParse, message);
  }

  ir::Error compare(ir::NodeId id, const Outputs& outputs) const {
    const ir::Node& node = draft_.calls.node(id);
    size_t next = 0;
    for (const Output& output : outputs) {
      for (const OutputTensor& expected : output.tensors) {
        if (next >= node.results.size()) return wrongCount(node, next + 1);
        if (ir::Error error = compare(node.results[next++], expected)) return error;
      }
    }
    return next == node.results.size() ? ir::success() : wrongCount(node, next);
  }

  static ir::Error wrongCount(const ir::Node& node, size_t expected) {
    return malformed("found " + std::to_string(node.results.size()) + " results, expected " +
                     std::to_string(expected));
  }

  ir::Error compare(ir::ValueId found, const OutputTensor& expected) const {
    const bool wanted = expected.kind != OutputTensor::Kind::kUndefined;
    // A result that nothing uses is none in some archives.
    if (!found.isValid()) return ir::success();
    const ir::Value& value = draft_.calls.value(found);
    if (!wanted) return malformed("found result '" + value.name + "', expected none");
    const TensorShape foundShape = shapeOf(value.type);
    const TensorShape expectedShape =
        expected.kind == OutputTensor::Kind::kArgument ? shapeOf(expected.base) : expected.shape;
    if (samePlaces(foundShape, expectedShape)) return ir::success();
    return malformed("found result '" + value.name + "' as " + describe(foundShape) +
                     ", expected " + describe(expectedShape));
  }

  const Pt2Graph& draft_;
  const ir::Target& target_;
  c10::Device device_;
  std::vector<at::Tensor> tensors_;  // by value
};

}  // namespace

ir::Error checkPt2Shapes(const Pt2Program& program, const Pt2Graph& draft,
                         const ir::Target& target) {
  ShapeChecker checker(draft, target);
  if (ir::Error error = callTorch("tensors without memory", [&] { checker.makeTensors(); })) {
    return error;
  }
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    if (ir::Error error = checker.check(ir::NodeId(i))) {
      return inPt2Node(program, i, std::move(error));
    }
  }
  return ir::success();
}

}  // namespace stowage::runtime
