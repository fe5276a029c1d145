// SPDX-License-Identifier: Apache-2.0
#include "tools/machine/this_machine.h"

#include <llvm/Support/FileSystem.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "planner/targets/roofline.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/machine/host_need.h"
#include "runtime/torch/torch_version.h"

namespace stowage::tools {

namespace {

bool isGpu(const ir::Target& target) { return target.device == ir::DeviceKind::kCuda; }

/// 91900 -> "9.19", as profiles name it.
std::string cudnnText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100);
}

ir::Expected<ir::Target> describeGpu(const ir::Target& plan) {
  ir::Expected<runtime::GpuLibrary*> library = runtime::loadGpuLibrary();
  if (!library) return library.takeError();
  ir::Expected<runtime::GpuFacts> facts = (*library)->describe();
  if (!facts) return facts.takeError();
  ir::Target machine = plan;
  machine.device = ir::DeviceKind::kCuda;
  machine.computeCapability = facts->computeCapability;
  machine.cudnnVersion = facts->cudnnVersion;
  machine.libraries = {{"cuda", facts->runtime},
                       {"cudnn", cudnnText(facts->cudnnVersion)},
                       {"torch", runtime::torchVersion()}};
  machine.intraOpThreads = 0;
  return machine;
}

}  // namespace

ir::Error openGpuFor(const ir::Target& target) {
  if (!isGpu(target)) return ir::success();
  ir::Expected<runtime::GpuLibrary*> library = runtime::loadGpuLibrary();
  if (library) return ir::success();
  const ir::PlanError why = ir::takePayload(library.takeError());
  ir::PlanError error(ir::ErrorCode::kEnvironment,
                      "the step is for target '" + target.profile +
                          "', a CUDA device, which this machine does not offer");
  error.note(why.text());
  error.notesOf(why);
  return ir::makeError(std::move(error));
}

ir::Expected<bool> hasDevices(ir::DeviceKind device, int64_t count) {
  if (device == ir::DeviceKind::kCpu) {
    return count <= static_cast<int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  }
  ir::Expected<runtime::GpuLibrary*> library = runtime::loadGpuLibrary();
  if (!library) return library.takeError();
  ir::Expected<runtime::GpuFacts> gpu = (*library)->describe();
  if (!gpu) return gpu.takeError();
  return gpu->devices >= count;
}

std::string describeMemoryCount(const ir::Target& target) {
  runtime::GpuLibrary* library = isGpu(target) ? runtime::loadedGpuLibrary() : nullptr;
  if (library == nullptr) return "";
  ir::Expected<runtime::GpuFacts> facts = library->describe();
  if (!facts) {
    (void)ir::takePayload(facts.takeError());  // said by whoever uses the GPU
    return "";
  }
  return runtime::describeMemoryCount(*facts);
}

std::string describeHostLack(const ir::Schedule& schedule, const ir::Target& target) {
  if (isGpu(target) && !llvm::sys::fs::exists("/proc/driver/nvidia/version")) return "";
  ir::Error error = runtime::checkHostMemory(runtime::hostNeedOf(schedule, target.device));
  if (!error) return "";
  const ir::PlanError lack = ir::takePayload(std::move(error));
  std::string text = "this machine cannot run the plan now: " + lack.text();
  for (const std::string& note : lack.notes()) text += "; " + note;
  return text;
}

ir::Expected<ir::Target> describeThisMachine(const ir::Target& plan, int threads) {
  if (isGpu(plan)) return describeGpu(plan);
  ir::Target machine = plan;
  machine.device = ir::DeviceKind::kCpu;
  machine.computeCapability = 0;
  machine.reserved.clear();
  machine.libraries = {{"torch", runtime::torchVersion()}};
  ir::Expected<ir::Target> cpu = planner::findTargetProfile("cpu");
  if (!cpu) return cpu.takeError();
  machine.alignBytes = cpu->alignBytes;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  machine.intraOpThreads = threads > 0 ? threads : std::min(plan.intraOpThreads, cores);
  return machine;
}

}  // namespace stowage::tools
