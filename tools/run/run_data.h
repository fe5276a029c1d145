// SPDX-License-Identifier: Apache-2.0
//
// Batches for `stowage run`, found by number so that a training can resume anywhere. Sources:
//   a safetensors file with one tensor per input, whose first dimension is the step; or with one
//   long row of "tokens", cut into consecutive windows, for steps that read tokens and the tokens
//   after them. Both start over at their end;
//   text files, byte by byte (tools/run/text_batches.h);
//   none: random numbers from the seed.
// Every index is checked against the size of the table that it looks up.
#ifndef STOWAGE_TOOLS_RUN_RUN_DATA_H_
#define STOWAGE_TOOLS_RUN_RUN_DATA_H_

#include <memory>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "runtime/training/batch.h"
#include "tools/models/model.h"

namespace stowage::tools {

class RunData {
 public:
  virtual ~RunData() = default;
  /// Batch number `position`, from 0. Errors: kIo; kParse with the file and the place of a value
  /// that is out of range.
  virtual ir::Expected<runtime::Batch> at(int64_t position) = 0;
  /// "tokens.safetensors, 812 batches".
  virtual std::string describe() const = 0;
  /// Identifies the data wherever its files lie: "812 batches, xxh64:...". For long files the hash
  /// covers the layout and the two ends of each tensor.
  virtual std::string identity() const = 0;
};

/// `inputs` outlives the data. Errors: kIo, kParse with the file, what was found and what was
/// expected.
ir::Expected<std::unique_ptr<RunData>> openRunData(const std::vector<std::string>& files,
                                                   const std::vector<TrainingStep::Input>& inputs,
                                                   uint64_t seed);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_RUN_DATA_H_
