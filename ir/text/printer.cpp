// SPDX-License-Identifier: Apache-2.0
#include "ir/text/printer.h"

#include "ir/text/graph_printer.h"
#include "ir/text/schedule_printer.h"

namespace stowage::ir {

void printGraph(const Graph& graph, llvm::raw_ostream& os, PrintOptions options) {
  GraphPrinter(graph, os, options).print();
}

void printSchedule(const Schedule& schedule, const Graph& graph, llvm::raw_ostream& os,
                   PrintOptions options) {
  SchedulePrinter(schedule, graph, os, options).print();
}

std::string toText(const Graph& graph, PrintOptions options) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printGraph(graph, os, options);
  return text;
}

std::string toText(const Graph& graph, const Schedule& schedule, PrintOptions options) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printGraph(graph, os, options);
  printSchedule(schedule, graph, os, options);
  return text;
}

}  // namespace stowage::ir
