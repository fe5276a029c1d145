// SPDX-License-Identifier: Apache-2.0
#include "tools/run/text_batches.h"

#include <llvm/Support/FileSystem.h>

#include <algorithm>

#include "runtime/machine/machine_memory.h"
#include "tools/files/whole_file.h"

namespace stowage::tools {

namespace {

constexpr const char* kLicenceFolder = "/usr/share/common-licenses";

constexpr uint64_t kStride = 0x9E3779B97F4A7C15ULL;

/// One step of SplitMix64: a fixed sequence of well-mixed numbers.
uint64_t nextRandom(uint64_t& state) {
  uint64_t z = (state += kStride);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

}  // namespace

ir::Expected<TextBatches> TextBatches::open(const std::vector<std::string>& files, int64_t batch,
                                            int64_t sequence, uint64_t seed) {
  std::string text;
  const Bytes most = runtime::usableMemory().bytes;
  for (const std::string& file : files) {
    ir::Expected<std::string> content = readWholeFile(file, most);
    if (!content) return content.takeError();
    text += *content;
  }
  if (static_cast<int64_t>(text.size()) <= sequence) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "the text has " + std::to_string(text.size()) +
                             " bytes, expected more than the sequence of " +
                             std::to_string(sequence));
  }
  return TextBatches(std::move(text), batch, sequence, seed);
}

void TextBatches::seek(int64_t position) {
  // One number per row, and the state grows by the same with each.
  state_ = seed_ + static_cast<uint64_t>(position * batch_) * kStride;
}

TextBatch TextBatches::next() {
  TextBatch result;
  const uint64_t starts = text_.size() - static_cast<uint64_t>(sequence_);
  for (int64_t row = 0; row < batch_; ++row) {
    const size_t start = nextRandom(state_) % starts;
    for (int64_t i = 0; i < sequence_; ++i) {
      result.tokens.push_back(static_cast<unsigned char>(text_[start + i]));
      result.targets.push_back(static_cast<unsigned char>(text_[start + i + 1]));
    }
  }
  return result;
}

std::vector<std::string> licenceTexts() {
  std::vector<std::string> files;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(kLicenceFolder, code), end; it != end && !code;
       it.increment(code)) {
    // Links point at other texts of the folder: each text once.
    if (it->type() == llvm::sys::fs::file_type::regular_file) files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace stowage::tools
