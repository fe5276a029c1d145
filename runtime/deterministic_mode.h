// SPDX-License-Identifier: Apache-2.0
//
// libtorch's deterministic mode for as long as this lives. It decides which kernels run and what
// they allocate (fresh tensors are filled, for one), so capture, measurement, run and reference
// must agree on it. The mode belongs to the process.
#ifndef STOWAGE_RUNTIME_DETERMINISTIC_MODE_H_
#define STOWAGE_RUNTIME_DETERMINISTIC_MODE_H_

#include <ATen/Context.h>

namespace stowage::runtime {

class DeterministicMode {
 public:
  explicit DeterministicMode(bool on)
      : was_(at::globalContext().deterministicAlgorithms()),
        warned_(at::globalContext().deterministicAlgorithmsWarnOnly()) {
    at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/false);
  }
  ~DeterministicMode() { at::globalContext().setDeterministicAlgorithms(was_, warned_); }
  DeterministicMode(const DeterministicMode&) = delete;
  DeterministicMode& operator=(const DeterministicMode&) = delete;

 private:
  bool was_;
  bool warned_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_DETERMINISTIC_MODE_H_
