// SPDX-License-Identifier: Apache-2.0
//
// Estimated step times beside measured ones: captured steps and cost files of `stowage profile` in,
// a table out. A cost file's device says which profile is asked.
#ifndef STOWAGE_TOOLS_BENCH_ESTIMATES_H_
#define STOWAGE_TOOLS_BENCH_ESTIMATES_H_

#include <llvm/Support/raw_ostream.h>

#include <string>
#include <vector>

#include "ir/base/error.h"

namespace stowage::tools {

struct EstimateFolders {
  std::string steps;               // NAME.stow
  std::vector<std::string> costs;  // NAME.json, a folder per GPU
};
/// Prints a row per step and folder of costs. True when each error is within the bar that the
/// estimate states. Errors: kIo, kParse, kInvalidArgument for costs of a GPU without a profile.
ir::Expected<bool> printEstimates(const EstimateFolders& folders, llvm::raw_ostream& os);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_BENCH_ESTIMATES_H_
