// SPDX-License-Identifier: Apache-2.0
//
// Damaged files of every kind that verbs read, each given to the verbs that read it, `profile` and
// `run` among them. STOWAGE_FUZZ_SEEDS says how many of each kind (by default few, for every
// change), STOWAGE_FUZZ_FIRST where they begin: one of them again is its seed with a count of 1.
// What is found stays in STOWAGE_FUZZ_KEEP (default: fuzz_kept in the build folder), with the
// commands.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "tests/fuzz/archive_mutator.h"
#include "tests/fuzz/foreign_files.h"
#include "tests/fuzz/json_mutator.h"
#include "tests/fuzz/step_mutator.h"
#include "tests/property/plan_file_mutations.h"
#include "tests/support/random.h"

namespace stowage::tests {
namespace {

namespace fs = std::filesystem;

uint64_t numberFrom(const char* variable, uint64_t fallback) {
  const char* asked = std::getenv(variable);
  return asked == nullptr ? fallback : std::strtoull(asked, nullptr, 10);
}

class ForeignFile : public testing::Test {
 protected:
  static void SetUpTestSuite() { files_ = std::make_unique<ForeignFiles>(); }
  static void TearDownTestSuite() { files_.reset(); }
  void SetUp() override { files().forgetSummary(); }
  static ForeignFiles& files() { return *files_; }

  /// `count`: without being asked for more.
  template <typename Try>
  static void forEachSeed(uint64_t count, Try tryOne) {
    const uint64_t first = numberFrom("STOWAGE_FUZZ_FIRST", 0);
    const uint64_t seeds = numberFrom("STOWAGE_FUZZ_SEEDS", count);
    for (uint64_t seed = first; seed < first + seeds; ++seed) {
      Random random(seed);
      random.bits();
      tryOne(seed, random);
    }
    std::printf("seeds %lu to %lu, heap %s\n%s", first, first + seeds - 1,
                files().guardsHeap() ? "guarded" : "not guarded", files().summary().c_str());
  }

  static const Base& pickBase(Random& random, std::initializer_list<const char*> names) {
    return files().base(random.pick(names));
  }

  static Arguments runWith(const Arguments& flags, const Base& base, bool needsWeights) {
    Arguments run = {"run", "plan.json", "-q", "--threads", "1"};
    run.insert(run.end(), flags.begin(), flags.end());
    const bool isArchive = base.name == "archive";  // weights inside, and its rate may be data
    if (needsWeights && !isArchive && base.name != "example") run.push_back("--random-weights");
    return run;
  }
  static Arguments resume(const Base& base) {
    return runWith({"--steps", "1", "--resume", "checkpoint", "--data", "data.safetensors"}, base,
                   /*needsWeights=*/false);
  }
  static Arguments useWeights(const Base& base) {
    return runWith({"--steps", "1", "--weights", "weights.safetensors", "--compare-unplanned"},
                   base, /*needsWeights=*/false);
  }
  static Arguments useData(const Base& base, const std::string& file) {
    return runWith({"--steps", "2", "--data", file, "--compare-unplanned"}, base,
                   /*needsWeights=*/true);
  }
  static Arguments planFrom(const std::string& plan) {
    Arguments from = {"plan", "step.stow", "-q", "-f", "--threads", "1", "-o", "again.json"};
    from.insert(from.end(), {"--budget", "80%peak", "--costs", "costs.json", "--from", plan});
    return from;
  }
  static Arguments profileKnown() {
    return {"profile", "step.stow", "-q",         "-f", "--threads",
            "1",       "--known",   "costs.json", "-o", "more.json"};
  }

  /// From a step to a run.
  static void useStep(const Base& base, Random& random) {
    const bool measured =
        files().run({"profile", "step.stow", "-q", "-f", "--threads", "1", "-o", "costs.json"});
    static const std::vector<std::string> kBudgets = {"40%peak", "70%peak", "100%peak", "1MiB"};
    Arguments plan = {"plan", "step.stow", "-q",        "-f",       "--threads",
                      "1",    "-o",        "plan.json", "--budget", random.pick(kBudgets)};
    if (measured) plan.insert(plan.end(), {"--costs", "costs.json"});
    if (random.chance(15)) plan.push_back("--embed");
    if (random.chance(20)) {
      files().run({"sweep", "step.stow", "-q", "--threads", "1", "--budgets", "50%peak,80%peak"});
    }
    if (!files().run(plan)) return;
    files().runPlan("plan.json", base.runFlags);
    files().run({"explain", "plan.json"});
    if (random.chance(30)) files().run({"lower", "plan.json", "-q", "-f", "-o", "low.json"});
    if (random.chance(30)) files().run(useData(base, "far.safetensors"));
  }

