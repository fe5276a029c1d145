// SPDX-License-Identifier: Apache-2.0
#include "planner/targets/torch_libraries.h"

#include <gtest/gtest.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringRef.h>

#include <checkout_folders.h>

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/targets/roofline.h"
#include "tests/support/or_fail.h"
#include "tests/support/source_files.h"

namespace stowage::planner {
namespace {

namespace fs = std::filesystem;
using tests::orFail;

// Of `kLibraries`, in its order: "2.11.0", "2.15.0".
std::vector<std::string> supported() {
  std::vector<std::string> versions;
  llvm::SmallVector<llvm::StringRef> parts;
  const std::string text = supportedTorches();
  llvm::StringRef(text).split(parts, " or ");
  for (const llvm::StringRef part : parts) versions.push_back(part.str());
  return versions;
}

std::vector<std::string> linesOf(const std::string& file) {
  const fs::path root = STOWAGE_SOURCE_DIR;
  return tests::readSource(root, root / file).lines;
}

bool says(const std::string& file, const std::string& text) {
  return llvm::any_of(linesOf(file), [&](llvm::StringRef line) { return line.contains(text); });
}

// What a line of `file` has between `begin`, with which it starts, and the next bracket.
std::string listIn(const char* file, llvm::StringRef begin) {
  for (llvm::StringRef line : linesOf(file)) {
    if (line.consume_front(begin)) return line.split(')').first.trim().str();
  }
  return "no line starts with " + begin.str();
}

// What stands in `folder` as prefix, version, suffix: the versions.
std::set<std::string> versionsIn(const char* folder, llvm::StringRef prefix,
                                 llvm::StringRef suffix) {
  std::set<std::string> versions;
  for (const auto& entry : fs::directory_iterator(fs::path(STOWAGE_SOURCE_DIR) / folder)) {
    const std::string text = entry.path().filename().string();
    llvm::StringRef name = text;
    if (!name.consume_front(prefix) || !name.consume_back(suffix)) continue;
    if (!name.empty() && llvm::isDigit(name.front())) versions.insert(name.str());
  }
  return versions;
}

TEST(TorchLibraries, ATargetHasThoseOfItsTorch) {
  using Libraries = std::vector<std::pair<std::string, std::string>>;
  const ir::Target old = orFail(findTargetProfile("h100", "2.11.0"));
  EXPECT_EQ(old.libraries, (Libraries{{"cuda", "13.0"}, {"cudnn", "9.19"}, {"torch", "2.11.0"}}));
  EXPECT_EQ(old.cudnnVersion, 91900);
  const ir::Target newest = orFail(findTargetProfile("h100", "2.15.0"));
  EXPECT_EQ(newest.libraries,
            (Libraries{{"cuda", "13.2"}, {"cudnn", "9.26"}, {"torch", "2.15.0"}}));
  EXPECT_EQ(newest.cudnnVersion, 92600);
  EXPECT_EQ(orFail(findTargetProfile("cpu", "2.15.0")).libraries, (Libraries{{"torch", "2.15.0"}}));
  EXPECT_EQ(orFail(findProfileOfGpu("NVIDIA H200", 90, "2.15.0")).libraries, newest.libraries);
  EXPECT_EQ(orFail(findTargetProfile("cpu")).libraries, (Libraries{{"torch", kDefaultTorch}}));
}

// The build, the scripts and the planner each have the list in their own language.
TEST(TorchLibraries, TheVersionsAreTheSameEverywhere) {
  const std::vector<std::string> versions = supported();
  const std::string list = llvm::join(versions, " ");
  const char* const script = "tools/dev";
  const char* const build = "tools/cmake/FindTorchWheel.cmake";
  EXPECT_EQ(listIn(script, "readonly kTorchVersions=("), list);
  EXPECT_EQ(listIn(build, "set(STOWAGE_TORCH_VERSIONS "), list);
  EXPECT_EQ(listIn(script, "readonly kDefaultTorch="), kDefaultTorch);
  EXPECT_EQ(listIn(build, "set(STOWAGE_TORCH_DEFAULT "), kDefaultTorch);
  EXPECT_EQ(listIn(script, "readonly kUntestedTorches=("),
            listIn(build, "set(STOWAGE_TORCH_UNTESTED"));
  EXPECT_TRUE(says("tools/docs/python.md", supportedTorches()));
  EXPECT_TRUE(says("tools/docs/limits.md", supportedTorches()));
  const std::set<std::string> all(versions.begin(), versions.end());
  EXPECT_EQ(versionsIn("runtime/torch", "", ""), all);
  EXPECT_EQ(versionsIn("tools", "torch_wheels_", ".txt"), all);
  EXPECT_EQ(versionsIn("tools", "python_requirements_", ".txt"), all);
}

TEST(TorchLibraries, CudaAndCudnnAreThoseThatWheelsBring) {
  for (const std::string& version : supported()) {
    const std::string pins = "tools/python_requirements_" + version + ".txt";
    const auto libraries = orFail(findTargetProfile("h100", version)).libraries;
    ASSERT_EQ(libraries.size(), 3U);
    EXPECT_TRUE(says(pins, "nvidia-cuda-runtime==" + libraries[0].second + ".")) << version;
    EXPECT_TRUE(says(pins, "nvidia-cudnn-cu13==" + libraries[1].second + ".")) << version;
    EXPECT_TRUE(says(pins, "torch==" + libraries[2].second + " ")) << version;
  }
}

TEST(TorchLibraries, EvidenceOfGpusIsOfOneVersion) {
  EXPECT_TRUE(wasRunOnGpu("2.11.0"));
  EXPECT_FALSE(wasRunOnGpu("2.15.0"));
  EXPECT_FALSE(wasRunOnGpu("2.9.0"));
}

TEST(TorchLibraries, AnotherTorchIsRefused) {
  for (const char* wrong : {"2.9.0", "2.11.1", "", "2.15"}) {
    ir::Expected<ir::Target> target = findTargetProfile("cpu", wrong);
    ASSERT_FALSE(static_cast<bool>(target)) << wrong;
    const ir::PlanError error = ir::takePayload(target.takeError());
    EXPECT_EQ(error.code(), ir::ErrorCode::kUnsupported);
    EXPECT_EQ(error.text(),
              "found torch '" + std::string(wrong) + "', expected " + supportedTorches());
  }
}

TEST(TorchLibraries, AGraphSaysWhatCapturedIt) {
  const auto torchBy = [](const std::string& producer) {
    ir::GraphBuilder builder("step", {.producer = producer});
    return torchOf(std::move(builder).finish());
  };
  EXPECT_EQ(torchBy("torch 2.11.0"), "2.11.0");
  EXPECT_EQ(torchBy("stowage 0.1.0, torch 2.15.0"), "2.15.0");
  EXPECT_EQ(torchBy("torch.export, torch 2.11.0"), "2.11.0");
  EXPECT_EQ(torchBy("torch.export of torch 2.9.1, torch 2.15.0"), "2.15.0");
  EXPECT_EQ(torchBy("by hand"), "");
  EXPECT_EQ(torchBy(""), "");
}

}  // namespace
}  // namespace stowage::planner
