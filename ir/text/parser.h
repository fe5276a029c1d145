// SPDX-License-Identifier: Apache-2.0
//
// Reads the text form of graphs and schedules (grammar: tools/docs/text-form.md). One grammar for
// both: a file holds one graph and, optionally, one schedule of it. parse(print(x)) == x, and
// print(parse(t)) is canonical. Errors: kParse with file, line and column; what was found and what
// was expected. Bad input of any kind ends in an error: no crash, no unbounded memory (sizes are
// checked before anything is allocated).
#ifndef STOWAGE_IR_TEXT_PARSER_H_
#define STOWAGE_IR_TEXT_PARSER_H_

#include <llvm/ADT/StringRef.h>

#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"

namespace stowage::ir {

/// Version of the text form: `graph @name version=1`.
inline constexpr int64_t kTextVersion = 1;

struct Module {
  Graph graph;
  std::optional<Schedule> schedule;
  std::vector<SourceLocation> ops;  // by NodeId: where the text names the node's op
};

/// Parses and checks the graph's invariants (ir/graph/check_graph.h). `fileName` is used in
/// messages only.
Expected<Module> parseModule(llvm::StringRef text, std::string fileName = "<text>");
/// The same for a text that must hold a graph and nothing else.
Expected<Module> parseGraphModule(llvm::StringRef text, std::string fileName = "<text>");
Expected<Graph> parseGraph(llvm::StringRef text, std::string fileName = "<text>");

}  // namespace stowage::ir

#endif  // STOWAGE_IR_TEXT_PARSER_H_
