// SPDX-License-Identifier: Apache-2.0
//
// Canonical text of a graph. What has to be decided is where each value is declared:
//   - The first result of a node on a storage that no one has used before declares that storage in
//     place; other values that appear first as a result are views declared in place.
//   - All other storages are declared at the top, with their value of the lowest id; views follow
//     at the top as long as that keeps the ids in order, else before the first node that uses them.
// Ids that are not one more than the one declared before are stated (`value=`, `storage=`), so
// every graph reads back with the ids it has, whatever made it.
#ifndef STOWAGE_IR_TEXT_GRAPH_PRINTER_H_
#define STOWAGE_IR_TEXT_GRAPH_PRINTER_H_

#include <vector>

#include "ir/graph/liveness.h"
#include "ir/text/printer.h"

namespace stowage::ir {

class GraphPrinter {
 public:
  GraphPrinter(const Graph& graph, llvm::raw_ostream& os, PrintOptions options);
  void print();

 private:
  enum class Place : uint8_t { kStatement, kResult };

  void findPlaces();
  void notePlacesOf(const Node& node, std::vector<bool>& seenValue);
  void printHeader();
  void printScalars();
  void printTop();
  void printNode(NodeId id);
  void printPhase(const Node& node);
  void printResult(ValueId id);
  void printRootStatement(ValueId id);
  void printViewStatement(ValueId id);
  void printRest();
  // What follows the name in a declaration, up to the end of the type.
  void declareRoot(ValueId id, Place place);
  void declareView(ValueId id);
  void printRole(const Storage& storage, Place place);
  void printValueId(ValueId id);
  void printComment(NodeId id);
  void printLife(StorageId id);
  bool isRoot(ValueId id) const;

  const Graph& graph_;
  llvm::raw_ostream& os_;
  PrintOptions options_;
  std::vector<StorageLife> lives_;  // with comments only
  std::vector<ValueId> rootOf_;     // by storage: the value that declares it
  std::vector<bool> isProduced_;    // by storage: declared by a node
  std::vector<bool> inPlace_;       // by value: appears first as a result
  std::vector<bool> declared_;      // by value, while printing
  int32_t lastValue_ = -1;          // declared last
  int32_t lastStorage_ = -1;
  Phase phase_ = Phase::kForward;
  ScopeId scope_;
};

}  // namespace stowage::ir

#endif  // STOWAGE_IR_TEXT_GRAPH_PRINTER_H_
