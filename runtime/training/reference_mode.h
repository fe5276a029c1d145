// SPDX-License-Identifier: Apache-2.0
//
// Threads and deterministic mode of an unplanned training: those of the target of the plan that it
// is compared with. The mode before comes back when the object is destroyed.
#ifndef STOWAGE_RUNTIME_TRAINING_REFERENCE_MODE_H_
#define STOWAGE_RUNTIME_TRAINING_REFERENCE_MODE_H_

#include <ATen/Parallel.h>

#include "ir/base/error.h"
#include "ir/schedule/target.h"
#include "runtime/cpu/thread_trial.h"
#include "runtime/torch/deterministic_mode.h"

namespace stowage::runtime {

/// Whether this machine gives an unplanned run of `target` its threads and their memory.
inline ir::Error checkReference(const ir::Target& target) {
  return checkOpThreads(target.intraOpThreads);
}

class ReferenceMode {
 public:
  explicit ReferenceMode(const ir::Target& target)
      : threadsBefore_(at::get_num_threads()), mode_(target.deterministic) {
    if (target.intraOpThreads > 0) at::set_num_threads(target.intraOpThreads);
  }
  ~ReferenceMode() { at::set_num_threads(threadsBefore_); }
  ReferenceMode(const ReferenceMode&) = delete;
  ReferenceMode& operator=(const ReferenceMode&) = delete;

 private:
  int threadsBefore_;
  DeterministicMode mode_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TRAINING_REFERENCE_MODE_H_
