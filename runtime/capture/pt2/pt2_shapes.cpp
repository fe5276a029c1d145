// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/pt2/pt2_shapes.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <utility>

#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/capture/ops/call_results.h"
#include "runtime/capture/trace/trace.h"
#include "runtime/torch/op_call.h"
#include "runtime/torch/torch_boundary.h"
#include "runtime/torch/torch_types.h"

namespace stowage::runtime {
namespace {

std::string describe(const ir::TensorType& type) {
  return std::string(ir::dtypeName(type.dtype)) + " " + ir::listText(type.sizes) +
         " with strides " + ir::listText(type.strides) + " from element " +
         std::to_string(type.offset);
}

bool isFloatingPoint(const ir::TensorType& type) {
  return at::isFloatingType(toScalarType(type.dtype));
}

ir::Error malformed(const std::string& message) {
  return ir::makeError(ir::ErrorCode::kParse, message);
}

}  // namespace

bool atSamePlaces(const ir::TensorType& a, const ir::TensorType& b) {
  if (a.dtype != b.dtype || a.sizes != b.sizes) return false;
  if (llvm::is_contained(a.sizes, 0)) return true;
  for (size_t i = 0; i < a.sizes.size(); ++i) {
    if (a.sizes[i] != 1 && a.strides[i] != b.strides[i]) return false;
  }
  return a.offset == b.offset;
}

Pt2Results::Pt2Results(Outputs outputs) : known_(true) {
  for (Output& output : outputs) {
    for (OutputTensor& tensor : output.tensors) tensors_.push_back(std::move(tensor));
  }
}

ir::Expected<Pt2ResultType> Pt2Results::next(const std::string& name, const ir::TensorType& found,
                                             bool mayMove) {
  if (!known_) return Pt2ResultType{.type = found, .storage = found.extentBytes()};
  const size_t position = next_++;
  if (position >= tensors_.size()) return malformed("found result '" + name + "', expected none");
  const OutputTensor& made = tensors_[position];
  if (made.kind == OutputTensor::Kind::kUndefined) {
    return malformed("found result '" + name + "', expected none");
  }
  Pt2ResultType result;
  result.type =
      irType(made.kind == OutputTensor::Kind::kArgument ? shapeOf(made.base) : made.shape);
  const bool isFresh = made.kind == OutputTensor::Kind::kFresh;
  ir::TensorType traced = found;
  const bool isRounded = isFresh && isFloatingPoint(found) && isFloatingPoint(result.type);
  const bool isViewOfMoved = mayMove && !isFresh;
  if (isRounded || isViewOfMoved) traced.dtype = result.type.dtype;
  const bool same = atSamePlaces(traced, result.type);
  const bool moved = mayMove && traced.dtype == result.type.dtype &&
                     found.sizes == result.type.sizes &&
                     (!isFresh || (found.offset == 0 && found.isDense()));
  if (!same && !moved) {
    return malformed("found result '" + name + "' as " + describe(found) + ", expected " +
                     describe(result.type));
  }
  result.storage = std::max(result.type.extentBytes(), Bytes(made.storageBytes));
  result.group = made.storageGroup;
  return result;
}

ir::Error Pt2Results::checkCount() const {
  if (!known_ || next_ == tensors_.size()) return ir::success();
  return malformed("found " + std::to_string(next_) + " results, expected " +
                   std::to_string(tensors_.size()));
}

ir::Expected<Pt2Results> Pt2Shapes::findResults(const OpFacts& op, const ir::Node& call) const {
  const bool byRule = op.resultsBy == ResultsBy::kRule;
  if (op.ruleOnlyForCpu && values_.device().is_cuda()) return Pt2Results();
  if (!byRule && op.resultsBy != ResultsBy::kMeta) return Pt2Results();
  ir::Expected<OpCall> prepared =
      prepareCall(call, [&](ir::ValueId value) { return values_.tensorOf(value); });
  if (!prepared) return prepared.takeError();
  const TracedCall traced{
      .op = op, .args = prepared->stack, .target = target_, .device = values_.device()};
  ir::Expected<Outputs> outputs = callTorch("libtorch refuses these arguments", [&] {
    const at::AutoDispatchBelowADInplaceOrView below;
    return findOutputs(traced);
  });
  if (!outputs) return malformed(ir::describe(outputs.takeError()));
  return Pt2Results(std::move(*outputs));
}

}  // namespace stowage::runtime
