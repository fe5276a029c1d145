// SPDX-License-Identifier: Apache-2.0
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringRef.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <tuple>
#include <utility>

#include "ir/schedule/fingerprint.h"
#include "planner/files/document_json.h"
#include "planner/files/plan_json.h"
#include "planner/files/schema_texts.h"
#include "planner/files/target_json.h"

namespace stowage::planner {

namespace {

// In the order of the format's long arrays.
enum LongArrayIndex : size_t { kDecisions, kResidencies, kBoundary, kCommands };

// What the planner gives as the reason of a row; "": lowered by hand, nobody said.
constexpr std::array<llvm::StringLiteral, 7> kReasons = {"pinned", "hidden", "waits", "cheap",
                                                         "busy",   "only",   ""};

template <typename IdType>
IdType readId(const FieldReader& reader) {
  return IdType(static_cast<int32_t>(reader.integer(0, INT32_MAX - 1)));
}

template <typename Ids>
Ids readIds(const FieldReader& reader) {
  Ids ids;
  for (const FieldReader& element : reader.elements()) {
    ids.push_back(readId<typename Ids::value_type>(element));
  }
  return ids;
}

int readInt(const FieldReader& reader, int64_t smallest, int64_t largest) {
  return static_cast<int>(reader.integer(smallest, largest));
}

/// The enumerator that a text names; a fault if none.
template <typename Enum>
Enum readName(const FieldReader& reader, std::optional<Enum> (*find)(llvm::StringRef),
              const char* expected) {
  const std::optional<Enum> found = find(reader.text());
  if (!found) reader.failExpecting(expected);
  return found.value_or(Enum{});
}

/// A run command has no fields of a copy, and the other way round.
void refuseMembers(const FieldReader& reader, std::initializer_list<const char*> keys,
                   const char* expected) {
  for (const char* key : keys) {
    if (reader.has(key)) reader.field(key).failExpecting(expected);
  }
}

/// An array of exactly two numbers.
std::pair<int64_t, int64_t> readPair(const FieldReader& reader) {
  const std::vector<FieldReader> parts = reader.elements();
  if (parts.size() != 2) reader.failExpecting("two numbers");
  return parts.size() == 2 ? std::pair(parts[0].count(), parts[1].count())
                           : std::pair<int64_t, int64_t>();
}

/// Elements of the long arrays, each on its own; which ids exist is checked when all are there.
class PlanReader {
 public:
  void readElement(size_t array, size_t index, const FieldReader& element) {
    switch (array) {
      case kDecisions:
        return readDecision(index, element);
      case kResidencies:
        return readResidency(index, element);
      case kBoundary:
        return readEntry(element);
      default:
        return readCommand(element);
    }
  }

  void readHeader(const FieldReader& header) {
    readVersions(header.field("producer"));
    readGraph(header.field("graph"));
    plan_.target = readTarget(header.field("target"));
    targetFingerprint_ = header.field("target").field("fingerprint").text();
    readCosts(header.field("costs"));
    plan_.budget = Bytes(header.field("budget_bytes").integer(1, INT64_MAX));
    if (header.has("prefetch_limit_bytes"))
      plan_.prefetchLimit = header.field("prefetch_limit_bytes").bytes();
    readSpaces(header.field("spaces"));
    readMode(header.field("mode"));
    plan_.schedule.opTableVersion = readInt(header.field("op_table_version"), 0, INT32_MAX);
    readPredicted(header.field("predicted"));
  }

  PlanFile take() && {
    ir::Schedule& schedule = plan_.schedule;
    schedule.level = ir::Level::kSynced;
    schedule.graphFingerprint = plan_.graph.fingerprint;
    schedule.targetFingerprint = targetFingerprint_;
    sortDecisions();
    for (LabelledRow& labelled : rows_) {
      schedule.decisions.push_back(std::move(labelled.row));
      plan_.labels.push_back(std::move(labelled.label));
    }
    return std::move(plan_);
  }

  const PlanFile& plan() const { return plan_; }
  const std::string& targetFingerprint() const { return targetFingerprint_; }

 private:
  struct LabelledRow {
    ir::DecisionRow row;
    DecisionLabel label;
  };

  void sortDecisions() {
    std::stable_sort(rows_.begin(), rows_.end(), [](const LabelledRow& a, const LabelledRow& b) {
      return std::tie(a.row.storage, a.row.gapBegin) < std::tie(b.row.storage, b.row.gapBegin);
    });
  }

