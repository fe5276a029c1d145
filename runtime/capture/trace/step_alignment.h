// SPDX-License-Identifier: Apache-2.0
//
// How the first step of a training differs from all later ones: it also creates state. Pairs each
// node of a later step with the node of the first step that does the same.
// Not here: what the unpaired nodes mean (first_values.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_TRACE_STEP_ALIGNMENT_H_
#define STOWAGE_RUNTIME_CAPTURE_TRACE_STEP_ALIGNMENT_H_

#include <cstdint>
#include <vector>

#include "runtime/capture/trace/trace.h"

namespace stowage::runtime {

struct StepAlignment {
  std::vector<int32_t> firstOf;     // by node of the later step: its partner in the first; -1: none
  std::vector<uint32_t> onlyFirst;  // nodes of the first step without a partner, in order
};

StepAlignment alignFirstStep(const StepTrace& first, const StepTrace& later,
                             const StorageTable& storages);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_TRACE_STEP_ALIGNMENT_H_
