// SPDX-License-Identifier: Apache-2.0
//
// Every example model with its states on the host, on a disk, with updates on the host, and all of
// it mixed: the bits of plain libtorch after six steps, in a half and a third of the memory. And
// trainings that are killed again and again, each time under another plan, end as if they were not.
// STOWAGE_TIERS=1 asks for all models and ways; else there is one of each. STOWAGE_KILLS: how
// often.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/disk_folder.h"
#include "tests/support/program.h"
#include "tests/support/random.h"

namespace stowage::tests {
namespace {

struct Model {
  std::string name;
  std::string settings;
};

const std::vector<Model> kModels = {
    {"gpt2", "--set clip=1 --set micro_batches=2"},
    {"llama", "--set optimizer=stowage_adamw --set precision=bfloat16 --set master_weights=on"},
    {"llama_lora", "--set optimizer=stowage_adamw"},
    {"vit", "--set optimizer=stowage_adamw --set clip=1"},
    {"resnet", "--set optimizer=sgd"},
    {"lstm", "--set optimizer=adamw"}};

/// What a plan may do beside what is allowed anyhow; HALF: half of the host memory that it takes.
const std::vector<std::string> kWays = {
    "--pin 'state:*=host'", "--disk 1GiB --host HALF --time-limit 2", "--allow host-step",
    "--policy host-step-only", "--allow host-step --disk 1GiB --host HALF --time-limit 2"};

bool asksForAll() { return std::getenv("STOWAGE_TIERS") != nullptr; }

int killCount() {
  const char* asked = std::getenv("STOWAGE_KILLS");
  return asked == nullptr ? 3 : std::atoi(asked);
}

class TiersChain : public DiskTest {
 protected:
  void SetUp() override {
    if (!takesDirectReads()) GTEST_SKIP() << "the folder is on no disk";
  }
  std::string at(const std::string& name) const { return files_.at(name); }

  void capture(const Model& model) const {
    const Outcome captured = stowage("capture " + model.name + " --bucket 512KiB " +
                                     model.settings + " -fq -o " + at("step.stow"));
    ASSERT_EQ(captured.code, 0) << captured.text;
  }

  /// Nothing: refused because it does not fit, with what would.
  std::optional<nlohmann::json> plan(const std::string& flags, const std::string& name) const {
    const Outcome answer =
        stowage("plan " + at("step.stow") + " -fq --json -o " + at(name) + " " + flags);
    EXPECT_TRUE(answer.code == 0 || answer.code == 1) << flags << "\n" << answer.text;
    if (answer.code != 0) return std::nullopt;
    return nlohmann::json::parse(answer.text);
  }

  /// With HALF as a number; nothing if not even an unlimited host would do.
  std::optional<std::string> resolve(std::string way, const std::string& budget) const {
    const size_t place = way.find("HALF");
    if (place == std::string::npos) return way;
    const auto unlimited = plan("--budget " + budget, "unlimited.json");
    if (!unlimited) return std::nullopt;
    const int64_t host = (*unlimited)["predicted"]["host_peak_bytes"];
    return way.replace(place, 4, std::to_string(host / 2) + "B");
  }

  /// Is there a plan? Then it ran with the right bits.
  bool trains(const Model& model, const std::string& way, const std::string& budget) const {
    const std::optional<std::string> resolved = resolve(way, budget);
    if (!resolved) return false;
    const auto planned = plan("--budget " + budget + " " + *resolved, "plan.json");
    if (!planned) return false;
    const std::string disk =
        planned->contains("disk") ? " --verify-disk --disk " + folder_.string() : "";
    const Outcome ran =
        stowage("run " + at("plan.json") + disk + " --steps 6 --compare-unplanned --replan");
    EXPECT_TRUE(ran.code == 0 && ran.says("identical bits to the unplanned run") &&
                ran.says(" as predicted"))
        << model.name << ", " << way << ", " << budget << "\n"
        << ran.text;
    return true;
  }

  /// A process that was killed between two renames leaves the previous checkpoint.
  int64_t stepsSaved() const {
    return std::max(stepsIn("saved"), stepsIn("saved.stowage-previous"));
  }

