// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/torch_version.h"

#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#define STOWAGE_TEXT_OF(x) #x
#define STOWAGE_DOTTED(major, minor, patch) \
  STOWAGE_TEXT_OF(major) "." STOWAGE_TEXT_OF(minor) "." STOWAGE_TEXT_OF(patch)

namespace stowage::runtime {

const char* torchVersion() {
  return STOWAGE_DOTTED(TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH);
}

std::string versionInConfig(llvm::StringRef config) {
  const llvm::StringRef rest = config.split("TORCH_VERSION=").second;
  return rest.take_while([](char c) { return c != ',' && c != ' ' && c != '\n'; }).str();
}

ir::Error checkLoadedTorch() {
  const std::string loaded = versionInConfig(at::show_config());
  if (loaded.empty() || loaded == torchVersion()) return ir::success();
  return ir::makeError(ir::ErrorCode::kEnvironment,
                       "the libtorch that was loaded is " + loaded + ", expected torch " +
                           torchVersion() + ", which this was built with: see LD_LIBRARY_PATH");
}

}  // namespace stowage::runtime