  void readDecision(size_t index, const FieldReader& reader) {
    LabelledRow labelled;
    labelled.label.place = index;
    ir::DecisionRow& row = labelled.row;
    row.storage = readId<ir::StorageId>(reader.field("storage"));
    labelled.label.name = reader.field("name").text();
    std::tie(row.gapBegin, row.gapEnd) = readPair(reader.field("gap"));
    row.action =
        readName(reader.field("action"), ir::findGapAction, "keep, host, disk or recompute");
    row.pinned = reader.field("pinned").flag();
    labelled.label.bytes = reader.field("bytes").bytes();
    row.why = reader.field("why").text();
    // A person who pins a row may say why in words of his own.
    if (!row.pinned && !llvm::is_contained(kReasons, row.why)) {
      reader.field("why").failExpecting("pinned, hidden, waits, cheap, busy, only or nothing");
    }
    rows_.push_back(std::move(labelled));
  }

  void readResidency(size_t index, const FieldReader& reader) {
    const std::vector<FieldReader> parts = reader.elements();
    if (parts.size() != 4) return reader.failExpecting("id, storage, space and offset");
    const auto id = static_cast<int64_t>(index);
    parts[0].integer(id, id);
    plan_.schedule.residencies.push_back(
        {.storage = readId<ir::StorageId>(parts[1]),
         .space = readName(parts[2], ir::findSpace, "device, host or disk"),
         .offset = parts[3].count()});
  }

  void readEntry(const FieldReader& reader) {
    ir::BoundaryEntry entry;
    entry.storage = readId<ir::StorageId>(reader.field("storage"));
    entry.at = readIds<decltype(entry.at)>(reader.field("at"));
    entry.dirty = reader.field("dirty").flag();
    plan_.schedule.boundary.push_back(std::move(entry));
  }

  void readCommand(const FieldReader& reader) {
    ir::Command command;
    command.stream =
        static_cast<ir::Stream>(readInt(reader.field("stream"), 0, ir::kStreamCount - 1));
    const std::string op = reader.field("op").text();
    if (op == "run") {
      refuseMembers(reader, {"from", "to"}, "no such member in a run command");
      readRun(reader, command);
    } else if (op == "copy") {
      refuseMembers(reader, {"node", "recompute", "in", "out", "temp", "rng", "takes"},
                    "no such member in a copy command");
      command.kind = ir::CommandKind::kCopy;
      command.from = readId<ir::ResidencyId>(reader.field("from"));
      command.to = readId<ir::ResidencyId>(reader.field("to"));
    } else {
      reader.field("op").failExpecting("run or copy");
    }
    if (reader.has("wait")) command.wait = readIds<decltype(command.wait)>(reader.field("wait"));
    if (reader.has("prev")) command.prev = readIds<decltype(command.prev)>(reader.field("prev"));
    plan_.schedule.commands.push_back(std::move(command));
  }

  void readRun(const FieldReader& reader, ir::Command& run) {
    run.node = readId<ir::NodeId>(reader.field("node"));
    if (reader.has("recompute")) run.recompute = readInt(reader.field("recompute"), 1, INT32_MAX);
    if (reader.has("in")) run.in = readIds<decltype(run.in)>(reader.field("in"));
    if (reader.has("out")) run.out = readIds<decltype(run.out)>(reader.field("out"));
    if (reader.has("temp")) {
      const auto [offset, bytes] = readPair(reader.field("temp"));
      run.temp = {.offset = offset, .bytes = Bytes(bytes)};
    }
    if (reader.has("rng")) run.rngSlot = readInt(reader.field("rng"), 0, INT32_MAX);
    if (reader.has("takes")) run.takes = readId<ir::ResidencyId>(reader.field("takes"));
  }

  void readVersions(const FieldReader& reader) {
    plan_.stowageVersion = reader.field("stowage").text();
    if (reader.has("torch")) plan_.torchVersion = reader.field("torch").text();
  }

