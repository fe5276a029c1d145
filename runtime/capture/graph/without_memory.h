// SPDX-License-Identifier: Apache-2.0
//
// A scope in which tensors get no memory and their construction is recorded, so that a model larger
// than any memory can be built. Its values come later: from a checkpoint, or by running the record
// (CapturedStep::replayConstruction).
// Inputs: any code that makes tensors on this thread. Output: tensors that look like the real ones.
// Invariants: no random numbers are drawn; every device is accepted, whether it exists or not.
// Not here: steps. Scopes do not nest, and none may be open while a step is captured.
#ifndef STOWAGE_RUNTIME_CAPTURE_GRAPH_WITHOUT_MEMORY_H_
#define STOWAGE_RUNTIME_CAPTURE_GRAPH_WITHOUT_MEMORY_H_

#include <memory>

namespace stowage::runtime {

class WithoutMemory {
 public:
  WithoutMemory();
  ~WithoutMemory();
  WithoutMemory(const WithoutMemory&) = delete;
  WithoutMemory& operator=(const WithoutMemory&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_GRAPH_WITHOUT_MEMORY_H_
