// SPDX-License-Identifier: Apache-2.0
//
// Values that a step's host code asks for and that are known before the step runs, because nothing
// but constants and the step's inputs goes into them: attention_mask.all(), labels.max().
// A recorded part of a step and the inputs' values -> the tensor's value, by running the few calls
// that make it on the CPU.
// Invariants: nothing random, no parameter and no state goes into them. A draw of torch.rand()
// compared with a number that no draw is below (or that all are below) is known without drawing.
// For a step on another device the calls must be exact (integers, booleans), or of constants alone.
// For a size they must be exact; on the CPU they may also move or compare floating-point numbers.
// Not here: what is done with the value (retrace.cpp).
#ifndef STOWAGE_RUNTIME_CAPTURE_GRAPH_KNOWN_VALUES_H_
#define STOWAGE_RUNTIME_CAPTURE_GRAPH_KNOWN_VALUES_H_

#include <ATen/core/Tensor.h>

#include <optional>
#include <unordered_map>

#include "runtime/capture/trace/trace.h"

namespace stowage::runtime {

struct KnownValue {
  at::Tensor value;         // on the CPU
  bool usesInputs = false;  // else it is the same in every step
};

/// The inputs' values, by storage: tensors with memory, of the captured sizes and strides.
using InputValues = std::unordered_map<StorageKey, at::Tensor>;

/// What a value is for. A size that differed from the running step's would not be seen there.
enum class KnownFor : uint8_t { kHost, kSize };

struct KnownUse {
  bool isOnCpu = false;  // the step is for the CPU
  KnownFor purpose = KnownFor::kHost;
};

/// The value of a tensor of `step` as it is after the last node. Nothing when it is not known.
std::optional<KnownValue> findKnownValue(const StepTrace& step, const StorageTable& storages,
                                         ir::ValueId tensor, const InputValues& inputs,
                                         KnownUse use);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_GRAPH_KNOWN_VALUES_H_
