// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/schedule/fingerprint.h"
#include "planner/files/plan_json.h"
#include "planner/files/target_json.h"
#include "planner/files/write_json.h"

namespace stowage::planner {

namespace {

class PlanWriter {
 public:
  PlanWriter(const PlanFile& plan, llvm::raw_ostream& os)
      : plan_(plan), schedule_(plan.schedule), writer_(os) {}

  bool write() {
    writer_.beginObject();
    writer_.field("$schema", "stowage:plan-1.0").field("kind", "plan");
    writer_.field("schema_version", "1.0");
    writeProducer();
    writeGraph();
    writer_.breakLine().key("target").beginObject();
    writeTarget(plan_.target, writer_);
    writer_.field("fingerprint", ir::fingerprint(plan_.target)).endObject();
    writer_.breakLine().key("costs").beginObject();
    writer_.field("fingerprint", plan_.costs.fingerprint);
    writer_.field("source", ir::costSourceName(plan_.costs.source));
    if (!plan_.costs.file.empty()) writer_.field("file", plan_.costs.file);
    writer_.endObject();
    writer_.breakLine().field("budget_bytes", plan_.budget);
    if (plan_.prefetchLimit < PlanFile::kUnlimited)
      writer_.field("prefetch_limit_bytes", plan_.prefetchLimit);
    writeSpaces();
    writeMode();
    writePredicted();
    writeDecisions();
    writeResidencies();
    writeBoundary();
    writeCommands();
    writer_.breakLine().endObject();
    return !writer_.failed();
  }

 private:
  void writeProducer() {
    writer_.breakLine().key("producer").beginObject();
    writer_.field("stowage", plan_.stowageVersion);
    if (!plan_.torchVersion.empty()) writer_.field("torch", plan_.torchVersion);
    writer_.endObject();
  }

  void writeGraph() {
    writer_.breakLine().key("graph").beginObject();
    writer_.field("fingerprint", plan_.graph.fingerprint);
    writer_.field("nodes", plan_.graph.nodes).field("storages", plan_.graph.storages);
    writer_.field("steps_captured", int64_t{plan_.graph.stepsCaptured});
    if (plan_.graph.ranks > 1) writer_.field("ranks", plan_.graph.ranks);
    if (plan_.graph.rowBlocks > 1) writer_.field("row_blocks", plan_.graph.rowBlocks);
    if (plan_.graph.hostUpdates > 0) writer_.field("host_updates", plan_.graph.hostUpdates);
    if (!plan_.graph.file.empty()) writer_.field("file", plan_.graph.file);
    if (plan_.graph.text) writer_.field("text", *plan_.graph.text);
    writer_.endObject();
  }

  void writeSpaces() {
    writer_.breakLine().key("spaces").beginObject();
    for (const ir::Arena& arena : schedule_.arenas) {
      writer_.key(ir::spaceName(arena.space)).beginObject();
      writer_.field("arena_bytes", arena.bytes);
      if (arena.space == ir::Space::kDevice) writeReserved();
      writeLimit(limitOf(arena.space));
      writer_.endObject();
    }
    for (const ir::Space space : {ir::Space::kHost, ir::Space::kDisk}) {
      if (!limitOf(space) || hasArena(space)) continue;
      writer_.key(ir::spaceName(space)).beginObject().field("arena_bytes", Bytes());
      writeLimit(limitOf(space));
      writer_.endObject();
    }
    writer_.endObject();
  }

  bool hasArena(ir::Space space) const {
    return std::any_of(schedule_.arenas.begin(), schedule_.arenas.end(),
                       [&](const ir::Arena& arena) { return arena.space == space; });
  }
  std::optional<Bytes> limitOf(ir::Space space) const {
    if (space == ir::Space::kDevice) return std::nullopt;
    return space == ir::Space::kHost ? plan_.hostLimit : plan_.diskLimit;
  }
  void writeLimit(std::optional<Bytes> limit) {
    if (limit) writer_.field("limit_bytes", *limit);
  }

  void writeReserved() {
    writer_.key("reserved").beginArray();
    for (const ir::ReservedRegion& region : schedule_.reserved) {
      writer_.beginObject().field("what", region.what);
      writer_.field("stream", int64_t{region.stream});
      writer_.field("offset", region.offset).field("bytes", region.bytes).endObject();
    }
    writer_.endArray();
  }

  void writeMode() {
    writer_.breakLine().key("mode").beginObject();
    writer_.field("boundary", schedule_.joined ? "joined" : "flowing");
    writer_.field("graph", ir::graphModeName(schedule_.graphMode)).endObject();
    writer_.breakLine().field("op_table_version", int64_t{schedule_.opTableVersion});
  }