  void readGraph(const FieldReader& reader) {
    plan_.graph.fingerprint = reader.field("fingerprint").text();
    plan_.graph.nodes = reader.field("nodes").integer(0, INT32_MAX);
    plan_.graph.storages = reader.field("storages").integer(0, INT32_MAX);
    plan_.graph.stepsCaptured = readInt(reader.field("steps_captured"), 0, INT32_MAX);
    if (reader.has("ranks")) {
      plan_.graph.ranks = readInt(reader.field("ranks"), 2, ir::kMostRanks);
    }
    if (reader.has("row_blocks")) {
      plan_.graph.rowBlocks = readInt(reader.field("row_blocks"), 2, INT32_MAX);
    }
    if (reader.has("host_updates")) {
      plan_.graph.hostUpdates = readInt(reader.field("host_updates"), 1, 100);
    }
    if (reader.has("file")) plan_.graph.file = readFileName(reader.field("file"));
    if (reader.has("text")) plan_.graph.text = reader.field("text").text();
  }

  /// The system takes a name to end at a zero byte.
  static std::string readFileName(const FieldReader& reader) {
    std::string name = reader.text();
    if (name.find('\0') != std::string::npos) {
      reader.fail("found a zero byte, expected the name of a file");
    }
    return name;
  }

  void readCosts(const FieldReader& reader) {
    plan_.costs.fingerprint = reader.field("fingerprint").text();
    plan_.costs.source =
        readName(reader.field("source"), ir::findCostSource, "measured, roofline or given");
    if (reader.has("file")) plan_.costs.file = readFileName(reader.field("file"));
  }

  void readSpaces(const FieldReader& reader) {
    for (const ir::Space space : {ir::Space::kDevice, ir::Space::kHost, ir::Space::kDisk}) {
      const char* name = ir::spaceName(space);
      if (space != ir::Space::kDevice && !reader.has(name)) continue;
      const FieldReader arena = reader.field(name);
      const Bytes bytes = arena.field("arena_bytes").bytes();
      if (space != ir::Space::kDevice && arena.has("limit_bytes")) {
        std::optional<Bytes>& limit = space == ir::Space::kHost ? plan_.hostLimit : plan_.diskLimit;
        limit = arena.field("limit_bytes").bytes();
        if (bytes == Bytes()) continue;  // nothing but the limit
      }
      plan_.schedule.arenas.push_back({.space = space, .bytes = bytes});
    }
    for (const FieldReader& region : reader.field("device").field("reserved").elements()) {
      plan_.schedule.reserved.push_back({.what = region.field("what").text(),
                                         .stream = readInt(region.field("stream"), 0, INT32_MAX),
                                         .offset = region.field("offset").bytes(),
                                         .bytes = region.field("bytes").bytes()});
      plan_.target.reserved.push_back(plan_.schedule.reserved.back());
      plan_.target.reserved.back().offset = Bytes();
    }
  }

  void readMode(const FieldReader& reader) {
    const std::string boundary = reader.field("boundary").text();
    plan_.schedule.joined = boundary == "joined";
    if (!plan_.schedule.joined && boundary != "flowing") {
      reader.field("boundary").failExpecting("flowing or joined");
    }
    plan_.schedule.graphMode =
        readName(reader.field("graph"), ir::findGraphMode, "none, no_update or whole");
  }

  void readPredicted(const FieldReader& reader) {
    plan_.schedule.predicted = {.peakBytes = reader.field("peak_bytes").bytes(),
                                .hostPeakBytes = reader.field("host_peak_bytes").bytes(),
                                .stepTime = reader.field("step_ns").nanoseconds(),
                                .bound = reader.field("bound_ns").nanoseconds(),
                                .computeTime = reader.field("compute_ns").nanoseconds(),
                                .bytesOut = reader.field("out_bytes").bytes(),
                                .bytesIn = reader.field("in_bytes").bytes()};
    if (reader.has("bound_scope")) plan_.boundScope = reader.field("bound_scope").text();
    const FieldReader stalls = reader.field("stall_ns");
    plan_.stalls = {
        .deviceToHost = stalls.field("d2h").nanoseconds(),
        .hostToDevice = stalls.field("h2d").nanoseconds(),
        .disk = stalls.field("disk").nanoseconds(),
        .ranks = stalls.has("ranks") ? stalls.field("ranks").nanoseconds() : Nanoseconds(0)};
  }

  PlanFile plan_;
  std::vector<LabelledRow> rows_;
  std::string targetFingerprint_;
};

/// Do all ids of a plan name something?
class IdCheck {
 public:
  explicit IdCheck(const PlanFile& plan) : plan_(plan), schedule_(plan.schedule) {}

