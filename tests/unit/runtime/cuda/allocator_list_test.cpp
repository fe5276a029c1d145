// SPDX-License-Identifier: Apache-2.0
//
// The allocator that we put before libtorch's passes on all that this torch's interface has. Pure
// functions that are missing do not compile; of those with a body of their own nobody would hear.
#include <gtest/gtest.h>

#include <checkout_folders.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace {

std::string readText(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Names of functions that follow `pattern`'s first words.
std::set<std::string> namesIn(const std::string& text, const std::string& pattern) {
  std::set<std::string> names;
  const std::regex expression(pattern);
  for (std::sregex_iterator i(text.begin(), text.end(), expression), end; i != end; ++i) {
    names.insert((*i)[1].str());
  }
  return names;
}

/// The body of class CUDAAllocator.
std::string interfaceOf(const std::string& header) {
  const size_t begin = header.find("class CUDAAllocator :");
  EXPECT_NE(begin, std::string::npos);
  const size_t end = header.find("\n};", begin);
  EXPECT_NE(end, std::string::npos);
  return header.substr(begin, end - begin);
}

TEST(AllocatorList, EverythingThatLibtorchMayAskIsPassedOn) {
  const std::string header = readText(STOWAGE_TORCH_INCLUDE "/c10/cuda/CUDACachingAllocator.h");
  const std::set<std::string> asked = namesIn(interfaceOf(header), R"(virtual [^;{]*?(\w+)\()");
  EXPECT_GT(asked.size(), 30U);
  const std::string ours = readText(STOWAGE_SOURCE_DIR "/runtime/cuda/served_cuda_allocator.cpp") +
                           readText(STOWAGE_SOURCE_DIR "/runtime/torch/" STOWAGE_TORCH_VERSION
                                                       "/this_torch/cuda_allocator_extras.h");
  // Memory is served from the plan, or released to whoever it is of.
  const std::set<std::string> kOwn = {"raw_delete"};
  for (const std::string& name : asked) {
    EXPECT_TRUE(std::regex_search(ours, std::regex("\\b" + name + R"(\([^;{]*\)[^;{]* override)")))
        << name << " of torch " << STOWAGE_TORCH_VERSION;
    EXPECT_TRUE(kOwn.count(name) > 0 || ours.find("inner_->" + name + "(") != std::string::npos)
        << name << " of torch " << STOWAGE_TORCH_VERSION;
  }
}

}  // namespace
