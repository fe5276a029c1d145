// SPDX-License-Identifier: Apache-2.0
//
// What the results of an archive's calls look like. Each call whose results can be found without
// running it (by our rule, or by libtorch's kernel for tensors without data) is done on tensors
// without memory; so are views. A step for a GPU needs none for this. The archive has to give the
// same sizes and element types. How results are laid out, which floating-point type they have and
// how many bytes their storages have is what libtorch does: Python's traces lay some results out
// otherwise than the kernels do, give statistics of norms in mixed precision another type, and say
// nothing of bytes. Errors: kParse, naming result, what was found and what was expected; what
// libtorch says of arguments that do not go together.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_PT2_SHAPES_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_PT2_SHAPES_H_

#include <llvm/ADT/SmallVector.h>

#include <optional>
#include <string>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"
#include "runtime/capture/fake/fake_values.h"
#include "runtime/capture/ops/op_facts.h"

namespace stowage::runtime {

/// How a result is to look.
struct Pt2ResultType {
  ir::TensorType type;
  Bytes storage;       // of a fresh one: its storage has no fewer
  int32_t group = -1;  // of fresh ones: equal numbers >= 0 share one storage
};

/// The results of one call, in order; nothing is known of a call that would have to be run.
class Pt2Results {
 public:
  Pt2Results() = default;
  explicit Pt2Results(Outputs outputs);

  /// What the archive calls `name` and says to be of type `found`. `mayMove`: libtorch may lay it
  /// out otherwise.
  ir::Expected<Pt2ResultType> next(const std::string& name, const ir::TensorType& found,
                                   bool mayMove);
  /// The archive has none here: nothing uses it.
  void skip() { ++next_; }
  /// After the last one.
  ir::Error checkCount() const;

 private:
  bool known_ = false;
  llvm::SmallVector<OutputTensor, 4> tensors_;
  size_t next_ = 0;
};

class Pt2Shapes {
 public:
  explicit Pt2Shapes(const ir::Target& target) : target_(target), values_(target.device) {}

  /// To be told of each storage and value of the graph in the making.
  FakeValues& values() { return values_; }

  ir::Expected<Pt2Results> findResults(const OpFacts& op, const ir::Node& call) const;

 private:
  const ir::Target& target_;
  FakeValues values_;
};

/// The same elements at the same places: strides of dimensions of size 1 do not count.
bool atSamePlaces(const ir::TensorType& a, const ir::TensorType& b);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_PT2_SHAPES_H_