  std::optional<JsonFault> run() {
    for (size_t i = 0; i < schedule_.decisions.size(); ++i) checkDecision(i);
    for (size_t i = 0; i < schedule_.residencies.size(); ++i) {
      check(schedule_.residencies[i].storage, plan_.graph.storages, "/residencies/", i, "/1");
    }
    for (size_t i = 0; i < schedule_.boundary.size(); ++i) {
      check(schedule_.boundary[i].storage, plan_.graph.storages, "/boundary/", i, "/storage");
      checkAll(schedule_.boundary[i].at, residencies(), "/boundary/", i, "/at");
    }
    for (size_t i = 0; i < schedule_.commands.size(); ++i) checkCommand(i);
    return std::move(fault_);
  }

 private:
  int64_t residencies() const { return static_cast<int64_t>(schedule_.residencies.size()); }
  int64_t commands() const { return static_cast<int64_t>(schedule_.commands.size()); }

  template <typename IdType>
  void check(IdType id, int64_t count, const char* array, size_t index, const std::string& member) {
    if (fault_ || !id.isValid() || id.raw() < count) return;
    fault_ = JsonFault{
        array + std::to_string(index) + member,
        "found " + std::to_string(id.raw()) + ", expected an id below " + std::to_string(count)};
  }

  template <typename Ids>
  void checkAll(const Ids& ids, int64_t count, const char* array, size_t index,
                const std::string& member) {
    for (size_t i = 0; i < ids.size(); ++i) {
      check(ids[i], count, array, index, member + "/" + std::to_string(i));
    }
  }

  void checkDecision(size_t index) {
    const ir::DecisionRow& row = schedule_.decisions[index];
    const size_t place = plan_.labels[index].place;
    check(row.storage, plan_.graph.storages, "/decisions/", place, "/storage");
    if (fault_ || index == 0) return;
    const ir::DecisionRow& before = schedule_.decisions[index - 1];
    if (before.storage != row.storage || before.gapBegin != row.gapBegin) return;
    fault_ = JsonFault{"/decisions/" + std::to_string(place),
                       "found two rows for storage " + std::to_string(row.storage.raw()) +
                           " and the gap that begins at " + std::to_string(row.gapBegin) +
                           ", expected one"};
  }

  void checkCommand(size_t index) {
    const ir::Command& command = schedule_.commands[index];
    check(command.node, plan_.graph.nodes, "/commands/", index, "/node");
    check(command.from, residencies(), "/commands/", index, "/from");
    check(command.to, residencies(), "/commands/", index, "/to");
    check(command.takes, residencies(), "/commands/", index, "/takes");
    checkAll(command.in, residencies(), "/commands/", index, "/in");
    checkAll(command.out, residencies(), "/commands/", index, "/out");
    checkAll(command.wait, commands(), "/commands/", index, "/wait");
    checkAll(command.prev, commands(), "/commands/", index, "/prev");
  }

  const PlanFile& plan_;
  const ir::Schedule& schedule_;
  std::optional<JsonFault> fault_;
};

const DocumentFormat& planFormat() {
  static const DocumentFormat kFormat("plan", planSchemaText(),
                                      {{"decisions", "decision"},
                                       {"residencies", "residency"},
                                       {"boundary", "boundary_entry"},
                                       {"commands", "command"}});
  return kFormat;
}

}  // namespace

ir::Expected<PlanFile> readPlan(llvm::StringRef text, std::string fileName) {
  PlanReader reader;
  const auto onElement = [&](size_t array, size_t index, const FieldReader& element) {
    reader.readElement(array, index, element);
  };
  const auto onHeader = [&](const FieldReader& header) { reader.readHeader(header); };
  if (ir::Error error = readDocument(planFormat(), text, fileName, {onElement, onHeader})) {
    return error;
  }
  PlanFile plan = std::move(reader).take();
  plan.path = fileName;
  if (const std::optional<JsonFault> fault = IdCheck(plan).run()) {
    return makeDocumentError(*fault, fileName, 0);
  }
  const std::string fingerprint = ir::fingerprint(plan.target);
  if (plan.schedule.targetFingerprint == fingerprint) return plan;
  ir::PlanError error(ir::ErrorCode::kPlanMismatch,
                      "at /target/fingerprint: found " + plan.schedule.targetFingerprint +
                          ", expected " + fingerprint + ", which the target block has");
  return ir::makeError(std::move(error.at({.file = std::move(fileName)})));
}

llvm::StringRef planSchemaText() { return kPlanSchema; }

}  // namespace stowage::planner
