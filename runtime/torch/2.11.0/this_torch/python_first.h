// SPDX-License-Identifier: Apache-2.0
//
// Who is asked first of a traced call in torch 2.11.0: the tracer, before Python's modes and
// subclasses, whose results would be missed.
#ifndef STOWAGE_RUNTIME_TORCH_2_11_0_THIS_TORCH_PYTHON_FIRST_H_
#define STOWAGE_RUNTIME_TORCH_2_11_0_THIS_TORCH_PYTHON_FIRST_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/PyInterpreter.h>
#include <c10/core/impl/PyInterpreterHooks.h>

namespace stowage::runtime {

/// Whether a mode or a subclass took the call, of keys `after` the tracer's own, `traced`. As
/// libtorch's kernel for Python does it, but what they call is traced.
inline bool pythonTook(const c10::OperatorHandle& op, c10::DispatchKeySet after,
                       c10::DispatchKey traced, torch::jit::Stack* stack) {
  constexpr c10::DispatchKey kPython = c10::DispatchKey::Python;
  if (!after.has(kPython)) return false;
  const c10::DispatchKeySet below(c10::DispatchKeySet::FULL_AFTER, kPython);
  const c10::DispatchKeySet above =
      c10::DispatchKeySet(c10::DispatchKeySet::FULL) - (below | c10::DispatchKeySet(kPython));
  const c10::impl::ExcludeDispatchKeyGuard isDone(above - c10::DispatchKeySet(traced));
  (*c10::impl::getGlobalPyInterpreter())->dispatch(op, stack);
  return true;
}

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_2_11_0_THIS_TORCH_PYTHON_FIRST_H_
