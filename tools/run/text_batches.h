// SPDX-License-Identifier: Apache-2.0
//
// Batches for a byte-level language model from a text that every machine has (the licence texts of
// the distribution): token = byte, target = the byte after it. Windows are drawn from a fixed
// sequence of positions, so that the same seed gives the same batches on every machine with the
// same text.
#ifndef STOWAGE_TOOLS_RUN_TEXT_BATCHES_H_
#define STOWAGE_TOOLS_RUN_TEXT_BATCHES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/error.h"

namespace stowage::tools {

struct TextBatch {
  std::vector<int64_t> tokens;   // [batch, sequence], row-major
  std::vector<int64_t> targets;  // same shape
};

class TextBatches {
 public:
  /// Reads `files` in the order given. Errors: kIo naming a file that cannot be read;
  /// kInvalidArgument when all of them together hold no more than `sequence` bytes.
  static ir::Expected<TextBatches> open(const std::vector<std::string>& files, int64_t batch,
                                        int64_t sequence, uint64_t seed);
  TextBatch next();
  /// The next batch is number `position` of the sequence, from 0.
  void seek(int64_t position);
  const std::string& text() const { return text_; }
  size_t textBytes() const { return text_.size(); }

 private:
  TextBatches(std::string text, int64_t batch, int64_t sequence, uint64_t seed)
      : text_(std::move(text)), batch_(batch), sequence_(sequence), seed_(seed), state_(seed) {}
  std::string text_;
  int64_t batch_;
  int64_t sequence_;
  uint64_t seed_;
  uint64_t state_;
};

/// The distribution's licence texts, in order of name; empty where there are none.
std::vector<std::string> licenceTexts();

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_TEXT_BATCHES_H_
