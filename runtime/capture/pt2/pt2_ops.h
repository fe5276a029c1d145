// SPDX-License-Identifier: Apache-2.0
//
// The ops that an archive names, looked up in libtorch: "torch.ops.aten.mm.default" -> what the op
// writes (op_facts.h) and what each of its results is: new bytes, a view of an argument, or an
// argument itself. Follows from the op's schema and from a short list of ops whose schema is
// silent. Refused: names that are no op of this libtorch, ops made of other ops (whether their
// results alias is not told by the schema), and what op_facts refuses.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_PT2_OPS_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_PT2_OPS_H_

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>

#include <cstdint>
#include <string>

#include "ir/base/error.h"
#include "runtime/capture/ops/op_facts.h"

namespace stowage::runtime {

struct Pt2Return {
  enum class Kind : uint8_t {
    kFresh,     // new bytes, or a number
    kArgument,  // the tensor `argument` itself, written in place
    kView       // a tensor, or tensors, over the bytes of `argument`
  };
  Kind kind = Kind::kFresh;
  uint32_t argument = 0;
  bool isTensor = true;
  bool isList = false;  // of tensors
};

struct Pt2Op {
  const OpFacts* facts = nullptr;
  llvm::SmallVector<Pt2Return, 2> returns;  // one per return of the schema
  bool changesType = false;                 // a view whose elements have another type
  const std::string& name() const { return facts->name; }
};

class Pt2Ops {
 public:
  /// The reference stays valid as long as this object. Errors: kUnsupported.
  ir::Expected<const Pt2Op*> lookUp(const std::string& target);

 private:
  OpFactsTable facts_;
  llvm::StringMap<Pt2Op> ops_;  // by target
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_PT2_OPS_H_
