// SPDX-License-Identifier: Apache-2.0
//
// Who is asked first of a traced call in torch 2.15.0: Python's modes and subclasses.
#ifndef STOWAGE_RUNTIME_TORCH_2_15_0_THIS_TORCH_PYTHON_FIRST_H_
#define STOWAGE_RUNTIME_TORCH_2_15_0_THIS_TORCH_PYTHON_FIRST_H_

#include <ATen/core/dispatch/Dispatcher.h>

namespace stowage::runtime {

/// Whether a mode or a subclass took the call: they had it before.
inline bool pythonTook(const c10::OperatorHandle& /*op*/, c10::DispatchKeySet /*after*/,
                       c10::DispatchKey /*traced*/, torch::jit::Stack* /*stack*/) {
  return false;
}

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_2_15_0_THIS_TORCH_PYTHON_FIRST_H_
