// SPDX-License-Identifier: Apache-2.0
//
// The graph of an archive's program as far as the program itself tells it: views folded (no node
// makes one; a view is a value of the storage it looks at), results of in-place ops on their
// operand's storage, writes and whole writes per node. Every input is an input, every phase is
// forward, storages have the names of the archive: what they are for is found out later (pt2_roles.h,
// pt2_phases.h, pt2_names.h).
// Types of values are the archive's. Errors: kParse and kUnsupported, naming the node.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_GRAPH_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_GRAPH_H_

#include <llvm/ADT/StringRef.h>

#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/graph.h"
#include "runtime/capture/pt2_ops.h"
#include "runtime/capture/pt2_program.h"

namespace stowage::runtime {

struct Pt2Graph {
  ir::Graph graph;
  std::vector<ir::ValueId> inputs;   // by position in the program; invalid: no tensor
  std::vector<ir::ValueId> outputs;  // by position in the program
  std::vector<size_t> sources;       // by node of the graph: its position in the program
  std::vector<const Pt2Op*> ops;     // by node of the graph
  std::vector<ir::ValueId> valueOf;  // by tensor of the program; invalid: nothing makes it
};

/// A name in the text form: letters, digits, '_' and '.'.
std::string pt2Identifier(llvm::StringRef name);
/// "node 17 'mm_3' (torch.ops.aten.mm.default)"
std::string describePt2Node(const Pt2Program& program, size_t position);

ir::Expected<Pt2Graph> makePt2Graph(const Pt2Program& program, Pt2Ops& ops,
                                    const std::string& name, ir::Provenance provenance);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_GRAPH_H_
