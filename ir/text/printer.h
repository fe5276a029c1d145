// SPDX-License-Identifier: Apache-2.0
//
// Writes the canonical text form of graphs and schedules (grammar: tools/docs/text-form.md).
// Deterministic: equal objects give equal bytes on every machine. Floating point numbers are
// written so that they read back exactly.
#ifndef STOWAGE_IR_TEXT_PRINTER_H_
#define STOWAGE_IR_TEXT_PRINTER_H_

#include <llvm/Support/raw_ostream.h>

#include <string>

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"

namespace stowage::ir {

struct PrintOptions {
  bool comments = false;  // derived facts (sizes, live ranges, node numbers) as trailing comments
};

void printGraph(const Graph& graph, llvm::raw_ostream& os, PrintOptions options = {});
/// The graph is needed for the names of values and nodes.
void printSchedule(const Schedule& schedule, const Graph& graph, llvm::raw_ostream& os,
                   PrintOptions options = {});
std::string toText(const Graph& graph, PrintOptions options = {});
std::string toText(const Graph& graph, const Schedule& schedule, PrintOptions options = {});

}  // namespace stowage::ir

#endif  // STOWAGE_IR_TEXT_PRINTER_H_
