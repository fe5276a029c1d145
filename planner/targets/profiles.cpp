// SPDX-License-Identifier: Apache-2.0
//
// Devices as data. Dense matrix rates without sparsity, memory bandwidths and sizes are the
// vendor's published figures: NVIDIA's data sheets of A100 80GB, H100 and H200 SXM, GH200 (96 GB
// HBM3), HGX B200, A10G, L4 and L40S, and its GA102, Ada and Blackwell white papers for GeForce
// cards. GeForce rates are those with f32 accumulation. A memory size is what the driver leaves of
// the published one, in whole GiB. Links, pinned memory, one direction alone:
//   h100, h200  measured on one of each: 55 GB/s; 50 and 51 GB/s in each while both run
//   gh200       measured by Schieffer et al. (arXiv 2407.07850): 297 GB/s to the host, 375 GB/s
//               back over NVLink-C2C. While both run they share the host's published 384 GB/s.
//   others      what their PCIe generation carries in practice
// Host memory, for updates on the host beside copies in both directions: 65 GB/s was measured on
// the machine of an H200 (12 of its 16 cores, fused AdamW: 4.6 G parameters/s in bf16, 2.4 in f32,
// 14 and 28 bytes each); for other servers the same, less for smaller and desktop machines, not
// measured. Beside such updates, copies to that H200 kept 72 % of their rate. Disks: no disk in
// particular; both ways at once, each direction of the H200's machine kept 30 to 50 % of its rate.
// Between ranks, collectives of NCCL: on two H100 of one host a rank received 220 to 320 GB/s from
// the other in large ones and needed 40 us for small ones, and matrix products beside them kept 66
// % of their rate; for other GPUs with NVLink as much of its published rate, not measured; for
// cards without it half of the copies' rate, since the bytes go through the host. Workspaces are
// libtorch's defaults for the architecture.
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>

#include <vector>

#include "planner/targets/roofline.h"
#include "planner/targets/torch_libraries.h"

