// SPDX-License-Identifier: Apache-2.0
//
// stowage doctor: what this machine offers, in the terms plans are made in. Text for people and for
// bug reports.
#include <fmt/format.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "ir/graph/op_table.h"
#include "planner/targets/torch_libraries.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/machine/control_group.h"
#include "runtime/machine/machine_memory.h"
#include "runtime/torch/torch_version.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/printable_stream.h"
#include "tools/verbs/verbs.h"

namespace stowage::tools {

namespace {

using Json = nlohmann::ordered_json;

/// Bytes that may be locked (pinned); -1: no limit.
int64_t lockableBytes() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? -1 : static_cast<int64_t>(limit.rlim_cur);
}

/// The memory limit of this process's control groups; -1: none stated.
int64_t groupLimitBytes() {
  const auto group = runtime::tightestGroup();
  return group ? group->limit.value() : -1;
}

/// The GPU that runs would use, or why there is none.
struct FoundGpu {
  std::optional<runtime::GpuFacts> facts;
  std::string why;
};

FoundGpu findGpu() {
  ir::Expected<runtime::GpuLibrary*> library = runtime::loadGpuLibrary();
  if (!library) return {.facts = std::nullopt, .why = ir::takePayload(library.takeError()).text()};
  ir::Expected<runtime::GpuFacts> facts = (*library)->describe();
  if (!facts) return {.facts = std::nullopt, .why = ir::takePayload(facts.takeError()).text()};
  return {.facts = std::move(*facts), .why = ""};
}

Json toJson(const FoundGpu& gpu) {
  if (!gpu.facts) return nullptr;
  return {{"name", gpu.facts->name},
          {"compute_capability", gpu.facts->computeCapability},
          {"memory_bytes", gpu.facts->memory.value()},
          {"free_bytes", gpu.facts->freeMemory.value()},
          {"driver", gpu.facts->driverVersion},
          {"driver_cuda", gpu.facts->driver},
          {"cuda", gpu.facts->runtime},
          {"cudnn", gpu.facts->cudnnVersion},
          {"counts_own_memory", gpu.facts->countsOwnMemory}};
}

void print(const FoundGpu& gpu, llvm::raw_ostream& os) {
  if (!gpu.facts) {
    os << "gpu        none; steps run on the cpu device (" << gpu.why << ")\n";
    return;
  }
  const std::string version =
      gpu.facts->driverVersion.empty() ? "" : gpu.facts->driverVersion + " ";
  os << fmt::format("gpu        {}, sm_{}, {} ({} free), driver {}for CUDA {}, CUDA {}, cuDNN {}\n",
                    gpu.facts->name, gpu.facts->computeCapability, formatBytes(gpu.facts->memory),
                    formatBytes(gpu.facts->freeMemory), version, gpu.facts->driver,
                    gpu.facts->runtime, gpu.facts->cudnnVersion);
}

std::string limitText(const char* what, int64_t bytes) {
  return bytes < 0 ? std::string("no ") + what : what + (" " + formatBytes(Bytes(bytes)));
}

VerbResult runDoctor(const CommonFlags& flags) {
  const FoundGpu gpu = findGpu();
  Json json = {{"stowage", STOWAGE_VERSION},
               {"torch", runtime::torchVersion()},
               {"torch_was_run_on_gpu", planner::wasRunOnGpu(runtime::torchVersion())},
               {"op_table_version", ir::opTableVersion()},
               {"cores", std::thread::hardware_concurrency()},
               {"memory_bytes", runtime::machineMemory().value()},
               {"usable_memory_bytes", runtime::usableMemory().bytes.value()},
               {"memory_limit_bytes", groupLimitBytes()},
               {"lockable_bytes", lockableBytes()},
               {"gpu", toJson(gpu)}};
  if (!gpu.facts) json["gpu_missing"] = gpu.why;
  if (flags.json) {
    printJson(json);
    return kExitYes;
  }
  llvm::raw_ostream& os = answers();
  const bool wasRun = planner::wasRunOnGpu(runtime::torchVersion());
  os << "stowage    " << STOWAGE_VERSION << ", torch " << runtime::torchVersion()
     << (wasRun ? "" : ", with which no step was run on a GPU yet") << '\n';
  os << "cpu        " << std::thread::hardware_concurrency() << " cores\n";
  os << "memory     " << formatBytes(runtime::machineMemory()) << ", "
     << formatBytes(runtime::usableMemory().bytes) << " free for this process, "
     << limitText("control group limit", groupLimitBytes()) << ", "
     << limitText("limit of locked memory", lockableBytes()) << '\n';
  print(gpu, os);
  return kExitYes;
}

}  // namespace

Verb addDoctorVerb(CLI::App& app) {
  auto flags = std::make_shared<CommonFlags>();
  CLI::App* command =
      app.add_subcommand("doctor", "show what this machine offers and which libraries are in use");
  addCommonFlags(*command, *flags, /*writesFiles=*/false);
  return {.command = command, .run = [flags] { return runDoctor(*flags); }, .flags = flags.get()};
}

}  // namespace stowage::tools
