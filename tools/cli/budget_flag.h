// SPDX-License-Identifier: Apache-2.0
//
// Sizes on the command line: "24GiB", "1.5GiB", "24GB", "512MiB", "4096B", "80%", "50%peak". KiB
// MiB GiB TiB are powers of 1024, KB MB GB TB powers of 1000, a percentage is of a size known
// elsewhere (the unplanned peak, or the device). "device:24GiB": arena and what the process takes
// beside it together. A bare number is an error: nobody can tell what was meant. One parser for
// flags, files and tests.
#ifndef STOWAGE_TOOLS_CLI_BUDGET_FLAG_H_
#define STOWAGE_TOOLS_CLI_BUDGET_FLAG_H_

#include <llvm/ADT/StringRef.h>

#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/base/size.h"

namespace stowage::tools {

/// Errors: kInvalidArgument saying what was found and which forms are accepted.
ir::Expected<Size> parseSizeFlag(llvm::StringRef text);

/// "20%..100%", "4GiB..24GiB" or a comma list of sizes. Ranges give `steps` sizes, evenly spaced,
/// ends included.
ir::Expected<std::vector<Size>> parseSizeList(llvm::StringRef text, int steps);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_CLI_BUDGET_FLAG_H_