  void writePredicted() {
    const ir::Prediction& predicted = schedule_.predicted;
    writer_.breakLine().key("predicted").beginObject();
    writer_.field("peak_bytes", predicted.peakBytes);
    writer_.field("host_peak_bytes", predicted.hostPeakBytes);
    writer_.field("step_ns", predicted.stepTime).field("bound_ns", predicted.bound);
    if (!plan_.boundScope.empty()) writer_.field("bound_scope", plan_.boundScope);
    writer_.field("compute_ns", predicted.computeTime);
    writer_.field("out_bytes", predicted.bytesOut).field("in_bytes", predicted.bytesIn);
    writer_.key("stall_ns").beginObject();
    writer_.field("d2h", plan_.stalls.deviceToHost).field("h2d", plan_.stalls.hostToDevice);
    writer_.field("disk", plan_.stalls.disk);
    if (plan_.stalls.ranks > Nanoseconds(0)) writer_.field("ranks", plan_.stalls.ranks);
    writer_.endObject();
    writer_.endObject();
  }

  void writeDecisions() {
    writer_.breakLine().key("decisions").beginArray();
    for (size_t i = 0; i < schedule_.decisions.size(); ++i) {
      const ir::DecisionRow& row = schedule_.decisions[i];
      writer_.breakLine().beginObject();
      writer_.field("storage", int64_t{row.storage.raw()}).field("name", plan_.labels[i].name);
      writer_.key("gap").beginArray().value(row.gapBegin).value(row.gapEnd).endArray();
      writer_.field("action", ir::gapActionName(row.action)).field("pinned", row.pinned);
      writer_.field("bytes", plan_.labels[i].bytes).field("why", row.why).endObject();
    }
    writer_.endArray();
  }

  void writeResidencies() {
    writer_.breakLine().key("residencies").beginArray();
    for (size_t i = 0; i < schedule_.residencies.size(); ++i) {
      const ir::Residency& residency = schedule_.residencies[i];
      writer_.breakLine().beginArray().value(static_cast<int64_t>(i));
      writer_.value(int64_t{residency.storage.raw()}).value(ir::spaceName(residency.space));
      writer_.value(residency.offset).endArray();
    }
    writer_.endArray();
  }

  void writeBoundary() {
    writer_.breakLine().key("boundary").beginArray();
    for (const ir::BoundaryEntry& entry : schedule_.boundary) {
      writer_.breakLine().beginObject().field("storage", int64_t{entry.storage.raw()});
      writer_.idField("at", entry.at).field("dirty", entry.dirty).endObject();
    }
    writer_.endArray();
  }

  void writeCommands() {
    writer_.breakLine().key("commands").beginArray();
    for (const ir::Command& command : schedule_.commands) {
      writer_.breakLine().beginObject();
      if (command.kind == ir::CommandKind::kRun) {
        writeRun(command);
      } else {
        writer_.field("op", "copy").field("stream", static_cast<int64_t>(command.stream));
        writer_.field("from", int64_t{command.from.raw()}).field("to", int64_t{command.to.raw()});
      }
      if (!command.wait.empty()) writer_.idField("wait", command.wait);
      if (!command.prev.empty()) writer_.idField("prev", command.prev);
      writer_.endObject();
    }
    writer_.endArray();
  }

  void writeRun(const ir::Command& run) {
    writer_.field("op", "run").field("node", int64_t{run.node.raw()});
    if (run.recompute > 0) writer_.field("recompute", int64_t{run.recompute});
    writer_.field("stream", static_cast<int64_t>(run.stream));
    if (!run.in.empty()) writer_.idField("in", run.in);
    if (!run.out.empty()) writer_.idField("out", run.out);
    if (run.temp.bytes.value() > 0) {
      writer_.key("temp").beginArray().value(run.temp.offset).value(run.temp.bytes).endArray();
    }
    if (run.rngSlot >= 0) writer_.field("rng", int64_t{run.rngSlot});
    if (run.takes.isValid()) writer_.field("takes", int64_t{run.takes.raw()});
  }

  const PlanFile& plan_;
  const ir::Schedule& schedule_;
  JsonWriter writer_;
};

ir::Error refuse(const std::string& message) {
  return ir::makeError(ir::ErrorCode::kInvalidArgument, message);
}

}  // namespace

ir::Error writePlan(const PlanFile& plan, llvm::raw_ostream& os) {
  if (plan.schedule.level != ir::Level::kSynced) {
    return refuse(std::string("found a schedule at level ") + ir::levelName(plan.schedule.level) +
                  ", expected a plan file's to be at level synced");
  }
  if (plan.labels.size() != plan.schedule.decisions.size()) {
    return refuse("found " + std::to_string(plan.labels.size()) +
                  " labels, expected one for each of " +
                  std::to_string(plan.schedule.decisions.size()) + " decisions");
  }
  const bool isText = PlanWriter(plan, os).write();
  os << '\n';
  return isText ? ir::success() : refuse("found a name that is not UTF-8, expected text");
}

}  // namespace stowage::planner