  static std::unique_ptr<ForeignFiles> files_;
};
std::unique_ptr<ForeignFiles> ForeignFile::files_;

constexpr std::initializer_list<const char*> kBases = {"archive", "archive", "kernels", "kernels",
                                                       "kernels", "sample",  "sample",  "gpt2",
                                                       "lstm",    "vit",     "llama",   "example"};

TEST_F(ForeignFile, Step) {
  std::vector<std::string> texts;
  for (const char* name : {"archive", "kernels", "sample", "gpt2"}) {
    texts.push_back(files().base(name).read("step.stow"));
  }
  const std::vector<KnownCall> calls = findCalls(texts);
  forEachSeed(12, [&](uint64_t seed, Random& random) {
    const Base& base = pickBase(random, kBases);
    files().begin(seed, base);
    std::string kind = base.name + " step: ";
    const std::string text = mutateStep(base.read("step.stow"), calls, random, kind);
    files().describe(kind);
    files().write("step.stow", text);
    useStep(base, random);
  });
}

TEST_F(ForeignFile, Archive) {
  const Base& base = files().base("archive");
  forEachSeed(12, [&](uint64_t seed, Random& random) {
    files().begin(seed, base);
    std::string kind = "archive: ";
    const std::string text = mutateArchive(base.read("step.pt2"), random, kind);
    files().describe(kind);
    files().write("step.pt2", text);
    if (files().run({"capture", "step.pt2", "-q", "-f", "-o", "step.stow"})) {
      useStep(base, random);
    } else {
      // With the step that was captured before the archive changed.
      files().run({"run", "plan.json", "-q", "--threads", "1", "--lr", "0.01", "--steps", "1"});
    }
  });
}

TEST_F(ForeignFile, SideFile) {
  const Base& base = files().base("archive");
  forEachSeed(8, [&](uint64_t seed, Random& random) {
    files().begin(seed, base);
    std::string kind = "side file: ";
    const std::string text = mutateJson(Json::parse(base.read("step.json")), random, kind);
    files().describe(kind);
    files().write("step.json", text);
    if (files().run({"capture", "step.pt2", "-q", "-f", "-o", "step.stow"})) useStep(base, random);
  });
}

TEST_F(ForeignFile, Plan) {
  forEachSeed(8, [&](uint64_t seed, Random& random) {
    const Base& base = pickBase(random, {"archive", "sample", "gpt2", "example"});
    files().begin(seed, base);
    std::string kind = base.name + " plan: ";
    const std::string text = mutateJson(Json::parse(base.read("plan.json")), random, kind);
    files().describe(kind);
    files().write("plan.json", text);
    files().runPlan("plan.json", base.runFlags);
    files().run({"explain", "plan.json"});
    files().run({"lower", "plan.json", "-q", "-f", "-o", "low.json"});
    files().run(planFrom("plan.json"));
  });
}

/// Edits that keep the file well-formed (tests/property): `verify` and `run` agree about each.
TEST_F(ForeignFile, EditedPlan) {
  const std::vector<PlanFileMutation> edits = planFileMutations();
  forEachSeed(12, [&](uint64_t seed, Random& random) {
    const Base& base = pickBase(random, {"archive", "sample", "kernels"});
    files().begin(seed, base);
    const PlanFileMutation& edit = random.pick(edits);
    files().describe(base.name + " plan: " + edit.name);
    Json plan = Json::parse(base.read("plan.json"));
    if (!edit.change(plan, random)) return;
    files().write("plan.json", plan.dump());
    files().runPlan("plan.json", base.runFlags);
    if (random.chance(30)) files().run({"lower", "plan.json", "-q", "-f", "-o", "low.json"});
  });
}

TEST_F(ForeignFile, Costs) {
  forEachSeed(6, [&](uint64_t seed, Random& random) {
    const Base& base = pickBase(random, {"archive", "sample", "gpt2"});
    files().begin(seed, base);
    std::string kind = base.name + " costs: ";
    const std::string text = mutateJson(Json::parse(base.read("costs.json")), random, kind);
    files().describe(kind);
    files().write("costs.json", text);
    files().runPlan("plan.json", base.runFlags);
    files().run({"lower", "plan.json", "-q", "-f", "-o", "low.json"});
    files().run(profileKnown());
    if (random.chance(30)) {
      files().run({"sweep", "step.stow", "-q", "--threads", "1", "--costs", "costs.json",
                   "--budgets", "80%peak"});
    }
    Arguments run = {"run",     "plan.json", "-q",      "--threads",  "1",
                     "--steps", "2",         "--costs", "costs.json", "--replan"};
    if (random.chance(30)) run.push_back("--throttle-links");
    run.insert(run.end(), base.runFlags.begin(), base.runFlags.end());
    files().run(run);
    if (files().run({"plan", "step.stow", "-q", "-f", "--threads", "1", "--budget", "60%peak",
                     "--costs", "costs.json", "-o", "plan.json"})) {
      files().runPlan("plan.json", base.runFlags);
      files().run({"explain", "plan.json"});
    }
  });
}

TEST_F(ForeignFile, Weights) {
  forEachSeed(10, [&](uint64_t seed, Random& random) {
    const Base& base = pickBase(random, {"sample", "gpt2", "example"});
    files().begin(seed, base);
    std::string kind = base.name + " weights: ";
    const std::string text =
        mutateSafetensors(base.read("checkpoint/model.safetensors"), random, kind);
    files().describe(kind);
    files().write("weights.safetensors", text);
    files().run(useWeights(base));
  });
}

TEST_F(ForeignFile, Data) {
  forEachSeed(10, [&](uint64_t seed, Random& random) {
    const Base& base = pickBase(random, {"archive", "sample", "kernels", "gpt2", "example"});
    files().begin(seed, base);
    std::string kind = base.name + " data: ";
    const std::string text = mutateSafetensors(base.read("data.safetensors"), random, kind);
    files().describe(kind);
    files().write("data.safetensors", text);
    files().run(useData(base, "data.safetensors"));
  });
}

/// Files that are no files any more, or not there.
void replaceFile(const std::string& path, Random& random, std::string& kind) {
  fs::remove_all(path);
  switch (random.between(0, 3)) {
    case 0:
      kind += "dropped ";
      return;
    case 1:
      kind += "folder ";
      fs::create_directories(path + "/inner");
      return;
    case 2:
      kind += "pipe ";
      mkfifo(path.c_str(), 0600);
      return;
    default:
      kind += "link ";
      fs::create_symlink("../../outside/model.safetensors", path);
  }
}

TEST_F(ForeignFile, Checkpoint) {
  forEachSeed(10, [&](uint64_t seed, Random& random) {
    const Base& base = pickBase(random, {"archive", "sample", "gpt2", "example"});
    files().begin(seed, base);
    std::string kind = base.name + " checkpoint: ";
    const std::string file =
        std::string("checkpoint/") + (random.chance(70) ? "optimizer" : "model") + ".safetensors";
    if (random.chance(10)) {
      kind += file + " ";
      replaceFile(files().at(file), random, kind);
    } else {
      files().write(file, mutateSafetensors(base.read(file), random, kind));
    }
    files().describe(kind);
    Arguments run = resume(base);
    if (random.chance(50)) run.insert(run.end(), {"--save", "checkpoint"});
    if (base.name == "archive" && random.chance(50))
      run.insert(run.end(), base.runFlags.begin(), base.runFlags.end());
    files().run(run);
    // What is there now may be replaced only where it is a checkpoint's, or -f says so.
    Arguments save = {"run",     "plan.json", "-q",     "--threads", "1",
                      "--steps", "1",         "--save", "checkpoint"};
    if (random.chance(60)) save.push_back("-f");
    save.insert(save.end(), base.runFlags.begin(), base.runFlags.end());
    files().run(save);
  });
}

/// What all of the above damages is accepted as it is, or nothing above gets far.
TEST_F(ForeignFile, UndamagedFilesAreAccepted) {
  for (const char* name : {"archive", "sample", "kernels", "gpt2", "example"}) {
    const Base& base = files().base(name);
    files().begin(0, base);
    files().describe(std::string(name) + " as it is");
    // An archive has its own weights, and a rate that the kernels' step takes is none.
    if (base.name != "archive" && base.name != "kernels") {
      fs::copy(files().at("checkpoint/model.safetensors"), files().at("weights.safetensors"));
      EXPECT_TRUE(files().run(useWeights(base))) << files().last().text;
    }
    EXPECT_TRUE(files().run(resume(base))) << files().last().text;
    EXPECT_TRUE(files().run(useData(base, "data.safetensors"))) << files().last().text;
    EXPECT_TRUE(files().run(planFrom("plan.json"))) << files().last().text;
    EXPECT_TRUE(files().run(profileKnown())) << files().last().text;
    files().runPlan("plan.json", base.runFlags);
    EXPECT_EQ(files().last().code, 0) << files().last().text;
  }
}

/// Each way to go wrong is noticed, or all of the above says nothing.
TEST_F(ForeignFile, FaultsAreNoticed) {
  files().begin(0, files().base("sample"));
  files().reportAs(false);
  const auto complaintOf = [](const Arguments& arguments) {
    files().run(arguments, {.timeoutMs = 3000});
    return files().complaints().empty() ? std::string() : files().complaints().front();
  };
  if (files().guardsHeap()) {
    EXPECT_EQ(complaintOf({kFaultHeap}), "ended by signal Aborted");
  }
  EXPECT_EQ(complaintOf({kFaultCrash}), "ended by signal Segmentation fault");
  EXPECT_EQ(complaintOf({kFaultBug}), "ended with exit code 70");
  EXPECT_NE(complaintOf({kFaultWrite}).find("/outside/stray"), std::string::npos);
  EXPECT_EQ(files().complaints().back(), "changed what lies outside of its folder");
  EXPECT_EQ(complaintOf({kFaultEscape}), "printed bytes that no terminal should get");
  EXPECT_EQ(complaintOf({kFaultNoPlace}), "refused without a place");
  EXPECT_EQ(complaintOf({kFaultLeave}), "refused, and left /half_a_file");
  EXPECT_EQ(complaintOf({kFaultHang}), "did not end within its time");
  EXPECT_EQ(complaintOf({"verify", "plan.json"}), "");
  files().reportAs(true);
}

}  // namespace
}  // namespace stowage::tests
