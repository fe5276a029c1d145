// SPDX-License-Identifier: Apache-2.0
//
// Names of libtorch's enumerations in the IR and back: element types, layouts, memory formats.
// Both directions agree; what the IR has no name for gives nothing.
#ifndef STOWAGE_RUNTIME_TORCH_TYPES_H_
#define STOWAGE_RUNTIME_TORCH_TYPES_H_

#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>
#include <llvm/ADT/StringRef.h>

#include <optional>

#include "ir/type.h"

namespace stowage::runtime {

std::optional<ir::DType> findDType(c10::ScalarType type);
c10::ScalarType scalarType(ir::DType dtype);

/// "contiguous", "preserve", "channels_last", "channels_last_3d".
const char* memoryFormatName(c10::MemoryFormat format);
std::optional<c10::MemoryFormat> findMemoryFormat(llvm::StringRef name);

/// "strided"; null for every other layout, none of which can be captured.
const char* findLayoutName(c10::Layout layout);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_TYPES_H_
