// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/torch_version.h"

#include <torch/headeronly/version.h>

#define STOWAGE_TEXT_OF(x) #x
#define STOWAGE_DOTTED(major, minor, patch) \
  STOWAGE_TEXT_OF(major) "." STOWAGE_TEXT_OF(minor) "." STOWAGE_TEXT_OF(patch)

namespace stowage::runtime {

const char* torchVersion() {
  return STOWAGE_DOTTED(TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH);
}

}  // namespace stowage::runtime
