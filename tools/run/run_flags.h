// SPDX-License-Identifier: Apache-2.0
//
// The command line of `stowage run`.
#ifndef STOWAGE_TOOLS_RUN_RUN_FLAGS_H_
#define STOWAGE_TOOLS_RUN_RUN_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/cli/verb.h"
#include "tools/run/run_pauses.h"
#include "tools/run/times_files.h"

namespace stowage::tools {

struct RunFlags : CommonFlags {
  std::string plan;
  std::string graph;
  std::string costs;
  std::vector<std::string> data;
  std::vector<std::string> weights;
  std::string save;
  std::string disk;
  bool verifyDisk = false;
  TimesFiles times;
  std::string resume;
  int64_t steps = 20;
  RunPauses pauses;
  int64_t checkEvery = 0;
  std::optional<uint64_t> seed;
  int threads = 0;
  int64_t ranks = 0;   // to be started; 0: as a launcher says, or none
  bool speaks = true;  // false of a rank behind the first
  bool compare = false;
  bool throttle = false;
  bool replan = false;
  // Of imported steps.
  std::string archive;
  std::optional<double> learningRate;
  bool randomWeights = false;
  bool otherData = false;
};
void addRunFlags(CLI::App& command, RunFlags& flags);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_RUN_FLAGS_H_
