// SPDX-License-Identifier: Apache-2.0
//
// What the closures of an example model count on the host, brought on by many steps at once: step
// counts of its optimizer and its scheduler. The models count nowhere else
// (tools/models/model.h). Learning rates are not touched.
#ifndef STOWAGE_TOOLS_TRAINING_STEP_COUNTS_H_
#define STOWAGE_TOOLS_TRAINING_STEP_COUNTS_H_

#include <cstdint>

#include "tools/models/model.h"

namespace stowage::tools {

/// As if `update` had run so often. After a checkpoint: runtime::RunnerOptions::advance.
void advanceCounts(const TrainingStep& training, int64_t steps);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_TRAINING_STEP_COUNTS_H_
