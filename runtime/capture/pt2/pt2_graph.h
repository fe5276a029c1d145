// SPDX-License-Identifier: Apache-2.0
//
// The graph of an archive's program as far as the program itself tells it: a view is a value of the
// storage it looks at, the result of an in-place op its operand's, writes and whole writes are
// marked. Twice: `calls` has all calls of the program, `graph` those that are launched. Every input
// is an input, every phase is forward, storages have the names of the archive: what they are for is
// found out later (pt2_roles.h, pt2_phases.h, pt2_names.h). Types of inputs are the archive's,
// those of results libtorch's (pt2_shapes.h). Errors: kParse and kUnsupported, naming the node.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_PT2_GRAPH_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_PT2_GRAPH_H_

#include <llvm/ADT/StringRef.h>

#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"
#include "runtime/capture/pt2/pt2_ops.h"
#include "runtime/capture/pt2/pt2_program.h"

namespace stowage::runtime {

struct Pt2Graph {
  ir::Graph graph;                   // without calls that make views only
  ir::Graph calls;                   // the same storages and values, one node per program node
  std::vector<ir::ValueId> inputs;   // by position in the program; invalid: no tensor
  std::vector<ir::ValueId> outputs;  // by position in the program
  std::vector<size_t> sources;       // by node of `graph`: its position in the program
  std::vector<const Pt2Op*> ops;     // by node of the program
};

/// A name in the text form: letters, digits, '_' and '.'.
std::string pt2Identifier(llvm::StringRef name);
/// "node 17 'mm_3' (torch.ops.aten.mm.default)"
std::string describePt2Node(const Pt2Program& program, size_t position);
/// The error, with the node in front of its text.
ir::Error inPt2Node(const Pt2Program& program, size_t position, ir::Error error);

ir::Expected<Pt2Graph> makePt2Graph(const Pt2Program& program, Pt2Ops& ops,
                                    const ir::Target& target, const std::string& name,
                                    ir::Provenance provenance);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_PT2_GRAPH_H_
