// SPDX-License-Identifier: Apache-2.0
//
// The CUDA library on a machine without a GPU: asking for it is an answered question, and what it
// wants of the program that loads it is there.
#include "runtime/gpu/gpu_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace stowage::tests {
namespace {

/// The names that `nm` lists, without their versions.
std::set<std::string> symbols(const std::string& flags, const std::string& file) {
  std::set<std::string> names;
  FILE* pipe = popen((STOWAGE_NM " -D " + flags + " --format=posix " + file).c_str(), "r");
  if (pipe == nullptr) return names;
  std::array<char, 8192> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    const std::string text = line.data();
    names.insert(text.substr(0, text.find_first_of(" @")));
  }
  pclose(pipe);
  return names;
}

TEST(GpuLibrary, WithoutAGpuTheAnswerSaysWhatIsMissing) {
  ir::Expected<runtime::GpuLibrary*> library = runtime::loadGpuLibrary();
  if (library) GTEST_SKIP() << "this machine has a GPU";
  const ir::PlanError error = ir::takePayload(library.takeError());
  EXPECT_EQ(error.code(), ir::ErrorCode::kEnvironment) << error.text();
  // libtorch's CUDA libraries are asked for where there is a driver, which says more of a machine.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    EXPECT_NE(error.text().find("this machine has no NVIDIA driver"), std::string::npos)
        << error.text();
    EXPECT_TRUE(error.notes().empty());
  } else {
    EXPECT_NE(error.text().find("could not be loaded"), std::string::npos) << error.text();
    ASSERT_EQ(error.notes().size(), 1U);
    EXPECT_NE(error.notes().front().find("LD_LIBRARY_PATH"), std::string::npos);
  }
  EXPECT_EQ(runtime::loadedGpuLibrary(), nullptr);
}

TEST(GpuLibrary, SaysWhenOthersMemoryIsCountedIn) {
  EXPECT_EQ(runtime::describeMemoryCount({.countsOwnMemory = true}), "");
  EXPECT_NE(
      runtime::describeMemoryCount({.countsOwnMemory = false}).find("other processes included"),
      std::string::npos);
}

/// "stowage 0.1.0, interface 0123456789abcdef", as it is in a program's or library's bytes.
std::string interfaceIn(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::regex id("stowage [0-9.]+, interface [0-9a-f]{16}");
  std::smatch found;
  return std::regex_search(bytes, found, id) ? found.str() : "";
}

TEST(GpuLibrary, IsOfTheSameHeadersAsThePrograms) {
  const std::string library = STOWAGE_CUDA_FILE;
  if (library.empty()) GTEST_SKIP() << "no CUDA toolkit: the library was not built";
  EXPECT_NE(interfaceIn(library), "");
  EXPECT_EQ(interfaceIn(library), interfaceIn(STOWAGE_PROGRAM));
}

TEST(GpuLibrary, OtherHeadersAreAnotherInterface) {
  const std::filesystem::path root = testing::TempDir() + "/interface";
  const auto idOf = [&](const std::string& text, const std::string& torch = "2.11.0") {
    std::filesystem::create_directories(root / "ir/graph");
    std::ofstream(root / "ir/graph/graph.h") << text;
    const std::string out = (root / "id.h").string();
    const std::string command = STOWAGE_CMAKE " -DROOT=" + root.string() +
                                " -DVERSION=1 -DTORCH=" + torch + " -DOUT=" + out +
                                " -P " STOWAGE_INTERFACE_SCRIPT;
    EXPECT_EQ(std::system(command.c_str()), 0);
    return interfaceIn(out);
  };
  const std::string one = idOf("struct Graph {};");
  EXPECT_NE(one, "");
  EXPECT_NE(idOf("struct Graph { int a; };"), one);
  EXPECT_EQ(idOf("struct Graph {};"), one);
  EXPECT_NE(idOf("struct Graph {};", "2.15.0"), one);
}

TEST(GpuLibrary, FindsAllItNeedsInThePrograms) {
  const std::string library = STOWAGE_CUDA_FILE;
  if (library.empty()) GTEST_SKIP() << "no CUDA toolkit: the library was not built";
  const std::set<std::string> needed = symbols("--undefined-only", library);
  const std::set<std::string> offered = symbols("--defined-only", STOWAGE_PROGRAM);
  int own = 0;
  for (const std::string& name : needed) {
    if (name.find("7stowage") == std::string::npos) continue;
    ++own;
    EXPECT_TRUE(offered.count(name) > 0) << name;
  }
  EXPECT_GT(own, 20);
}

}  // namespace
}  // namespace stowage::tests
