// SPDX-License-Identifier: Apache-2.0
//
// Writes the canonical text of a schedule. Fields with their default (empty lists, no recompute, no
// temporaries) and fields that a command's kind does not have are left out.
#ifndef STOWAGE_IR_TEXT_SCHEDULE_PRINTER_H_
#define STOWAGE_IR_TEXT_SCHEDULE_PRINTER_H_

#include <vector>

#include "ir/text/printer.h"

namespace stowage::ir {

class SchedulePrinter {
 public:
  SchedulePrinter(const Schedule& schedule, const Graph& graph, llvm::raw_ostream& os,
                  PrintOptions options);
  void print();

 private:
  void printHeader();
  void printArenas();
  void printClaims();
  void printDecision(const DecisionRow& row);
  void printResidency(size_t index);
  void printBoundary(const BoundaryEntry& entry);
  void printCommand(size_t index);
  void printRun(const Command& command);
  template <typename Ids>
  void printIds(const char* word, char prefix, const Ids& ids);
  void printOffset(int64_t offset);
  void printStorage(StorageId id);

  const Schedule& schedule_;
  const Graph& graph_;
  llvm::raw_ostream& os_;
  PrintOptions options_;
  std::vector<ValueId> firstValue_;  // by storage
};

}  // namespace stowage::ir

#endif  // STOWAGE_IR_TEXT_SCHEDULE_PRINTER_H_
