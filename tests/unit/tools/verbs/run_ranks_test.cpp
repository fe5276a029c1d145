// SPDX-License-Identifier: Apache-2.0
//
// Training by several processes as the users of `stowage` meet it: plan, run, resume on another
// number of ranks, and what they are told when a rank is missing, dies or differs.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/program.h"
#include "tests/support/random.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tensor_file.h"

namespace stowage::tests {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int64_t kBatch = 4;
constexpr int64_t kSequence = 16;

/// A started program, with all that it prints in a file.
class Started {
 public:
  Started(const std::string& command, std::string output) : output_(std::move(output)) {
    const std::string line = "exec " + command + " > " + output_ + " 2>&1";
    process_ = fork();
    if (process_ == 0) {
      execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  /// Its ranks end with it.
  ~Started() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  pid_t process() const { return process_; }
  Outcome wait() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = 0;
    std::ifstream file(output_);
    Outcome outcome;
    outcome.text.assign(std::istreambuf_iterator<char>(file), {});
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return outcome;
  }
  std::vector<pid_t> children() const {
    const std::string id = std::to_string(process_);
    std::ifstream file("/proc/" + id + "/task/" + id + "/children");
    std::vector<pid_t> found;
    for (pid_t child = 0; file >> child;) found.push_back(child);
    return found;
  }

 private:
  pid_t process_ = 0;
  std::string output_;
};

/// A model of one block, captured, and planned for one to four ranks.
class RunRanks : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared.emplace("stowage_run_ranks");
    expectYes(
        "capture gpt2 --set layers=1 --set hidden=32 --set heads=2 --set sequence=16 "
        "--set context=16 --set dropout=0.1 -o " +
        at("step.stow"));
  }
  static void TearDownTestSuite() { shared.reset(); }
  static void expectYes(const std::string& arguments) {
    const Outcome outcome = stowage(arguments);
    ASSERT_EQ(outcome.code, 0) << arguments << '\n' << outcome.text;
  }
  static std::string at(const std::string& name) { return shared->at(name); }
  /// The plan for so many ranks, made when it is first asked for.
  static std::string planOf(int ranks, int percent = 80) {
    const std::string of = std::to_string(ranks);
    std::string path = at("plan" + of + "in" + std::to_string(percent) + ".json");
    if (access(path.c_str(), F_OK) != 0) {
      expectYes("plan " + at("step.stow") + " --threads 1 --budget " + std::to_string(percent) +
                "%peak --ranks " + of + " -o " + path);
    }
    return path;
  }
  static std::string runOf(int ranks, const std::string& more) {
    return "run " + planOf(ranks) + " --ranks " + std::to_string(ranks) + " " + more;
  }
  /// Ranks of one host that somebody starts one by one.
  static std::string asRank(int rank, int count, int port) {
    return "env RANK=" + std::to_string(rank) + " WORLD_SIZE=" + std::to_string(count) +
           " LOCAL_RANK=" + std::to_string(rank) + " LOCAL_WORLD_SIZE=" + std::to_string(count) +
           " MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(port) + " " + STOWAGE_PROGRAM +
           " ";
  }
  static int somePort() { return 20'000 + getpid() % 20'000; }
  /// A batch of tokens by row; rows of one number are the same.
  static std::string writeRows(const char* name, const std::vector<int>& rows) {
    const int64_t each = kBatch * kSequence;
    std::vector<int64_t> tokens;
    for (const int row : rows) {
      Random random(static_cast<uint64_t>(row) + 1);
      for (int64_t i = 0; i < each; ++i) tokens.push_back(random.between(0, 49));
    }
    const std::vector<int64_t> sizes = {static_cast<int64_t>(rows.size()), kBatch, kSequence};
    return writeTensors(at(name), {{"tokens", ir::DType::kI64, sizes, bytesOf(tokens)},
                                   {"targets", ir::DType::kI64, sizes, bytesOf(tokens)}});
  }
  /// What two checkpoints have in common but for their metadata, as bytes.
  static void expectSameTensors(const std::string& a, const std::string& b,
                                const std::string& without = "") {
    for (const char* file : {"/model.safetensors", "/optimizer.safetensors"}) {
      const auto left = orFail(runtime::SafetensorsReader::open(at(a) + file));
      const auto right = orFail(runtime::SafetensorsReader::open(at(b) + file));
      size_t compared = 0;
      for (const runtime::SafetensorsEntry& entry : left.header().entries) {
        const bool isOfRank = entry.name.find("ranks.") == 0;
        if (!without.empty() && (isOfRank || entry.name == without)) continue;
        const runtime::SafetensorsEntry* other = right.find(entry.name);
        ASSERT_NE(other, nullptr) << entry.name;
        const auto bytes = [](const auto& reader, const runtime::SafetensorsEntry& of) {
          std::vector<uint8_t> read(static_cast<size_t>(of.bytes.end - of.bytes.begin));
          orFail(reader.read(of, read));
          return read;
        };
        EXPECT_TRUE(bytes(left, entry) == bytes(right, *other)) << entry.name;
        ++compared;
      }
      EXPECT_GT(compared, 4U) << file;
    }
  }

