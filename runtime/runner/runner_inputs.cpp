// SPDX-License-Identifier: Apache-2.0
//
// Inputs of a step: are they what was captured, and where are their bytes?
#include <string>

#include "runtime/runner/runner_impl.h"

namespace stowage::runtime {

ir::Error Runner::Impl::checkInputs(llvm::ArrayRef<at::Tensor> inputs) const {
  const std::vector<ir::ValueId>& expected = captured.inputs();
  if (inputs.size() != expected.size()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument, "found " + std::to_string(inputs.size()) +
                                                              " inputs, expected " +
                                                              std::to_string(expected.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Value& value = captured.graph().value(expected[i]);
    const bool fits = inputs[i].defined() && inputs[i].device().is_cpu() &&
                      toDType(inputs[i].scalar_type()) == value.type.dtype &&
                      llvm::ArrayRef<int64_t>(inputs[i].sizes().data(), inputs[i].sizes().size()) ==
                          llvm::ArrayRef<int64_t>(value.type.sizes);
    if (fits) continue;
    const std::string found =
        inputs[i].defined() ? ir::listText({inputs[i].sizes().data(), inputs[i].sizes().size()}) +
                                  " of " + c10::toString(inputs[i].scalar_type())
                            : "nothing";
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "input '" + captured.graph().storage(value.storage).name + "': found " +
                             found + ", expected " + ir::listText(value.type.sizes) + " of " +
                             ir::dtypeName(value.type.dtype) + " on the CPU");
  }
  return captured.keepsLayouts() ? checkLayouts(inputs) : ir::success();
}

/// Kernels choose their order by strides, and with it what they draw and how they round.
ir::Error Runner::Impl::checkLayouts(llvm::ArrayRef<at::Tensor> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Value& value = captured.graph().value(captured.inputs()[i]);
    if (hasLayout(inputs[i], value.type)) continue;
    return ir::makeError(
        ir::ErrorCode::kInvalidArgument,
        "input '" + captured.graph().storage(value.storage).name + "': found strides " +
            ir::listText({inputs[i].strides().data(), inputs[i].strides().size()}) + ", expected " +
            ir::listText(value.type.strides) +
            " as in the example that was captured: give both the same layout (contiguous(), or "
            "contiguous(at::MemoryFormat::ChannelsLast))");
  }
  return ir::success();
}

/// The bytes of an input as the plan's place for it holds them.
llvm::ArrayRef<uint8_t> Runner::Impl::inputBytes(const ir::Value& value,
                                                 const at::Tensor& laidOut) const {
  if (!captured.keepsLayouts()) {
    return {static_cast<const uint8_t*>(laidOut.data_ptr()), laidOut.nbytes()};
  }
  const Bytes bytes = captured.graph().storage(value.storage).bytes;
  return {static_cast<const uint8_t*>(laidOut.data_ptr()), static_cast<size_t>(bytes.value())};
}

}  // namespace stowage::runtime
