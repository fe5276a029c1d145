// SPDX-License-Identifier: Apache-2.0
//
// A scope of Python's in which tensors get no memory (runtime/capture/graph/without_memory.h), as
// `torch.classes.stowage.WithoutMemory`. It ends on the thread that began it.
#ifndef STOWAGE_RUNTIME_PYTHON_BINDING_WITHOUT_MEMORY_HANDLE_H_
#define STOWAGE_RUNTIME_PYTHON_BINDING_WITHOUT_MEMORY_HANDLE_H_

#include <torch/custom_class.h>

#include <memory>

#include "runtime/capture/graph/without_memory.h"

namespace stowage::python {

class WithoutMemoryHandle : public torch::CustomClassHolder {
 public:
  WithoutMemoryHandle() : scope_(std::make_unique<runtime::WithoutMemory>()) {}
  void end() { scope_.reset(); }

 private:
  std::unique_ptr<runtime::WithoutMemory> scope_;
};

}  // namespace stowage::python

#endif  // STOWAGE_RUNTIME_PYTHON_BINDING_WITHOUT_MEMORY_HANDLE_H_
