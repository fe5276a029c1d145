// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/nccl_functions.h"

#include <dlfcn.h>

namespace stowage::runtime {

namespace {

constexpr const char* kLibrary = "libnccl.so.2";

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

ir::Expected<NcclFunctions> findNccl() {
  // libtorch_cuda needs it, so it is there already.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) library = dlopen(kLibrary, RTLD_NOW);
  if (library == nullptr) {
    return ir::makeError(ir::ErrorCode::kEnvironment,
                         std::string("several ranks with GPUs need NCCL: ") + dlerror());
  }
  NcclFunctions nccl{};
  const bool isWhole =
      find(library, "ncclGetUniqueId", nccl.getId) &&
      find(library, "ncclCommInitRank", nccl.join) &&
      find(library, "ncclCommDestroy", nccl.leave) && find(library, "ncclCommAbort", nccl.abort) &&
      find(library, "ncclAllGather", nccl.allGather) && find(library, "ncclSend", nccl.send) &&
      find(library, "ncclRecv", nccl.receive) && find(library, "ncclGroupStart", nccl.beginGroup) &&
      find(library, "ncclGroupEnd", nccl.endGroup) &&
      find(library, "ncclGetErrorString", nccl.statusText);
  if (isWhole) return nccl;
  return ir::makeError(ir::ErrorCode::kEnvironment,
                       std::string(kLibrary) + " lacks functions, expected NCCL 2.7 or later");
}

}  // namespace stowage::runtime
