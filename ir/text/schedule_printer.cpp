// SPDX-License-Identifier: Apache-2.0
#include "ir/text/schedule_printer.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/text/literal.h"

namespace stowage::ir {

SchedulePrinter::SchedulePrinter(const Schedule& schedule, const Graph& graph,
                                 llvm::raw_ostream& os, PrintOptions options)
    : schedule_(schedule), graph_(graph), os_(os), options_(options) {
  firstValue_.assign(graph.storages().size(), ValueId());
  for (size_t i = 0; i < graph.values().size(); ++i) {
    ValueId& first = firstValue_[graph.values()[i].storage.index()];
    if (!first.isValid()) first = ValueId(i);
  }
}

void SchedulePrinter::print() {
  printHeader();
  printArenas();
  printClaims();
  for (const DecisionRow& row : schedule_.decisions) printDecision(row);
  for (size_t i = 0; i < schedule_.residencies.size(); ++i) printResidency(i);
  for (const BoundaryEntry& entry : schedule_.boundary) printBoundary(entry);
  for (size_t i = 0; i < schedule_.commands.size(); ++i) printCommand(i);
  os_ << "}\n";
}

void SchedulePrinter::printHeader() {
  os_ << "schedule @" << graph_.name() << " level=" << levelName(schedule_.level) << " graph=";
  writeQuoted(os_, schedule_.graphFingerprint);
  os_ << " target=";
  writeQuoted(os_, schedule_.targetFingerprint);
  os_ << " ops=" << schedule_.opTableVersion << " mode=" << graphModeName(schedule_.graphMode)
      << (schedule_.joined ? " joined" : " flowing") << " {\n";
}

void SchedulePrinter::printArenas() {
  for (const Arena& arena : schedule_.arenas) {
    os_ << "  arena " << spaceName(arena.space) << ' ' << arena.bytes.value() << '\n';
  }
  for (const ReservedRegion& region : schedule_.reserved) {
    os_ << "  reserved ";
    writeQuoted(os_, region.what);
    os_ << " stream=" << region.stream << " offset=" << region.offset.value()
        << " bytes=" << region.bytes.value() << '\n';
  }
}

void SchedulePrinter::printClaims() {
  const Prediction& claims = schedule_.predicted;
  if (claims == Prediction{}) return;
  const auto printClaim = [&](const char* key, auto quantity) {
    if (quantity.value() != 0) os_ << ' ' << key << '=' << quantity.value();
  };
  os_ << "  claim";
  printClaim("peak_bytes", claims.peakBytes);
  printClaim("host_peak_bytes", claims.hostPeakBytes);
  printClaim("step_ns", claims.stepTime);
  printClaim("bound_ns", claims.bound);
  printClaim("compute_ns", claims.computeTime);
  printClaim("out_bytes", claims.bytesOut);
  printClaim("in_bytes", claims.bytesIn);
  os_ << '\n';
}

void SchedulePrinter::printDecision(const DecisionRow& row) {
  os_ << "  decide ";
  printStorage(row.storage);
  os_ << " [" << row.gapBegin << ',' << row.gapEnd << ") " << gapActionName(row.action);
  if (row.pinned) os_ << " pinned";
  if (!row.why.empty()) {
    os_ << ' ';
    writeQuoted(os_, row.why);
  }
  os_ << '\n';
}

void SchedulePrinter::printResidency(size_t index) {
  const Residency& residency = schedule_.residencies[index];
  os_ << "  residency r" << index << ' ';
  printStorage(residency.storage);
  os_ << ' ' << spaceName(residency.space) << ' ';
  printOffset(residency.offset);
  if (options_.comments) {
    os_ << "  // " << formatBytes(graph_.storage(residency.storage).bytes);
  }
  os_ << '\n';
}

void SchedulePrinter::printBoundary(const BoundaryEntry& entry) {
  os_ << "  boundary ";
  printStorage(entry.storage);
  printIds("at", 'r', entry.at);
  os_ << (entry.dirty ? " dirty\n" : "\n");
}

void SchedulePrinter::printCommand(size_t index) {
  const Command& command = schedule_.commands[index];
  os_ << "  c" << index << " = ";
  if (command.kind == CommandKind::kRun) {
    printRun(command);
  } else {
    os_ << "copy r" << command.from.raw() << " -> r" << command.to.raw() << " on "
        << streamName(command.stream);
  }
  printIds("wait", 'c', command.wait);
  printIds("prev", 'c', command.prev);
  if (options_.comments && command.kind == CommandKind::kRun) {
    os_ << "  // " << graph_.describeNode(command.node);
  }
  os_ << '\n';
}

void SchedulePrinter::printRun(const Command& command) {
  os_ << "run n" << command.node.raw();
  if (command.recompute != 0) os_ << " recompute " << command.recompute;
  os_ << " on " << streamName(command.stream);
  printIds("in", 'r', command.in);
  printIds("out", 'r', command.out);
  if (command.temp != TempRegion{}) {
    os_ << " temp ";
    printOffset(command.temp.offset);
    os_ << '+' << command.temp.bytes.value();
  }
  if (command.rngSlot >= 0) os_ << " rng " << command.rngSlot;
  if (command.takes.isValid()) os_ << " takes r" << command.takes.raw();
}

template <typename Ids>
void SchedulePrinter::printIds(const char* word, char prefix, const Ids& ids) {
  if (ids.empty()) return;
  os_ << ' ' << word << " [";
  llvm::interleave(
      ids, [&](auto id) { os_ << prefix << id.raw(); }, [&] { os_ << ", "; });
  os_ << ']';
}

void SchedulePrinter::printOffset(int64_t offset) {
  if (offset == kUnplaced) {
    os_ << "@-";
  } else {
    os_ << offset;
  }
}

void SchedulePrinter::printStorage(StorageId id) {
  os_ << '%' << graph_.value(firstValue_[id.index()]).name;
}

}  // namespace stowage::ir
