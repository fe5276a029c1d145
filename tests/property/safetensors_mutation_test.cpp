// SPDX-License-Identifier: Apache-2.0
//
// Ten thousand damaged safetensors files, from a seed: each must be an error that names the file,
// or a file whose tensors can all be read and lie inside of it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "runtime/files/safetensors.h"
#include "tests/support/or_fail.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/text_mutator.h"

namespace stowage::tests {
namespace {

constexpr uint32_t kSeed = 77;
constexpr int kMutants = 10000;

class SafetensorsMutation : public testing::Test {
 protected:
  std::string makeOriginal() const {
    runtime::SafetensorsHeader header;
    header.entries.push_back({"wte.weight", "", ir::DType::kF32, {4, 3}, {}});
    header.entries.push_back({"step \"1\"\n", "", ir::DType::kI64, {}, {}});
    header.entries.push_back({"mask", "", ir::DType::kBool, {0}, {}});
    header.entries.push_back({"h.0.bias", "", ir::DType::kBF16, {7}, {}});
    header.metadata = {{"format", "pt"}, {"step", "12"}};
    auto writer = orFail(runtime::SafetensorsWriter::create(path_, header));
    for (const size_t bytes : {48, 8, 0, 14}) {
      orFail(writer.append(std::vector<uint8_t>(bytes, 1)));
    }
    orFail(writer.commit());
    return readText(path_);
  }

  void write(const std::string& content) const { writeText(path_, content); }

  /// "" if the file is refused with its name, or can be read in whole.
  std::string judge() const {
    auto reader = runtime::SafetensorsReader::open(path_);
    if (!reader) {
      const std::string text = ir::describe(reader.takeError());
      return text.find(path_) == 0 ? "" : "does not begin with the file: " + text;
    }
    ++read_;
    const auto size = static_cast<int64_t>(std::filesystem::file_size(path_));
    for (const runtime::SafetensorsEntry& entry : reader->header().entries) {
      if (entry.bytes.begin < 0 || entry.bytes.end > size) return "bytes outside of the file";
      std::vector<uint8_t> bytes(static_cast<size_t>(entry.bytes.end - entry.bytes.begin));
      const std::string error = ir::describe(reader->read(entry, bytes));
      if (!error.empty()) return error;
    }
    return "";
  }

  ScratchFolder folder_{"stowage_mutants"};
  std::string path_ = folder_.at("mutant.safetensors");
  mutable int read_ = 0;  // mutants that could be read
};

TEST_F(SafetensorsMutation, EveryDamagedFileIsAnErrorOrCanBeRead) {
  const std::string original = makeOriginal();
  ASSERT_EQ(judge(), "");
  ASSERT_EQ(read_, 1);
  TextMutator mutator(original, kSeed);
  for (int i = 0; i < kMutants; ++i) {
    const std::string mutant = mutator.mutate();
    write(mutant);
    ASSERT_EQ(judge(), "") << "mutant " << i << ":\n" << mutant;
  }
  // Most are refused; damage to a name or to values leaves a file that can be read.
  EXPECT_GT(read_, kMutants / 100);
  EXPECT_LT(read_, kMutants / 2);
}

}  // namespace
}  // namespace stowage::tests
