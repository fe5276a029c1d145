// SPDX-License-Identifier: Apache-2.0
#include "planner/targets/torch_libraries.h"

#include <llvm/ADT/STLExtras.h>

#include <array>
#include <string>

namespace stowage::planner {

namespace {

struct Libraries {
  const char* torch;
  const char* cuda;
  int cudnn;        // 10000 * major + 100 * minor
  bool isRunOnGpu;  // tests/gpu/RESULTS.md
};

// From the wheels' METADATA on PyPI.
constexpr std::array<Libraries, 2> kLibraries = {{{"2.11.0", "13.0", 91900, true},  //
                                                  {"2.15.0", "13.2", 92600, false}}};

}  // namespace

std::string supportedTorches() {
  std::string text;
  for (const Libraries& one : kLibraries) {
    if (!text.empty()) text += " or ";
    text += one.torch;
  }
  return text;
}

bool wasRunOnGpu(llvm::StringRef version) {
  return llvm::any_of(kLibraries,
                      [&](const Libraries& one) { return version == one.torch && one.isRunOnGpu; });
}

ir::Error setTorch(ir::Target& target, llvm::StringRef version) {
  const auto* found =
      llvm::find_if(kLibraries, [&](const Libraries& one) { return version == one.torch; });
  if (found == kLibraries.end()) {
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         "found torch '" + version.str() + "', expected " + supportedTorches());
  }
  target.libraries = {{"torch", found->torch}};
  if (target.device != ir::DeviceKind::kCuda) return ir::success();
  const int major = found->cudnn / 10'000;
  const int minor = found->cudnn / 100 % 100;
  target.cudnnVersion = found->cudnn;
  target.libraries = {{"cuda", found->cuda},
                      {"cudnn", std::to_string(major) + "." + std::to_string(minor)},
                      {"torch", found->torch}};
  return ir::success();
}

std::string torchOf(const ir::Graph& graph) {
  const llvm::StringRef producer = graph.provenance().producer;
  const size_t place = producer.rfind("torch ");
  if (place == llvm::StringRef::npos) return "";
  return producer.substr(place).split(' ').second.take_until([](char c) { return c == ','; }).str();
}

}  // namespace stowage::planner
