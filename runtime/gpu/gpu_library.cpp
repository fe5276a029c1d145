// SPDX-License-Identifier: Apache-2.0
#include "runtime/gpu/gpu_library.h"

#include <ATen/Context.h>
#include <dlfcn.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>

#include <interface_id.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/ranks/descriptor_exchange.h"
#include "runtime/torch/torch_version.h"

namespace stowage::runtime {

namespace {

GpuLibrary* loadedLibrary = nullptr;

/// What only the library calls, so that programs hold it.
[[gnu::used]] constexpr auto* kForTheLibrary = &exchangeDescriptors;

std::string folderOf(llvm::StringRef file) { return llvm::sys::path::parent_path(file).str(); }

std::string join(llvm::StringRef folder, const std::string& file) {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, file);
  return path.str().str();
}

/// Where the library that holds `symbol` was loaded from.
std::string folderOfLibrary(const void* symbol) {
  Dl_info info;
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return "";
  return folderOf(info.dli_fname);
}

std::string folderOfProgram() {
  llvm::SmallString<256> path;
  if (llvm::sys::fs::real_path("/proc/self/exe", path)) return "";
  return folderOf(path);
}

/// The first of `paths` that loads; otherwise the loader's last word.
ir::Expected<void*> loadFirst(const std::vector<std::string>& paths, const std::string& what,
                              int flags) {
  std::string why;
  for (const std::string& path : paths) {
    if (void* handle = dlopen(path.c_str(), flags)) return handle;
    const char* error = dlerror();
    // A file that is there and does not load says more than one that is not.
    if (why.empty() || llvm::sys::fs::exists(path)) why = error == nullptr ? path : error;
  }
  return ir::makeError(ir::ErrorCode::kEnvironment, what + " could not be loaded: " + why);
}

/// Looked for first: where it is missing, no library of ours or libtorch's would help.
ir::Error loadDriver() {
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr) return ir::success();
  const char* error = dlerror();
  return ir::makeError(ir::ErrorCode::kEnvironment,
                       std::string("this machine has no NVIDIA driver: ") +
                           (error == nullptr ? "libcuda.so.1 does not load" : error));
}

/// libtorch's CUDA kernels register when their library is loaded.
ir::Error loadLibtorchCuda() {
  const std::string beside = folderOfLibrary(reinterpret_cast<const void*>(&at::globalContext));
  for (const char* name : {"libc10_cuda.so", "libtorch_cuda.so"}) {
    ir::Expected<void*> handle =
        loadFirst({join(beside, name)}, "libtorch's CUDA library", RTLD_NOW | RTLD_GLOBAL);
    if (!handle) return handle.takeError();
  }
  return ir::success();
}

/// Whole paths alone: what the loader finds by a bare name may be of the current directory.
std::vector<std::string> candidates() {
  constexpr const char* kName = "libstowage_cuda.so";
  if (const char* given = std::getenv("STOWAGE_CUDA_LIBRARY")) return {given};
  std::vector<std::string> files;
  // Of a program that is linked with us whole, its own folder; of Python's, the package's.
  const std::string ours = folderOfLibrary(reinterpret_cast<const void*>(&loadGpuLibrary));
  for (const std::string& folder : {ours, folderOfProgram()}) {
    if (!folder.empty())
      files.insert(files.end(),
                   {join(folder, kName), join(folder, std::string("../lib/") + kName)});
  }
  llvm::SmallVector<llvm::StringRef, 4> named;
  const char* path = std::getenv("LD_LIBRARY_PATH");
  llvm::StringRef(path == nullptr ? "" : path).split(named, ':');
  for (const llvm::StringRef folder : named) {
    if (llvm::sys::path::is_absolute(folder)) files.push_back(join(folder, kName));
  }
  return files;
}

}  // namespace

std::string describeMemoryCount(const GpuFacts& gpu) {
  if (gpu.countsOwnMemory) return "";
  return "the driver does not say what this process takes of the GPU, as in containers with "
         "process ids of their own: what lies beside the arena is what the whole GPU's use changed "
         "by, other processes included";
}

ir::Expected<GpuLibrary*> loadGpuLibrary() {
  if (loadedLibrary != nullptr) return loadedLibrary;
  if (ir::Error error = loadDriver()) return error;
  if (ir::Error error = loadLibtorchCuda()) {
    return ir::makeError(ir::takePayload(std::move(error))
                             .note(std::string("needed is libtorch ") + torchVersion() +
                                   " for CUDA: name its lib folder in LD_LIBRARY_PATH"));
  }
  ir::Expected<void*> handle =
      loadFirst(candidates(), "Stowage's CUDA library", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return handle.takeError();
  void* symbol = dlsym(*handle, kGpuLibraryEntry);
  if (symbol == nullptr) {
    return ir::makeError(ir::ErrorCode::kEnvironment,
                         std::string("Stowage's CUDA library has no '") + kGpuLibraryEntry + "'");
  }
  GpuLibrary* library = reinterpret_cast<GpuLibraryEntry>(symbol)(STOWAGE_INTERFACE);
  if (library == nullptr) {
    return ir::makeError(ir::ErrorCode::kEnvironment,
                         "Stowage's CUDA library is of another build, expected " STOWAGE_INTERFACE);
  }
  ir::Expected<GpuFacts> facts = library->describe();
  if (!facts) return facts.takeError();
  loadedLibrary = library;
  return library;
}

GpuLibrary* loadedGpuLibrary() { return loadedLibrary; }

}  // namespace stowage::runtime
