// SPDX-License-Identifier: Apache-2.0
//
// Reads `graph @name {...}`: declarations, phase lines and nodes into a Graph, with the names that
// a schedule after it refers to. Ids are given in order of declaration, or as declarations say with
// `value=` and `storage=`. Syntax, names and numbers are checked here; what a graph must obey
// beyond that is ir/graph/check_graph.h's.
#ifndef STOWAGE_IR_TEXT_GRAPH_PARSER_H_
#define STOWAGE_IR_TEXT_GRAPH_PARSER_H_

#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringRef.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/text/argument_parser.h"
#include "ir/text/token_reader.h"

namespace stowage::ir {

class GraphParser {
 public:
  explicit GraphParser(TokenReader& reader) : reader_(reader) {}
  /// An empty graph after a failure of the reader.
  Graph parse();
  const GraphNames& names() const { return names_; }
  /// Where the text names the op of each node. Call once, after `parse`.
  std::vector<SourceLocation> takeOps() { return std::move(ops_); }

 private:
  // What stands between a value's name and its type.
  struct Attributes {
    std::optional<std::string> name;
    std::optional<Role> role;
    std::optional<bool> persistent;
    std::optional<int32_t> storageId;
    std::optional<int32_t> valueId;
    bool output = false;
    bool host = false;
  };
  // Things with the ids that they are to have; brought into order when the graph is complete.
  template <typename Thing>
  struct Declared {
    Thing thing;
    int32_t id = 0;
    Token token;
  };

  void parseHeader();
  void parseHeaderText(llvm::StringRef key, std::string& text);
  void parseStatement();
  void parseScalar();
  void parseStorage(Role role);
  void parseView();
  void parsePhase(Phase phase);
  void parseNode();
  ValueId parseResult();

  Attributes parseAttributes();
  bool parseAttribute(Attributes& attributes);
  int32_t parseId();
  /// From the attributes on: declares `name` as the first value of a new storage.
  ValueId declareRoot(const Token& name, std::optional<Role> role);
  /// From the "of" on: declares `name` as a view.
  ValueId declareView(const Token& name);
  ValueId declareValue(const Token& name, std::optional<int32_t> id, Value value);

  void addStoragesInOrder();
  void addValuesInOrder();

  TokenReader& reader_;
  GraphNames names_;
  std::optional<GraphBuilder> builder_;
  std::vector<Declared<Storage>> storages_;
  std::vector<Declared<Value>> values_;
  llvm::StringMap<StorageId> storageOfValue_;  // what a view needs
  std::vector<Node> nodes_;
  std::vector<SourceLocation> ops_;
  Phase phase_ = Phase::kForward;
  ScopeId scope_;
};

}  // namespace stowage::ir

#endif  // STOWAGE_IR_TEXT_GRAPH_PARSER_H_
