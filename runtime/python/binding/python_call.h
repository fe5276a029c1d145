// SPDX-License-Identifier: Apache-2.0
//
// One way from C++ into Python: a C function that Python's ctypes makes of a Python function. It is
// called with the name of what is wanted and a number; tensors and lists come back by calls on the
// StepHandle that Python makes meanwhile. So this library needs no header of Python, and is the
// same for all its versions.
// An exception of Python stays with Python, which raises it again when the call that led here has
// failed; here it is a plain error.
// Called from any thread: ctypes takes the lock of the interpreter.
#ifndef STOWAGE_RUNTIME_PYTHON_BINDING_PYTHON_CALL_H_
#define STOWAGE_RUNTIME_PYTHON_BINDING_PYTHON_CALL_H_

#include <cstdint>
#include <stdexcept>
#include <string>

namespace stowage::python {

class PythonCall {
 public:
  /// 0: done; else an exception was raised.
  using Function = int32_t (*)(const char* what, int64_t first, int64_t second);

  /// `address`: of a Function, which outlives every copy.
  explicit PythonCall(int64_t address)
      : function_(reinterpret_cast<Function>(address)) {}  // NOLINT(performance-no-int-to-ptr)

  /// Throws when Python raised.
  void operator()(const char* what, int64_t first = 0, int64_t second = 0) const {
    if (function_(what, first, second) == 0) return;
    throw std::runtime_error(std::string("Python raised an exception in '") + what + "'");
  }
  /// For destructors and the like.
  void quietly(const char* what, int64_t first, int64_t second = 0) const {
    function_(what, first, second);
  }

 private:
  Function function_;
};

}  // namespace stowage::python

#endif  // STOWAGE_RUNTIME_PYTHON_BINDING_PYTHON_CALL_H_
