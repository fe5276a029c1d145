// SPDX-License-Identifier: Apache-2.0
//
// Tensors from outside of module, optimizers and inputs that a step touches: the plan has the bytes
// that they held when it took them, and where the step writes them, the tensor's own stay behind.
// Remembers what each held then -> has anybody written it since?
// Seen: any write to tensors on the CPU of up to 1 MiB; to larger ones that the step only reads,
// each write that libtorch counts (in-place ops). Not seen: bytes of those that are written behind
// libtorch's back (data_ptr, `.data`), and writes to larger ones that the step writes, too.
#ifndef STOWAGE_RUNTIME_CAPTURE_HOST_STATE_OUTSIDE_TENSORS_H_
#define STOWAGE_RUNTIME_CAPTURE_HOST_STATE_OUTSIDE_TENSORS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <map>
#include <string>

#include "ir/base/error.h"
#include "runtime/capture/trace/trace.h"

namespace stowage::runtime {

class OutsideTensors {
 public:
  /// The plan takes the bytes of a real storage.
  void take(const std::string& name, const StorageFacts& facts);
  /// Errors: kPlanMismatch, naming the first that was written since it was taken.
  ir::Error checkUnchanged() const;

 private:
  struct Taken {
    c10::Storage storage;
    c10::VariableVersion version;
    uint32_t countThen = 0;
    uint64_t hashThen = 0;
  };
  static uint64_t hashOf(const c10::Storage& storage);

  std::map<std::string, Taken> taken_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_HOST_STATE_OUTSIDE_TENSORS_H_