  static std::optional<ScratchFolder> shared;
};
std::optional<ScratchFolder> RunRanks::shared;

TEST_F(RunRanks, RankZeroSpeaks) {
  const Outcome outcome = stowage(runOf(3, "--steps 3"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(outcome.says("on each of 3 ranks, of which this is rank 0")) << outcome.text;
  EXPECT_EQ(outcome.text.find("ran        3 steps"), outcome.text.rfind("ran        3 steps"));
  const Outcome json = stowage(runOf(2, "--steps 2 --json -q"));
  EXPECT_EQ(nlohmann::json::parse(json.text).at("ranks"), 2);
}

TEST_F(RunRanks, SaysWhatIsMissing) {
  const Outcome alone = stowage("run " + planOf(2) + " --steps 1");
  EXPECT_EQ(alone.code, 2);
  EXPECT_TRUE(
      alone.says("the plan is for 2 ranks, found 1: --ranks 2 starts them on this host, "
                 "'torchrun --no-python' on one or several"))
      << alone.text;
  const Outcome other = stowage("run " + planOf(3) + " --ranks 2 --steps 1");
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(other.says("the plan is for 3 ranks, found 2")) << other.text;
  const Outcome ofOne = stowage("run " + planOf(1) + " --ranks 2 --steps 1");
  EXPECT_EQ(ofOne.code, 2);
  EXPECT_TRUE(
      ofOne.says("the plan is for one process, found 2 ranks: 'stowage plan --ranks 2' "
                 "makes one for them"))
      << ofOne.text;
  const Outcome compared = stowage(runOf(2, "--steps 1 --compare-unplanned"));
  EXPECT_EQ(compared.code, 2);
  EXPECT_TRUE(compared.says("--compare-unplanned: the plan is for several ranks")) << compared.text;
  const Outcome launched =
      stowage("run " + planOf(2) + " --ranks 2 --steps 1",
              "RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=4 MASTER_ADDR=h MASTER_PORT=1 ");
  EXPECT_EQ(launched.code, 2);
  EXPECT_TRUE(launched.says("--ranks 2: the launcher has started 4")) << launched.text;
}

TEST_F(RunRanks, GoesOnWithTheSameBitsUnderAnotherBudget) {
  expectYes(runOf(2, "-fq --steps 5 --seed 3 --save " + at("whole")));
  expectYes(runOf(2, "-fq --steps 2 --seed 3 --save " + at("half")));
  // Dropout: each rank's generator goes on as well.
  expectYes("run " + planOf(2, 50) + " --ranks 2 -fq --steps 3 --resume " + at("half") +
            " --save " + at("half"));
  expectSameTensors("whole", "half");
}

TEST_F(RunRanks, ACheckpointLoadsOnAnotherNumberOfRanks) {
  // Ranks with the same batch have the mean that one process has, bit for bit where they are a
  // power of two.
  expectYes(
      "capture gpt2 --set layers=1 --set hidden=32 --set heads=2 --set sequence=16 "
      "--set context=16 --set dropout=0 -o " +
      at("exact.stow"));
  for (const std::string ranks : {"1", "2", "4"}) {
    expectYes("plan " + at("exact.stow") + " --threads 1 --budget 80%peak --ranks " + ranks +
              " -o " + at("exact" + ranks + ".json"));
  }
  const std::string alone = writeRows("alone.safetensors", {0, 1, 2, 3, 4, 5});
  const std::string together =
      writeRows("together.safetensors", {0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 5});
  const auto run = [&](const std::string& ranks, const std::string& more) {
    expectYes("run " + at("exact" + ranks + ".json") + " --ranks " + ranks + " --steps 2 -fq " +
              more);
  };
  expectYes("run " + at("exact1.json") + " --steps 6 -fq --data " + alone + " --save " +
            at("alone"));
  run("2", "--data " + together + " --save " + at("moved"));
  run("4", "--data " + together + " --resume " + at("moved") + " --save " + at("moved"));
  run("1", "--data " + together + " --resume " + at("moved") + " --save " + at("moved"));
  expectSameTensors("alone", "moved", "generator.cpu");
}

TEST_F(RunRanks, ACheckpointOfOneProcessLoadsOnThree) {
  expectYes("run " + planOf(1) + " --steps 2 -fq --save " + at("one"));
  const Outcome outcome =
      stowage(runOf(3, "--steps 2 -f --resume " + at("one") + " --save " + at("three")));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(outcome.says("resumed    after 2 steps, saved under another plan")) << outcome.text;
  expectYes(runOf(3, "--steps 2 -fq --resume " + at("three")));
}

// And what was saved until then is whole. STOWAGE_RANK_KILLS: how often.
TEST_F(RunRanks, ARankThatDiesEndsAll) {
  const char* asked = std::getenv("STOWAGE_RANK_KILLS");
  Random random(7);
  const auto isSaved = [] { return access(at("dies/model.safetensors").c_str(), F_OK) == 0; };
  const int kills = asked == nullptr ? 4 : std::atoi(asked);
  ASSERT_GT(kills, 0);
  for (int i = 0; i < kills; ++i) {
    Started run(std::string(STOWAGE_PROGRAM) + " " +
                    runOf(3, "-fq --steps 100000000 --save-every 1 --save " + at("dies")),
                at("dies.txt"));
    for (int wait = 0; wait < 10'000 && run.children().size() < 3; ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const std::vector<pid_t> ranks = run.children();
    ASSERT_EQ(ranks.size(), 3U);
    // At the start, or in the middle of steps and saves.
    const bool hasSaved = i % 2 == 1;
    for (int wait = 0; hasSaved && wait < 30'000 && !isSaved(); ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random.between(0, 3000)));
    const auto victim = static_cast<size_t>(random.between(0, 2));
    kill(ranks[victim], SIGKILL);
    const auto begin = steady_clock::now();
    const Outcome outcome = run.wait();
    EXPECT_LT(steady_clock::now() - begin, seconds(30));
    EXPECT_EQ(outcome.code, 4) << outcome.text;
    const std::string name = "rank " + std::to_string(victim);
    EXPECT_TRUE(outcome.says(name + " was ended by signal 9")) << outcome.text;
    for (const pid_t rank : ranks) EXPECT_NE(kill(rank, 0), 0);
    ASSERT_TRUE(isSaved() || !hasSaved);
    if (!isSaved()) continue;
    expectYes(runOf(1 + i % 3, "-q --steps 1 --resume " + at("dies")));
    std::filesystem::remove_all(at("dies"));
  }
}

TEST_F(RunRanks, AStopSignalStopsAllAfterTheSameStep) {
  Started run(std::string(STOWAGE_PROGRAM) + " " +
                  runOf(2, "-fq --steps 100000000 --save-every 1 --save " + at("stopped")),
              at("stopped.txt"));
  for (int i = 0; i < 30'000 && access(at("stopped/model.safetensors").c_str(), F_OK) != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(run.process(), SIGTERM);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.code, 143) << outcome.text;
  expectYes(runOf(2, "-fq --steps 1 --resume " + at("stopped")));
}

TEST_F(RunRanks, SaveWhenWhoStartedThemIsKilled) {
  Started run(std::string(STOWAGE_PROGRAM) + " " +
                  runOf(2, "-fq --steps 100000000 --save " + at("orphans")),
              at("orphans.txt"));
  for (int wait = 0; wait < 10'000 && run.children().size() < 2; ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::this_thread::sleep_for(seconds(4));
  kill(run.process(), SIGKILL);
  run.wait();
  for (int i = 0; i < 20'000 && access(at("orphans/model.safetensors").c_str(), F_OK) != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  expectYes(runOf(2, "-fq --steps 1 --resume " + at("orphans")));
}

TEST_F(RunRanks, RanksThatDifferAreNamed) {
  const auto runBoth = [](const std::string& first, const std::string& second) {
    static int port = somePort();
    ++port;
    Started zero(asRank(0, 2, port) + first, at("zero.txt"));
    Started one(asRank(1, 2, port) + second, at("one.txt"));
    return std::pair(zero.wait(), one.wait());
  };
  const std::string own = "run " + planOf(2) + " --steps 3 ";
  const auto [zero, one] = runBoth(own, "run " + planOf(2, 50) + " --steps 3");
  EXPECT_EQ(zero.code, 4) << zero.text;
  EXPECT_EQ(one.code, 4) << one.text;
  EXPECT_TRUE(zero.says("rank 0: the plan of rank 1 is another one")) << zero.text;
  const auto [steps, others] = runBoth(own, "run " + planOf(2) + " --steps 4");
  EXPECT_TRUE(
      steps.says("the number of steps of rank 1 is another one (4), expected that of rank "
                 "0 (3)"))
      << steps.text;
  expectYes(runOf(2, "-fq --steps 2 --save " + at("first")));
  expectYes(runOf(2, "-fq --steps 3 --save " + at("second")));
  const auto [resumed, other] =
      runBoth(own + "--resume " + at("first"), own + "--resume " + at("second"));
  EXPECT_EQ(resumed.code, 4) << resumed.text;
  EXPECT_TRUE(resumed.says("a digest of the checkpoint of rank 1 is another one")) << resumed.text;
  EXPECT_EQ(other.code, 4) << other.text;
  const auto [told, failed] = runBoth(own, own + "--data " + at("none.safetensors"));
  EXPECT_EQ(failed.code, 3) << failed.text;
  EXPECT_EQ(told.code, 4) << told.text;
  EXPECT_TRUE(told.says("rank 1 gave up") && told.says("none.safetensors")) << told.text;
}

// Both ranks measure at once, and rank 0 writes.
TEST_F(RunRanks, AProfileMeasuresWhatLiesBetweenRanks) {
  const std::string costs = at("costs.json");
  const Outcome outcome =
      stowage("profile " + at("step.stow") + " --ranks 2 --threads 1 --json -o " + costs);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const size_t begin = outcome.text.find('{');
  ASSERT_NE(begin, std::string::npos) << outcome.text;
  const auto links = nlohmann::json::parse(outcome.text.substr(begin)).at("links");
  EXPECT_GT(links.at("between_ranks").at("bytes_per_s"), 1'000'000);
  EXPECT_GT(links.at("between_ranks").at("latency_ns"), 0);
  std::ifstream file(costs);
  EXPECT_EQ(nlohmann::json::parse(file).at("links").at("between_ranks"), links.at("between_ranks"));
}

// For a cluster that is not there yet.
TEST_F(RunRanks, APlanIsForTheLinkThatItIsTold) {
  const auto stepOver = [](const std::string& link) {
    expectYes("plan " + at("step.stow") +
              " --threads 1 --ranks 2 --budget 1GiB --allow none -f -o " + at("link.json") +
              " --between-ranks " + link);
    const auto plan = nlohmann::json::parse(readText(at("link.json")));
    EXPECT_EQ(plan["target"]["links"]["between_ranks"]["latency_ns"], 30'000);
    return plan["predicted"]["step_ns"].get<int64_t>();
  };
  // Some ten thousand bytes, of which each takes a microsecond.
  EXPECT_GT(stepOver("1MB:30us"), stepOver("100GB:30us") + 10'000'000);
  expectYes("verify " + at("link.json") + " --graph " + at("step.stow"));
  const auto refused = [](const std::string& more) {
    const Outcome outcome =
        stowage("plan " + at("step.stow") + " --threads 1 --budget 100%peak -o " + at("no.json") +
                " --between-ranks " + more);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    return outcome.text;
  };
  EXPECT_NE(refused("47GB").find("for one process, expected --ranks"), std::string::npos);
  for (const char* wrong :
       {"fast", "50%", "0B", "47GB:", "47GB:20", "47GB:-1us", "47GB:9999999us"}) {
    const std::string text = refused(std::string(wrong) + " --ranks 2");
    EXPECT_NE(text.find("expected bytes a second, such as 47GB"), std::string::npos) << text;
  }
  const std::string both = refused("47GB --ranks 2 --costs " + at("none.json"));
  EXPECT_NE(both.find("expected one of the two"), std::string::npos) << both;
}

}  // namespace
}  // namespace stowage::tests
