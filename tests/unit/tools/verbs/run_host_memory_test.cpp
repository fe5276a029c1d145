// SPDX-License-Identifier: Apache-2.0
//
// The host memory that a plan states is what its run takes, as the kernel counts it while another
// process trains; rings of the disk included.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/disk_folder.h"
#include "tests/support/memory_map.h"
#include "tests/support/program.h"

namespace stowage::tests {
namespace {

/// Mappings with a closed one right before and right behind, at a multiple of 2 MiB. An arena is
/// one; heaps of threads may be others.
std::vector<Mapping> fencedMappings(const std::string& process) {
  constexpr uint64_t kAlignment = uint64_t{2} << 20;
  std::vector<Mapping> fenced;
  const std::vector<Mapping> all = readMappings(process);
  for (size_t i = 1; i + 1 < all.size(); ++i) {
    const bool isFenced = !all[i - 1].isOpen && all[i - 1].end == all[i].begin &&
                          !all[i + 1].isOpen && all[i + 1].begin == all[i].end;
    if (all[i].isOpen && isFenced && all[i].begin % kAlignment == 0) fenced.push_back(all[i]);
  }
  return fenced;
}

class RunHostMemory : public DiskTest {
 protected:
  std::string at(const std::string& name) const { return files_.at(name); }

  void capture(const std::string& model) const {
    const Outcome captured =
        stowage("capture " + model + " --bucket 512KiB -fq -o " + at("step.stow"));
    ASSERT_EQ(captured.code, 0) << captured.text;
  }
  /// The spaces of a plan: their arenas and limits.
  nlohmann::json plan(const std::string& more) const {
    const Outcome answer =
        stowage("plan " + at("step.stow") + " -fq -o " + at("plan.json") + " " + more);
    EXPECT_EQ(answer.code, 0) << answer.text;
    return nlohmann::json::parse(readText(at("plan.json")))["spaces"];
  }
  static int64_t arenaOf(const nlohmann::json& spaces, const char* space) {
    return spaces[space]["arena_bytes"];
  }

  /// Of a training in a process of its own, after its first step; none if it failed.
  std::vector<Mapping> mappingsOfRun() const {
    const pid_t child = fork();
    if (child == 0) {
      execl(STOWAGE_PROGRAM, "stowage", "run", at("plan.json").c_str(), "--disk",
            folder_.string().c_str(), "--steps", "100000", "-q", "--check-every", "0", "--save",
            at("saved").c_str(), "--save-every", "1", nullptr);
      _exit(127);
    }
    while (!std::filesystem::exists(at("saved"))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (waitpid(child, nullptr, WNOHANG) == child) return {};
    }
    std::vector<Mapping> mappings = fencedMappings(std::to_string(child));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return mappings;
  }

  /// A training has mapped each arena of the plan, within 1 %, and all of it is in memory.
  void expectPlanned(const nlohmann::json& spaces) const {
    const std::vector<Mapping> mappings = mappingsOfRun();
    for (const char* space : {"device", "host"}) {
      const int64_t planned = arenaOf(spaces, space);
      const auto isIt = [&](const Mapping& mapping) {
        const auto mapped = static_cast<int64_t>(mapping.end - mapping.begin);
        return mapped >= planned && mapped <= planned + planned / 100;
      };
      ASSERT_EQ(std::count_if(mappings.begin(), mappings.end(), isIt), 1) << space;
      const Mapping& arena = *std::find_if(mappings.begin(), mappings.end(), isIt);
      EXPECT_GE(arena.resident, planned) << space;
      EXPECT_LE(arena.resident, planned + planned / 100) << space;
    }
  }

 private:
  const ScratchFolder files_{"stowage_host_memory"};
};

TEST_F(RunHostMemory, IsWhatThePlanStates) {
  capture("llama --set layers=1 --set optimizer=stowage_adamw");
  expectPlanned(plan("--budget 40%peak --time-limit 1"));
}

TEST_F(RunHostMemory, OfTheDisksRingsIsInTheHostArena) {
  if (!takesDirectReads()) GTEST_SKIP() << "the folder is on no disk";
  capture("llama --set layers=1 --set optimizer=stowage_adamw");
  const int64_t host = arenaOf(plan("--budget 40%peak --time-limit 1"), "host");
  const nlohmann::json spaces =
      plan("--budget 40%peak --time-limit 1 --disk 1GiB --host " + std::to_string(host / 2) + "B");
  ASSERT_GT(arenaOf(spaces, "disk"), 0);
  EXPECT_LE(arenaOf(spaces, "host"), host / 2);
  expectPlanned(spaces);
}

}  // namespace
}  // namespace stowage::tests
