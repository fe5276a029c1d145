// SPDX-License-Identifier: Apache-2.0
//
// What the tracer needs to know of an op, looked up once per op and kept.
// An operator handle -> its name in the IR, which arguments it writes (by schema, plus the few ops
// whose schema does not say), whether it overwrites them whole, whether it draws random numbers,
// how its results are found, and why it cannot be captured if so. Not here: what the planner may
// assume of an op (ir/graph/op_table.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_OPS_OP_FACTS_H_
#define STOWAGE_RUNTIME_CAPTURE_OPS_OP_FACTS_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <llvm/ADT/SmallVector.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "runtime/capture/ops/output_cache.h"
#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {

/// How the results of an op are found without running it.
enum class ResultsBy : uint8_t {
  kRule,       // our own rule
  kMeta,       // libtorch's kernel for tensors without data
  kComposite,  // the op is made of other ops, which are recorded instead
  kNothing
};

struct OpFacts {
  explicit OpFacts(const c10::OperatorHandle& op);

  c10::OperatorHandle handle;
  std::string name;  // "aten.mm.default"
  llvm::SmallVector<uint32_t, 2> writtenArguments;
  bool overwrites = false;  // writes them without reading them
  bool random = false;
  bool readsBack = false;         // gives a tensor's value to the host
  bool emptyFactory = false;      // makes a tensor whose bytes mean nothing
  bool changesShape = false;      // changes the tensor object, not its bytes (t_, squeeze_)
  bool sizedByValues = false;     // such an op, with other ops for when the size is known
  const char* refusal = nullptr;  // why it cannot be captured
  ShapeRule rule = nullptr;
  OperandCheck operandRule = nullptr;
  bool ruleOnlyForCpu = false;
  ResultsBy resultsBy = ResultsBy::kNothing;
  std::unique_ptr<OutputCache> cache;  // of kMeta

  const c10::FunctionSchema& schema() const { return handle.schema(); }
};

class OpFactsTable {
 public:
  /// The reference stays valid as long as the table.
  const OpFacts& lookUp(const c10::OperatorHandle& op);

 private:
  std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<OpFacts>> ops_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_OPS_OP_FACTS_H_