namespace stowage::planner {

namespace {

constexpr int64_t kGiga = 1'000'000'000;
constexpr int64_t kTera = 1'000 * kGiga;
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kOutside = 800 * kMiB;  // 720 to 755 MiB on an H200 with libtorch 2.11
constexpr int kDiskBothPermille = 400;
constexpr int kBesideHostPermille = 720;
constexpr int kBesideRanksPermille = 660;

struct GpuFigures {
  const char* name;
  int computeCapability;
  int64_t memoryGiB;
  int64_t bf16TeraFlops;
  int64_t f32GigaFlops;
  int64_t memoryGigaBytes;  // per second
  int64_t toHostGigaBytes;  // per second, one direction alone
  int64_t toDeviceGigaBytes;
  int bothPermille;
  int64_t hostGigaBytes;   // per second, of host memory, that updates have beside copies
  int64_t ranksGigaBytes;  // per second, that a rank receives from the others
  int64_t cublasWorkspace;
};

// From Hopper on libtorch gives cuBLAS 32 MiB, before that 8 MiB and some.
constexpr int64_t kSmallWorkspace = 8'519'680;
// The first of a capability stands for the GPUs of that capability without a profile.
constexpr GpuFigures kGpus[] = {
    {"a100", 80, 79, 312, 19'500, 2'039, 25, 25, 900, 65, 170, kSmallWorkspace},
    {"a10g", 86, 21, 70, 31'500, 600, 25, 25, 900, 40, 12, kSmallWorkspace},
    {"rtx3090", 86, 23, 71, 35'600, 936, 25, 25, 900, 30, 12, kSmallWorkspace},
    {"l40s", 89, 44, 362, 91'600, 864, 25, 25, 900, 65, 12, kSmallWorkspace},
    {"l4", 89, 21, 121, 30'300, 300, 25, 25, 900, 40, 12, kSmallWorkspace},
    {"rtx4090", 89, 23, 165, 82'600, 1'008, 25, 25, 900, 30, 12, kSmallWorkspace},
    {"h100", 90, 79, 989, 67'000, 3'350, 55, 55, 905, 65, 260, 32 * kMiB},
    {"h200", 90, 139, 989, 67'000, 4'800, 55, 55, 927, 65, 260, 32 * kMiB},
    {"gh200", 90, 94, 989, 67'000, 4'000, 297, 375, 570, 65, 260, 32 * kMiB},
    {"b200", 100, 178, 2'250, 75'000, 7'700, 55, 55, 900, 65, 520, 32 * kMiB},
    {"rtx5090", 120, 31, 209, 104'800, 1'792, 50, 50, 900, 30, 25, 32 * kMiB},
};

ir::LinkRate linkOf(int64_t gigaBytes) {
  return {.bandwidth = BytesPerSecond(gigaBytes * kGiga), .latency = Nanoseconds(10'000)};
}

ir::Target makeGpu(const GpuFigures& gpu) {
  ir::Target target;
  target.profile = gpu.name;
  target.device = ir::DeviceKind::kCuda;
  target.reserved = {
      {.what = "cublas", .stream = 0, .offset = Bytes(0), .bytes = Bytes(gpu.cublasWorkspace)},
      {.what = "cublaslt", .stream = 0, .offset = Bytes(0), .bytes = Bytes(kMiB)}};
  target.memory = Bytes(gpu.memoryGiB * kGiB);
  target.outside = Bytes(kOutside);
  target.flopsPerSecond = {{ir::DType::kF32, gpu.f32GigaFlops * kGiga},
                           {ir::DType::kF16, gpu.bf16TeraFlops * kTera},
                           {ir::DType::kBF16, gpu.bf16TeraFlops * kTera}};
  target.memoryBandwidth = BytesPerSecond(gpu.memoryGigaBytes * kGiga);
  target.kernelOverhead = Nanoseconds(2'500);
  target.links = {.deviceToHost = linkOf(gpu.toHostGigaBytes),
                  .hostToDevice = linkOf(gpu.toDeviceGigaBytes),
                  .diskRead = linkOf(5),
                  .diskWrite = linkOf(3),
                  .bothPermille = gpu.bothPermille,
                  .diskBothPermille = kDiskBothPermille,
                  .besideHostPermille = kBesideHostPermille,
                  .hostUpdates = BytesPerSecond(gpu.hostGigaBytes * kGiga),
                  .betweenRanks = {.bandwidth = BytesPerSecond(gpu.ranksGigaBytes * kGiga),
                                   .latency = Nanoseconds(40'000)},
                  .besideRanksPermille = kBesideRanksPermille};
  target.computeCapability = gpu.computeCapability;
  return target;
}

/// A small machine without a GPU: rates that two cores reach, links at the speed of a memory copy.
ir::Target makeCpu() {
  ir::Target target;
  target.profile = "cpu";
  target.device = ir::DeviceKind::kCpu;
  target.intraOpThreads = 2;
  target.memory = Bytes(16 * kGiB);
  target.flopsPerSecond = {
      {ir::DType::kF32, 80 * kGiga}, {ir::DType::kF64, 40 * kGiga}, {ir::DType::kBF16, 80 * kGiga}};
  target.memoryBandwidth = BytesPerSecond(10 * kGiga);
  target.kernelOverhead = Nanoseconds(2'000);
  target.links = {.deviceToHost = linkOf(4),
                  .hostToDevice = linkOf(4),
                  .diskRead = linkOf(1),
                  .diskWrite = linkOf(1),
                  .bothPermille = 700,
                  .diskBothPermille = kDiskBothPermille,
                  .betweenRanks = linkOf(1)};
  return target;
}

std::vector<ir::Target> makeProfiles() {
  std::vector<ir::Target> profiles;
  profiles.push_back(makeCpu());
  for (const GpuFigures& gpu : kGpus) profiles.push_back(makeGpu(gpu));
  for (ir::Target& profile : profiles) llvm::cantFail(setTorch(profile, kDefaultTorch));
  llvm::sort(profiles,
             [](const ir::Target& a, const ir::Target& b) { return a.profile < b.profile; });
  return profiles;
}

std::string profileNames() {
  std::vector<std::string> names;
  for (const ir::Target& profile : targetProfiles()) names.push_back(profile.profile);
  return llvm::join(names, ", ");
}

ir::Expected<ir::Target> withTorch(ir::Target target, llvm::StringRef torch) {
  if (ir::Error error = setTorch(target, torch)) return error;
  return target;
}

}  // namespace

const std::vector<ir::Target>& targetProfiles() {
  static const std::vector<ir::Target> kProfiles = makeProfiles();
  return kProfiles;
}

ir::Expected<ir::Target> findTargetProfile(llvm::StringRef name, llvm::StringRef torch) {
  for (const ir::Target& profile : targetProfiles()) {
    if (profile.profile == name) return withTorch(profile, torch);
  }
  return ir::makeError(ir::ErrorCode::kInvalidArgument, "unknown target profile '" + name.str() +
                                                            "', expected one of " + profileNames());
}

bool namesProfile(llvm::StringRef productName, llvm::StringRef profile) {
  const std::string text = productName.lower();
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (llvm::isAlnum(c)) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  for (size_t first = 0; first < words.size(); ++first) {
    std::string name;
    for (size_t i = first; i < words.size() && name.size() < profile.size(); ++i) name += words[i];
    if (profile == name) return true;
  }
  return false;
}

ir::Expected<ir::Target> findProfileOfGpu(llvm::StringRef productName, int computeCapability,
                                          llvm::StringRef torch) {
  const GpuFigures* alike = nullptr;
  for (const GpuFigures& gpu : kGpus) {
    if (gpu.computeCapability != computeCapability) continue;
    if (namesProfile(productName, gpu.name)) return withTorch(makeGpu(gpu), torch);
    if (alike == nullptr) alike = &gpu;
  }
  if (alike != nullptr) return withTorch(makeGpu(*alike), torch);
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "no target profile has the compute capability of '" + productName.str() +
                           "' (" + std::to_string(computeCapability) + "), there are " +
                           profileNames());
}

}  // namespace stowage::planner
