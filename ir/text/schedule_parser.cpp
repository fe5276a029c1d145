// SPDX-License-Identifier: Apache-2.0
#include "ir/text/schedule_parser.h"

#include <array>
#include <limits>
#include <utility>

namespace stowage::ir {

Schedule ScheduleParser::parse() {
  parseHeader();
  parseArenas();
  parseReserved();
  parseClaims();
  parseDecisions();
  parseResidencies();
  parseBoundary();
  parseCommands();
  if (!reader_.peek().isSign('}')) {
    reader_.failExpected(
        "'}' or the next part of a schedule (arena, reserved, claim, decide, residency, boundary, "
        "commands, in that order)");
  }
  reader_.expect('}');
  checkWaits();
  return reader_.failed() ? Schedule() : std::move(schedule_);
}

void ScheduleParser::parseHeader() {
  reader_.expectLineStart();
  reader_.expectWord("schedule");
  const Token name = reader_.peek();
  if (reader_.expectKind(TokenKind::kGraph, "a name with '@'") != graph_.name()) {
    reader_.fail(name, "found a schedule of '@" + name.text.str() + "', expected one of '@" +
                           graph_.name() + "'");
  }
  reader_.expectWord("level");
  reader_.expect('=');
  schedule_.level = parseName(findLevel, "a level");
  schedule_.graphFingerprint = parseKeyedString("graph");
  schedule_.targetFingerprint = parseKeyedString("target");
  reader_.expectWord("ops");
  reader_.expect('=');
  schedule_.opTableVersion = parseSmall("a version of the op table");
  reader_.expectWord("mode");
  reader_.expect('=');
  schedule_.graphMode = parseName(findGraphMode, "a mode");
  schedule_.joined = reader_.acceptWord("joined");
  if (!schedule_.joined) reader_.expectWord("flowing");
  reader_.expect('{');
}

void ScheduleParser::parseArenas() {
  while (acceptStatement("arena")) {
    Arena arena;
    arena.space = parseName(findSpace, "a space");
    arena.bytes = reader_.expectBytes();
    schedule_.arenas.push_back(arena);
  }
}

void ScheduleParser::parseReserved() {
  while (acceptStatement("reserved")) {
    ReservedRegion region{.what = reader_.expectString()};
    reader_.expectWord("stream");
    reader_.expect('=');
    region.stream = parseSmall("a stream");
    reader_.expectWord("offset");
    reader_.expect('=');
    region.offset = reader_.expectBytes();
    reader_.expectWord("bytes");
    reader_.expect('=');
    region.bytes = reader_.expectBytes();
    schedule_.reserved.push_back(std::move(region));
  }
}

void ScheduleParser::parseClaims() {
  if (!acceptStatement("claim")) return;
  Prediction& claims = schedule_.predicted;
  const auto claim = [&](llvm::StringRef key, auto& quantity) {
    if (!reader_.acceptWord(key)) return;
    reader_.expect('=');
    quantity = std::decay_t<decltype(quantity)>(reader_.expectNonNegative("a claim"));
  };
  claim("peak_bytes", claims.peakBytes);
  claim("host_peak_bytes", claims.hostPeakBytes);
  claim("step_ns", claims.stepTime);
  claim("bound_ns", claims.bound);
  claim("compute_ns", claims.computeTime);
  claim("out_bytes", claims.bytesOut);
  claim("in_bytes", claims.bytesIn);
}

void ScheduleParser::parseDecisions() {
  while (acceptStatement("decide")) {
    DecisionRow row{.storage = parseStorage()};
    reader_.expect('[');
    row.gapBegin = reader_.expectNonNegative("a position");
    reader_.expect(',');
    row.gapEnd = reader_.expectNonNegative("a position");
    reader_.expect(')');
    row.action = parseName(findGapAction, "an action");
    row.pinned = reader_.acceptWord("pinned");
    if (reader_.peek().kind == TokenKind::kString) row.why = reader_.expectString();
    schedule_.decisions.push_back(std::move(row));
  }
}

void ScheduleParser::parseResidencies() {
  while (acceptStatement("residency")) {
    const Token number = reader_.peek();
    if (static_cast<size_t>(reader_.expectNumbered('r', "a residency like r0")) !=
        schedule_.residencies.size()) {
      reader_.fail(number, "found '" + number.text.str() + "', expected r" +
                               std::to_string(schedule_.residencies.size()));
    }
    Residency residency{.storage = parseStorage()};
    residency.space = parseName(findSpace, "a space");
    residency.offset = parseOffset();
    schedule_.residencies.push_back(residency);
  }
}

void ScheduleParser::parseBoundary() {
  while (acceptStatement("boundary")) {
    BoundaryEntry entry{.storage = parseStorage()};
    parseResidencies("at", entry.at);
    entry.dirty = reader_.acceptWord("dirty");
    schedule_.boundary.push_back(std::move(entry));
  }
}

void ScheduleParser::parseCommands() {
  while (reader_.peek().kind == TokenKind::kWord) {
    reader_.expectLineStart();
    const Token number = reader_.peek();
    const int32_t index = reader_.expectNumbered('c', "a command like c0");
    if (static_cast<size_t>(index) != schedule_.commands.size()) {
      reader_.fail(number, "found '" + number.text.str() + "', expected c" +
                               std::to_string(schedule_.commands.size()));
    }
    reader_.expect('=');
    const bool isCopy = reader_.acceptWord("copy");
    if (!isCopy && !reader_.acceptWord("run")) reader_.failExpected("'run' or 'copy'");
    Command command = isCopy ? parseCopy() : parseRun();
    parseWaits(command);
    schedule_.commands.push_back(std::move(command));
  }
}

Command ScheduleParser::parseRun() {
  Command command{.kind = CommandKind::kRun};
  command.node = parseNode();
  if (reader_.acceptWord("recompute")) command.recompute = parseSmall("a number of a recompute");
  reader_.expectWord("on");
  command.stream = parseName(findStream, "a stream");
  parseResidencies("in", command.in);
  parseResidencies("out", command.out);
  if (reader_.acceptWord("temp")) {
    command.temp.offset = parseOffset();
    reader_.expect('+');
    command.temp.bytes = reader_.expectBytes();
  }
  if (reader_.acceptWord("rng")) command.rngSlot = parseSmall("a slot");
  if (reader_.acceptWord("takes")) command.takes = parseResidency();
  return command;
}

Command ScheduleParser::parseCopy() {
  Command command{.kind = CommandKind::kCopy};
  command.from = parseResidency();
  reader_.expectKind(TokenKind::kArrow, "'->'");
  command.to = parseResidency();
  reader_.expectWord("on");
  command.stream = parseName(findStream, "a stream");
  return command;
}

void ScheduleParser::parseWaits(Command& command) {
  const auto parseList = [&](llvm::StringRef word, auto& ids) {
    if (!reader_.acceptWord(word)) return;
    reader_.expect('[');
    do {
      const Token token = reader_.peek();
      const int32_t index = reader_.expectNumbered('c', "a command like c0");
      ids.push_back(CommandId(index));
      if (index <= furthestCommand_) continue;
      furthestCommand_ = index;
      furthestWait_ = token;
    } while (reader_.accept(','));
    reader_.expect(']');
  };
  parseList("wait", command.wait);
  parseList("prev", command.prev);
}

// Waits may point forward (the verifier refuses what must not), but not at nothing.
void ScheduleParser::checkWaits() {
  if (furthestCommand_ < static_cast<int64_t>(schedule_.commands.size())) return;
  reader_.fail(furthestWait_, "found '" + furthestWait_.text.str() + "', expected one of " +
                                  std::to_string(schedule_.commands.size()) + " commands");
}

bool ScheduleParser::acceptStatement(llvm::StringRef word) {
  if (!reader_.peek().isWord(word)) return false;
  reader_.expectLineStart();
  return reader_.acceptWord(word);
}

std::string ScheduleParser::parseKeyedString(llvm::StringRef key) {
  reader_.expectWord(key);
  reader_.expect('=');
  return reader_.expectString();
}

template <typename Enum>
Enum ScheduleParser::parseName(std::optional<Enum> (*find)(llvm::StringRef), llvm::StringRef what) {
  const Token token = reader_.peek();
  const std::optional<Enum> found = find(reader_.expectKind(TokenKind::kWord, what));
  if (found) return *found;
  reader_.fail(token, "found '" + token.text.str() + "', expected " + what.str());
  return Enum{};
}

StorageId ScheduleParser::parseStorage() {
  const ValueId value = parseValueReference(reader_, names_);
  return value.isValid() ? graph_.value(value).storage : StorageId();
}

ResidencyId ScheduleParser::parseResidency() {
  const Token token = reader_.peek();
  const int32_t index = reader_.expectNumbered('r', "a residency like r0");
  if (index < static_cast<int64_t>(schedule_.residencies.size())) return ResidencyId(index);
  reader_.fail(token, "found '" + token.text.str() + "', expected one of " +
                          std::to_string(schedule_.residencies.size()) + " residencies");
  return ResidencyId();
}

NodeId ScheduleParser::parseNode() {
  const Token token = reader_.peek();
  const int32_t index = reader_.expectNumbered('n', "a node like n0");
  if (index < static_cast<int64_t>(graph_.nodes().size())) return NodeId(index);
  reader_.fail(token, "found '" + token.text.str() + "', expected one of " +
                          std::to_string(graph_.nodes().size()) + " nodes");
  return NodeId();
}

int64_t ScheduleParser::parseOffset() {
  if (reader_.peek().kind == TokenKind::kUnset) {
    reader_.next();
    return kUnplaced;
  }
  return reader_.expectNonNegative("an offset or @-");
}

template <typename Ids>
void ScheduleParser::parseResidencies(llvm::StringRef word, Ids& ids) {
  if (!reader_.acceptWord(word)) return;
  reader_.expect('[');
  do {
    ids.push_back(parseResidency());
  } while (reader_.accept(','));
  reader_.expect(']');
}

int32_t ScheduleParser::parseSmall(llvm::StringRef what) {
  const Token token = reader_.peek();
  const int64_t value = reader_.expectNonNegative(what);
  if (value <= std::numeric_limits<int32_t>::max()) return static_cast<int32_t>(value);
  reader_.fail(token, "found '" + token.text.str() + "', expected " + what.str());
  return 0;
}

}  // namespace stowage::ir
