// SPDX-License-Identifier: Apache-2.0
//
// libtorch's deterministic mode. It decides which kernels run and what they allocate, so capture,
// measurement, run and reference must agree on it. The mode belongs to the process.
// By default this mode also fills every fresh tensor with NaN, to show reads of unwritten memory.
// That is off here: with in-place reuse it would overwrite the operand before the op has read it,
// and no result depends on it.
#ifndef STOWAGE_RUNTIME_TORCH_DETERMINISTIC_MODE_H_
#define STOWAGE_RUNTIME_TORCH_DETERMINISTIC_MODE_H_

#include <ATen/Context.h>

#include <string>

#include "ir/base/error.h"

namespace stowage::runtime {

inline void setDeterministicMode(bool on) {
  at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/false);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
}

/// Whether the process computes as a plan for `wanted` expects. Errors: kPlanMismatch.
inline ir::Error checkDeterministicMode(bool wanted) {
  const auto& context = at::globalContext();
  if (context.deterministicAlgorithms() != wanted) {
    return ir::makeError(ir::ErrorCode::kPlanMismatch,
                         std::string("the plan is for deterministic algorithms ") +
                             (wanted ? "on" : "off") + ", libtorch has them " +
                             (wanted ? "off" : "on"));
  }
  if (wanted && context.deterministicFillUninitializedMemory()) {
    return ir::makeError(ir::ErrorCode::kPlanMismatch,
                         "the plan is for fresh tensors that are not filled, libtorch fills them "
                         "(deterministicFillUninitializedMemory)");
  }
  return ir::success();
}

/// For as long as this lives.
class DeterministicMode {
 public:
  explicit DeterministicMode(bool on)
      : was_(at::globalContext().deterministicAlgorithms()),
        warned_(at::globalContext().deterministicAlgorithmsWarnOnly()),
        filled_(at::globalContext().deterministicFillUninitializedMemory()) {
    setDeterministicMode(on);
  }
  ~DeterministicMode() {
    at::globalContext().setDeterministicAlgorithms(was_, warned_);
    at::globalContext().setDeterministicFillUninitializedMemory(filled_);
  }
  DeterministicMode(const DeterministicMode&) = delete;
  DeterministicMode& operator=(const DeterministicMode&) = delete;

 private:
  bool was_;
  bool warned_;
  bool filled_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_DETERMINISTIC_MODE_H_
