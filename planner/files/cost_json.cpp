// SPDX-License-Identifier: Apache-2.0
#include "planner/files/cost_json.h"

#include <llvm/Support/Format.h>
#include <xxhash.h>

#include <utility>

#include "planner/files/document_json.h"
#include "planner/files/schema_texts.h"
#include "planner/files/target_json.h"

namespace stowage::planner {

namespace {

// No op takes more; sums over a million nodes stay within 64 bits.
constexpr int64_t kLongestOp = kLongestCommand.value();
constexpr int64_t kLargestTemporary = int64_t{1} << 50;  // bytes: 1 PiB

void writeOp(const std::string& signature, const ir::OpCost& cost, JsonWriter& writer) {
  writer.beginObject().field("signature", signature).field("work_ns", cost.work);
  if (cost.launch > Nanoseconds(0)) writer.field("launch_ns", cost.launch);
  writer.field("temp_bytes", cost.temporary);
  if (cost.allocations >= 0) writer.field("allocations", int64_t{cost.allocations});
  if (!cost.resultOrdinals.empty()) {
    writer.key("results").beginArray();
    for (const int32_t ordinal : cost.resultOrdinals) writer.value(int64_t{ordinal});
    writer.endArray();
  }
  writer.field("source", ir::costSourceName(cost.source)).endObject();
}

void writeTable(const ir::CostTable& table, JsonWriter& writer) {
  writer.breakLine().field("source", ir::costSourceName(table.source));
  writer.field("device", table.device);
  if (table.outside) writer.field("outside_bytes", *table.outside);
  if (table.scalars > Nanoseconds(0)) writer.field("scalars_ns", table.scalars);
  writer.breakLine();
  writeLinks(table.links, writer);
  writer.breakLine().key("ops").beginArray();
  for (const auto& [signature, cost] : table.bySignature) {
    writer.breakLine();
    writeOp(signature, cost, writer);
  }
  writer.endArray();
}

ir::CostSource readSource(const FieldReader& reader) {
  const std::optional<ir::CostSource> source = ir::findCostSource(reader.text());
  if (!source) reader.failExpecting("measured, roofline or given");
  return source.value_or(ir::CostSource::kGiven);
}

void readOp(const FieldReader& reader, ir::CostTable& table) {
  ir::OpCost cost;
  cost.work = Nanoseconds(reader.field("work_ns").integer(0, kLongestOp));
  if (reader.has("launch_ns")) {
    cost.launch = Nanoseconds(reader.field("launch_ns").integer(0, kLongestOp));
  }
  cost.temporary = Bytes(reader.field("temp_bytes").integer(0, kLargestTemporary));
  if (reader.has("allocations")) {
    cost.allocations = static_cast<int>(reader.field("allocations").integer(0, INT32_MAX));
  }
  if (reader.has("results")) {
    for (const FieldReader& ordinal : reader.field("results").elements()) {
      cost.resultOrdinals.push_back(static_cast<int32_t>(ordinal.integer(0, INT32_MAX)));
    }
  }
  cost.source = readSource(reader.field("source"));
  const std::string signature = reader.field("signature").text();
  if (!table.bySignature.emplace(signature, std::move(cost)).second) {
    reader.field("signature").fail("found a second row for this signature, expected one");
  }
}

void readTable(const FieldReader& header, CostFile& costs) {
  const FieldReader producer = header.field("producer");
  costs.stowageVersion = producer.field("stowage").text();
  if (producer.has("torch")) costs.torchVersion = producer.field("torch").text();
  costs.table.source = readSource(header.field("source"));
  costs.table.device = header.field("device").text();
  if (header.has("outside_bytes")) costs.table.outside = header.field("outside_bytes").bytes();
  if (header.has("scalars_ns")) {
    costs.table.scalars = Nanoseconds(header.field("scalars_ns").integer(0, kLongestOp));
  }
  costs.table.links = readLinks(header.field("links"));
}

}  // namespace

ir::Error writeCosts(const CostFile& costs, llvm::raw_ostream& os) {
  JsonWriter writer(os);
  writer.beginObject().field("$schema", "stowage:costs-1.0").field("kind", "costs");
  writer.field("schema_version", "1.0").breakLine().key("producer").beginObject();
  writer.field("stowage", costs.stowageVersion);
  if (!costs.torchVersion.empty()) writer.field("torch", costs.torchVersion);
  writer.endObject();
  writeTable(costs.table, writer);
  writer.breakLine().endObject();
  os << '\n';
  if (!writer.failed()) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "found a name that is not UTF-8, expected text");
}

ir::Expected<CostFile> readCosts(llvm::StringRef text, std::string fileName) {
  CostFile costs;
  static const DocumentFormat kFormat("costs", costsSchemaText(), {{"ops", "op"}});
  const auto onElement = [&](size_t, size_t, const FieldReader& op) { readOp(op, costs.table); };
  const auto onHeader = [&](const FieldReader& header) { readTable(header, costs); };
  if (ir::Error error = readDocument(kFormat, text, fileName, {onElement, onHeader})) return error;
  return costs;
}

std::string costsFingerprint(const ir::CostTable& table) {
  std::string text;
  llvm::raw_string_ostream os(text);
  JsonWriter writer(os);
  writer.beginObject();
  writeTable(table, writer);
  writer.endObject();
  os.flush();
  std::string fingerprint;
  llvm::raw_string_ostream digits(fingerprint);
  digits << "xxh3:"
         << llvm::format_hex_no_prefix(XXH3_64bits(text.data(), text.size()), /*Width=*/16);
  return digits.str();
}

llvm::StringRef costsSchemaText() { return kCostsSchema; }

}  // namespace stowage::planner
