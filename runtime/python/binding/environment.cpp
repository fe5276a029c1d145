// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/binding/environment.h"

#include <nlohmann/json.hpp>

#include "planner/targets/roofline.h"
#include "runtime/launch/launched_rank.h"
#include "runtime/python/binding/throw_error.h"
#include "runtime/torch/internals/fake_gpu.h"
#include "runtime/torch/torch_version.h"

namespace stowage::python {

std::string environment() {
  nlohmann::ordered_json profiles = nlohmann::ordered_json::array();
  nlohmann::ordered_json capabilities;
  for (const ir::Target& target : planner::targetProfiles()) {
    if (target.device != ir::DeviceKind::kCuda) continue;
    profiles.push_back(target.profile);
    capabilities[target.profile] = target.computeCapability;  // 90 for sm_90
  }
  return nlohmann::ordered_json{{"stowage", STOWAGE_VERSION},
                                {"torch", runtime::torchVersion()},
                                {"profiles", profiles},
                                {"capabilities", capabilities}}
      .dump();
}

int64_t launchedRanks() {
  const std::optional<runtime::LaunchedRank> rank = takeOrThrow(runtime::launchedRank());
  return rank ? rank->count : 1;
}

void planWithoutGpu(const std::string& profile) {
  const ir::Target target =
      takeOrThrow(planner::findTargetProfile(profile, runtime::torchVersion()));
  throwError(runtime::enableFakeGpu(target));
}

}  // namespace stowage::python
