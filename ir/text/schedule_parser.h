// SPDX-License-Identifier: Apache-2.0
//
// Reads `schedule @name {...}` after its graph: arenas, reserved regions, claims, decisions,
// residencies, boundary and commands, in that order. Checks that every reference exists. It does
// not check that the schedule is correct: the verifier does (ir/verify/verify.h), so tests can
// write down wrong schedules.
#ifndef STOWAGE_IR_TEXT_SCHEDULE_PARSER_H_
#define STOWAGE_IR_TEXT_SCHEDULE_PARSER_H_

#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/text/argument_parser.h"
#include "ir/text/token_reader.h"

namespace stowage::ir {

class ScheduleParser {
 public:
  ScheduleParser(TokenReader& reader, const Graph& graph, const GraphNames& names)
      : reader_(reader), graph_(graph), names_(names) {}
  /// An empty schedule after a failure of the reader.
  Schedule parse();

 private:
  void parseHeader();
  void parseArenas();
  void parseReserved();
  void parseClaims();
  void parseDecisions();
  void parseResidencies();
  void parseBoundary();
  void parseCommands();
  Command parseRun();
  Command parseCopy();
  void parseWaits(Command& command);
  void checkWaits();

  bool acceptStatement(llvm::StringRef word);
  std::string parseKeyedString(llvm::StringRef key);
  template <typename Enum>
  Enum parseName(std::optional<Enum> (*find)(llvm::StringRef), llvm::StringRef what);
  StorageId parseStorage();
  ResidencyId parseResidency();
  NodeId parseNode();
  int64_t parseOffset();
  template <typename Ids>
  void parseResidencies(llvm::StringRef word, Ids& ids);
  int32_t parseSmall(llvm::StringRef what);

  TokenReader& reader_;
  const Graph& graph_;
  const GraphNames& names_;
  Schedule schedule_;
  Token furthestWait_;  // the reference to the highest command
  int32_t furthestCommand_ = -1;
};

}  // namespace stowage::ir

#endif  // STOWAGE_IR_TEXT_SCHEDULE_PARSER_H_
