// SPDX-License-Identifier: Apache-2.0
//
// What optimizer state must hold before the first step, so that the first step can be run as any
// later one. Two kinds:
// - made by calls of the first step that later steps lack (zeros_like, a float32 copy of a
//   parameter): those calls, run for real;
// - an accumulator that the first step filled with its first contribution (SGD's momentum,
// gradients
//   kept by zero_grad): -0.0, which added to any number gives that number, its sign included.
// Errors: kUnsupported for anything else, naming the state; for a first step that does more than
// later ones beside making state, or less.
// Not here: values of parameters.
#ifndef STOWAGE_RUNTIME_CAPTURE_GRAPH_FIRST_VALUES_H_
#define STOWAGE_RUNTIME_CAPTURE_GRAPH_FIRST_VALUES_H_

#include <llvm/ADT/ArrayRef.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/base/error.h"
#include "runtime/capture/trace/step_alignment.h"
#include "runtime/capture/trace/trace.h"

namespace stowage::runtime {

/// A persistent storage that the first step created.
struct CreatedState {
  StorageKey key = 0;
  std::string name;
  c10::ScalarType dtype = c10::ScalarType::Float;
};

class FirstValues {
 public:
  /// Neither step nor table may change while the result lives.
  static ir::Expected<FirstValues> find(const StepTrace& first, const StepTrace& later,
                                        const StorageTable& storages,
                                        const std::vector<CreatedState>& states);

  /// Which node of the first step does what a node of the later one does.
  const StepAlignment& alignment() const { return alignment_; }

  using BytesOf = std::function<ir::Expected<at::Tensor>(StorageKey)>;
  /// uint8 [n], on the CPU.
  ir::Expected<at::Tensor> make(StorageKey state, const BytesOf& bytesOf) const;

 private:
  struct Recipe {
    std::vector<uint32_t> nodes;  // of the first step; empty: an accumulator
    c10::ScalarType dtype = c10::ScalarType::Float;
  };

  FirstValues(const StepTrace& first, const StorageTable& storages)
      : first_(&first), storages_(&storages) {}
  ir::Error checkUnpaired(const StepTrace& later) const;
  ir::Error checkFirstAlone() const;
  bool fillsAccumulator(const TracedNode& node) const;
  std::unordered_map<StorageKey, uint32_t> lastPairedTouch() const;
  bool readChanged(llvm::ArrayRef<uint32_t> nodes) const;
  bool findCreators(StorageKey state, std::vector<uint32_t>& nodes) const;
  ir::Expected<at::Tensor> runRecipe(StorageKey state, const Recipe& recipe,
                                     const BytesOf& bytesOf) const;

  const StepTrace* first_;
  const StorageTable* storages_;
  StepAlignment alignment_;
  std::unordered_map<StorageKey, Recipe> recipes_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_GRAPH_FIRST_VALUES_H_
