// SPDX-License-Identifier: Apache-2.0
//
// The arguments of one call: what the archive says, by name and with defaults left out -> one
// ir::Argument per argument of the op's schema, in its order.
// Numbers where the schema has a tensor become wrapped numbers, as eager makes them.
// Errors: kParse for names that the schema lacks, names given twice, arguments that are missing,
// and values of another type than the schema's.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_PT2_ARGUMENTS_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_PT2_ARGUMENTS_H_

#include <ATen/core/function_schema.h>
#include <llvm/ADT/STLFunctionalExtras.h>

#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "runtime/capture/pt2/pt2_program.h"

namespace stowage::runtime {

/// The value of a tensor of the archive; invalid while nothing has made it.
using Pt2ValueOf = llvm::function_ref<ir::ValueId(int32_t tensor)>;

ir::Expected<std::vector<ir::Argument>> convertPt2Arguments(const std::vector<Pt2Argument>& given,
                                                            const c10::FunctionSchema& schema,
                                                            Pt2ValueOf valueOf);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_PT2_ARGUMENTS_H_
