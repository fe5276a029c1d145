// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/torch_version.h"

#include <caffe2/core/common.h>
#include <torch/headeronly/version.h>

#define STOWAGE_TEXT_OF(x) #x
#define STOWAGE_DOTTED(major, minor, patch) \
  STOWAGE_TEXT_OF(major) "." STOWAGE_TEXT_OF(minor) "." STOWAGE_TEXT_OF(patch)

namespace stowage::runtime {

const char* torchVersion() {
  return STOWAGE_DOTTED(TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH);
}

// Not at::show_config, which asks CUDA as well.
std::string loadedTorchVersion() {
  const auto& options = caffe2::GetBuildOptions();
  const auto found = options.find("TORCH_VERSION");
  return found == options.end() ? "" : found->second;
}

ir::Error checkLoadedTorch(llvm::StringRef loaded) {
  if (loaded.empty() || loaded == torchVersion()) return ir::success();
  return ir::makeError(ir::ErrorCode::kEnvironment,
                       "the libtorch that was loaded is " + loaded.str() + ", expected torch " +
                           torchVersion() + ", which this was built with: see LD_LIBRARY_PATH");
}

}  // namespace stowage::runtime
