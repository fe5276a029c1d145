// SPDX-License-Identifier: Apache-2.0
//
// An optimizer of Python (torch.optim, or any of its kind) as a StepOptimizer. What is kept where
// is Python's business (stowage/_optimizer.py): it answers with the tensors and numbers asked for.
// Here: the questions, by optimizer and parameter, and the answers while they are on their way.
#ifndef STOWAGE_RUNTIME_PYTHON_BINDING_PYTHON_OPTIMIZER_H_
#define STOWAGE_RUNTIME_PYTHON_BINDING_PYTHON_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/capture/host_state/step_optimizer.h"
#include "runtime/python/binding/python_call.h"

namespace stowage::python {

/// What Python gave while it was asked something.
struct PythonAnswer {
  std::vector<std::string> names;
  std::vector<at::Tensor> tensors;
  std::vector<double> numbers;
  void clear() { *this = {}; }
};

/// `index`: of the optimizer, as Python counts them. `answer` is where its answers arrive; it
/// outlives the result.
std::shared_ptr<runtime::StepOptimizer> makePythonOptimizer(PythonCall call, int64_t index,
                                                            std::vector<at::Tensor> parameters,
                                                            PythonAnswer& answer);

}  // namespace stowage::python

#endif  // STOWAGE_RUNTIME_PYTHON_BINDING_PYTHON_OPTIMIZER_H_
