// SPDX-License-Identifier: Apache-2.0
//
// What `stowage run` does between steps, as its user asks for it: checkpoints, and releases of the
// device memory; and what it says of the releases.
#ifndef STOWAGE_TOOLS_RUN_RUN_PAUSES_H_
#define STOWAGE_TOOLS_RUN_RUN_PAUSES_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/training/planned_training.h"

namespace CLI {
class App;
}

namespace stowage::tools {

/// By numbers of steps; 0: never.
struct RunPauses {
  int64_t saveEvery = 0;
  int64_t releaseEvery = 0;
};

/// --save-every and --release-every, after --save.
void addPauseFlags(CLI::App& command, RunPauses& pauses);

/// Lines; at least one release. The last one's rates count: the first one also pins memory.
std::string releasesText(llvm::ArrayRef<runtime::ArenaRelease> releases);
nlohmann::ordered_json releasesJson(llvm::ArrayRef<runtime::ArenaRelease> releases);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_RUN_PAUSES_H_
