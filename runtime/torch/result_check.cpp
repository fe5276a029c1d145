// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/result_check.h"

#include <llvm/ADT/ArrayRef.h>

#include "runtime/torch/torch_types.h"

namespace stowage::runtime {

namespace {

std::string compareLists(const char* what, c10::IntArrayRef found,
                         llvm::ArrayRef<int64_t> expected) {
  const llvm::ArrayRef<int64_t> own(found.data(), found.size());
  if (own == expected) return "";
  return std::string("has ") + what + " " + ir::listText(own) + ", expected " +
         ir::listText(expected);
}

}  // namespace

std::string findDifference(const at::Tensor& result, const ir::TensorType& type,
                           const void* address) {
  if (!result.defined()) return "is undefined";
  if (result.scalar_type() != toScalarType(type.dtype)) {
    return std::string("has dtype ") + c10::toString(result.scalar_type()) + ", expected " +
           ir::dtypeName(type.dtype);
  }
  if (std::string wrong = compareLists("sizes", result.sizes(), type.sizes); !wrong.empty()) {
    return wrong;
  }
  // Without elements there are no bytes to be read wrongly.
  if (result.numel() == 0) return "";
  if (std::string wrong = compareLists("strides", result.strides(), type.strides); !wrong.empty()) {
    return wrong;
  }
  if (result.const_data_ptr() == address) return "";
  const auto distance =
      static_cast<const char*>(result.const_data_ptr()) - static_cast<const char*>(address);
  return "of " + std::to_string(type.extentBytes().value()) + " bytes lies " +
         std::to_string(distance) + " bytes from its planned address";
}

}  // namespace stowage::runtime
