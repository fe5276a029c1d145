// SPDX-License-Identifier: Apache-2.0
//
// Are the results of an archive's calls what libtorch makes of their arguments? Each call whose
// results can be found without running it (by our rule, or by libtorch's kernel for tensors without
// data) is done on tensors without memory, and sizes, strides, offsets and element types are
// compared with what the archive says; so are views with their base. A step for a GPU needs none
// for this. Errors: kParse, naming node, result, what was found and what was expected; what
// libtorch says of arguments that do not go together.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_SHAPES_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_SHAPES_H_

#include "ir/error.h"
#include "ir/target.h"
#include "runtime/capture/pt2_graph.h"

namespace stowage::runtime {

ir::Error checkPt2Shapes(const Pt2Program& program, const Pt2Graph& draft,
                         const ir::Target& target);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_SHAPES_H_
