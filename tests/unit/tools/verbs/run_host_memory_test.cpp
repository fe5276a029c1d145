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
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/disk_folder.h"
#include "tests/support/memory_map.h"
#include "tests/support/program.h"

namespace stowage::tests {
namespace {

/// Of mappings with a closed one right before and right behind, at a multiple of 2 MiB: what of
/// them is in memory. An arena is one; smallest first.
std::vector<int64_t> residentArenas(const std::string& process) {
  constexpr uint64_t kAlignment = uint64_t{2} << 20;
  std::vector<int64_t> arenas;
  const std::vector<Mapping> all = readMappings(process);
  for (size_t i = 1; i + 1 < all.size(); ++i) {
    const bool isFenced = !all[i - 1].isOpen && all[i - 1].end == all[i].begin &&
                          !all[i + 1].isOpen && all[i + 1].begin == all[i].end;
    if (all[i].isOpen && isFenced && all[i].begin % kAlignment == 0) {
      arenas.push_back(all[i].resident);
    }
  }
  std::sort(arenas.begin(), arenas.end());
  return arenas;
}

constexpr int64_t kPage = 4096;

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

  /// The arenas of a training in a process of its own, when they were last seen; none if it failed.
  std::vector<int64_t> arenasOfRun() const {
    const pid_t child = fork();
    if (child == 0) {
      execl(STOWAGE_PROGRAM, "stowage", "run", at("plan.json").c_str(), "--disk",
            folder_.string().c_str(), "--steps", "100000", "-q", "--check-every", "0", nullptr);
      _exit(127);
    }
    std::vector<int64_t> arenas;
    std::vector<int64_t> before;
    // Both are there, and no longer change: the training is under way.
    for (int look = 0; look < 3000 && (arenas.size() < 2 || arenas != before); ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      before = std::exchange(arenas, residentArenas(std::to_string(child)));
      if (waitpid(child, nullptr, WNOHANG) == child) return {};
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return arenas;
  }

  /// A training takes for its arenas what the plan states, in whole pages: within 1 %.
  void expectPlanned(const nlohmann::json& spaces) const {
    std::vector<int64_t> planned = {arenaOf(spaces, "device"), arenaOf(spaces, "host")};
    std::sort(planned.begin(), planned.end());
    const std::vector<int64_t> measured = arenasOfRun();
    ASSERT_EQ(measured.size(), planned.size());
    for (size_t i = 0; i < planned.size(); ++i) {
      EXPECT_GT(planned[i], int64_t{1} << 20) << "a page is less than 1 %";
      EXPECT_GE(measured[i], planned[i]);
      EXPECT_LT(measured[i], planned[i] + kPage);
    }
  }

 private:
  const ScratchFolder files_{"stowage_host_memory"};
};

TEST_F(RunHostMemory, IsWhatThePlanStates) {
  capture("llama --set optimizer=stowage_adamw");
  expectPlanned(plan("--budget 35%peak"));
}

TEST_F(RunHostMemory, OfTheDisksRingsIsInTheHostArena) {
  if (!takesDirectReads()) GTEST_SKIP() << "the folder is on no disk";
  capture("llama --set optimizer=stowage_adamw");
  const int64_t host = arenaOf(plan("--budget 35%peak"), "host");
  const nlohmann::json spaces =
      plan("--budget 35%peak --time-limit 1 --disk 1GiB --host " + std::to_string(host / 2) + "B");
  ASSERT_GT(arenaOf(spaces, "disk"), 0);
  EXPECT_LE(arenaOf(spaces, "host"), host / 2);
  expectPlanned(spaces);
}

}  // namespace
}  // namespace stowage::tests
