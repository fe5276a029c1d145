// SPDX-License-Identifier: Apache-2.0
//
// Functions of the CUDA driver, found by name: the library is linked with no driver.
#ifndef STOWAGE_RUNTIME_CUDA_DRIVER_FUNCTIONS_H_
#define STOWAGE_RUNTIME_CUDA_DRIVER_FUNCTIONS_H_

#include <string>

#include "ir/base/error.h"

namespace stowage::runtime {

/// `purpose` completes "the driver has no cuX, ". Errors: kUnsupported, kCuda.
ir::Expected<void*> findDriverFunction(const char* name, const std::string& purpose);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_DRIVER_FUNCTIONS_H_