  int64_t stepsIn(const std::string& folder) const {
    std::ifstream file(at(folder + "/optimizer.safetensors"), std::ios::binary);
    uint64_t size = 0;
    if (!file.read(reinterpret_cast<char*>(&size), sizeof(size))) return 0;
    std::string header(size, ' ');
    file.read(header.data(), static_cast<std::streamsize>(size));
    return std::stoll(std::string(nlohmann::json::parse(header)["__metadata__"]["stowage.steps"]));
  }

  void forget() const {
    std::filesystem::remove_all(at("saved"));
    std::filesystem::remove_all(at("saved.stowage-previous"));
  }

  /// A run to `steps` in all, killed after so long.
  void runAndKill(const std::string& plan, int64_t steps, std::chrono::milliseconds after) const {
    const int64_t done = stepsSaved();
    const std::string command = std::string("exec ") + STOWAGE_PROGRAM + " run " + at(plan) +
                                " --disk " + folder_.string() + " --steps " +
                                std::to_string(steps - done) + " --save " + at("saved") +
                                " --save-every 1 -q" + (done > 0 ? " --resume " + at("saved") : "");
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    std::this_thread::sleep_for(after);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << command;
  }

  std::string bytesOfFile(const std::string& name) const {
    std::ifstream file(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  const ScratchFolder files_{"stowage_tiers"};
};

TEST_F(TiersChain, EveryModelHasItsBits) {
  int planned = 0;
  int asked = 0;
  for (size_t m = 0; m < kModels.size(); ++m) {
    for (size_t w = 0; w < kWays.size(); ++w) {
      const bool isQuick = m == 5 && w == 0;
      if (!asksForAll() && !isQuick) continue;
      capture(kModels[m]);
      for (const std::string budget : {"50%peak", "35%peak"}) {
        ++asked;
        const bool fits = trains(kModels[m], kWays[w], budget);
        planned += fits;
        if (!fits)
          std::printf("no plan: %s, %s, %s\n", kModels[m].name.c_str(), kWays[w].c_str(),
                      budget.c_str());
      }
    }
  }
  EXPECT_GE(planned * 2, asked);
}

TEST_F(TiersChain, KilledTrainingsGoOnUnderOtherPlans) {
  constexpr int64_t kSteps = 24;
  capture({"llama", "--set optimizer=stowage_adamw"});
  const std::vector<std::string> plans = {"device.json", "disk.json", "host.json"};
  ASSERT_TRUE(plan("--budget 60%peak", plans[0]));
  const auto scarce = resolve("--budget 40%peak --disk 1GiB --host HALF --time-limit 2", "40%peak");
  ASSERT_TRUE(scarce && plan(*scarce, plans[1]));
  ASSERT_TRUE(plan("--budget 40%peak --allow host-step", plans[2]));
  const auto begin = std::chrono::steady_clock::now();
  const Outcome whole = stowage("run " + at(plans[0]) + " --steps " + std::to_string(kSteps) +
                                " --save " + at("whole") + " --save-every 1");
  ASSERT_EQ(whole.code, 0) << whole.text;
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  Random random(1);
  int64_t done = 0;
  for (int killed = 0; killed < killCount(); ++killed) {
    if (done + 1 >= kSteps) forget();
    const std::chrono::milliseconds after(random.between(0, took.count()));
    runAndKill(plans[static_cast<size_t>(killed) % plans.size()], kSteps - 1, after);
    EXPECT_TRUE(isEmpty()) << "of the disk's folder";
    done = stepsSaved();
  }
  // The last step is the first plan's, whose name is in the files.
  const Outcome last =
      stowage("run " + at(plans[0]) + " --steps " + std::to_string(kSteps - done) +
              (done > 0 ? " --resume " + at("saved") : "") + " --save " + at("saved"));
  ASSERT_EQ(last.code, 0) << last.text;
  for (const std::string file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_TRUE(bytesOfFile("saved/" + file) == bytesOfFile("whole/" + file)) << file;
  }
}

}  // namespace
}  // namespace stowage::tests
