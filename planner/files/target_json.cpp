// SPDX-License-Identifier: Apache-2.0
#include "planner/files/target_json.h"

#include <algorithm>
#include <utility>

namespace stowage::planner {

namespace {

constexpr int64_t kLargestAlignment = int64_t{1} << 30;

// Above this nothing is a link; sums over a million copies stay within 64 bits.
constexpr int64_t kLongestLatency = kLongestCommand.value();

void writeRate(const char* name, const ir::LinkRate& rate, JsonWriter& writer) {
  writer.key(name).beginObject();
  writer.field("bytes_per_s", rate.bandwidth).field("latency_ns", rate.latency);
  writer.endObject();
}

ir::LinkRate readRate(const FieldReader& reader) {
  return {.bandwidth = BytesPerSecond(reader.field("bytes_per_s").integer(1, INT64_MAX)),
          .latency = Nanoseconds(reader.field("latency_ns").integer(0, kLongestLatency))};
}

// The whole rate is not written, as in files that know no share.
void writeShare(const char* name, int permille, JsonWriter& writer) {
  if (permille < 1000) writer.field(name, int64_t{permille});
}

int readShare(const char* name, const FieldReader& reader) {
  return reader.has(name) ? static_cast<int>(reader.field(name).integer(1, 1000)) : 1000;
}

ir::DeviceKind readDevice(const FieldReader& reader) {
  const std::string name = reader.text();
  if (name == ir::deviceKindName(ir::DeviceKind::kCuda)) return ir::DeviceKind::kCuda;
  if (name != ir::deviceKindName(ir::DeviceKind::kCpu)) reader.failExpecting("cpu or cuda");
  return ir::DeviceKind::kCpu;
}

int64_t readAlignment(const FieldReader& reader) {
  const int64_t align = reader.integer(1, kLargestAlignment);
  if ((align & (align - 1)) != 0) reader.failExpecting("a power of two");
  return align;
}

}  // namespace

void writeLinks(const ir::LinkModel& links, JsonWriter& writer) {
  writer.key("links").beginObject();
  writeRate("d2h", links.deviceToHost, writer);
  writeRate("h2d", links.hostToDevice, writer);
  writeRate("disk_read", links.diskRead, writer);
  writeRate("disk_write", links.diskWrite, writer);
  writer.field("both_permille", int64_t{links.bothPermille});
  writeShare("disk_both_permille", links.diskBothPermille, writer);
  writeShare("h2d_beside_host_permille", links.besideHostPermille, writer);
  if (links.hostUpdates > BytesPerSecond(0)) {
    writer.field("host_updates_bytes_per_s", links.hostUpdates);
  }
  if (links.launch > Nanoseconds(0)) writer.field("launch_ns", links.launch);
  if (links.betweenRanks.bandwidth > BytesPerSecond(0)) {
    writeRate("between_ranks", links.betweenRanks, writer);
  }
  writeShare("compute_beside_ranks_permille", links.besideRanksPermille, writer);
  writer.endObject();
}

ir::LinkModel readLinks(FieldReader reader) {
  const bool hasRanks = reader.has("between_ranks");
  return {.deviceToHost = readRate(reader.field("d2h")),
          .hostToDevice = readRate(reader.field("h2d")),
          .diskRead = readRate(reader.field("disk_read")),
          .diskWrite = readRate(reader.field("disk_write")),
          .bothPermille = static_cast<int>(reader.field("both_permille").integer(1, 1000)),
          .diskBothPermille = readShare("disk_both_permille", reader),
          .besideHostPermille = readShare("h2d_beside_host_permille", reader),
          .hostUpdates =
              BytesPerSecond(reader.has("host_updates_bytes_per_s")
                                 ? reader.field("host_updates_bytes_per_s").integer(1, INT64_MAX)
                                 : 0),
          .launch = Nanoseconds(
              reader.has("launch_ns") ? reader.field("launch_ns").integer(0, kLongestLatency) : 0),
          .betweenRanks = hasRanks ? readRate(reader.field("between_ranks"))
                                   : ir::LinkRate{.bandwidth = BytesPerSecond(0)},
          .besideRanksPermille = readShare("compute_beside_ranks_permille", reader)};
}

void writeTarget(const ir::Target& target, JsonWriter& writer) {
  writer.field("profile", target.profile).field("device", ir::deviceKindName(target.device));
  writer.field("align_bytes", target.alignBytes);
  writer.field("intra_op_threads", int64_t{target.intraOpThreads});
  writer.field("deterministic", target.deterministic);
  writer.field("compute_capability", int64_t{target.computeCapability});
  writer.field("cudnn_version", int64_t{target.cudnnVersion});
  writer.key("libs").beginObject();
  for (const auto& [name, version] : target.libraries) writer.field(name, version);
  writer.endObject();
  writer.field("memory_bytes", target.memory);
  if (target.outside.value() > 0) writer.field("outside_bytes", target.outside);
  writer.field("memory_bytes_per_s", target.memoryBandwidth);
  writer.field("kernel_overhead_ns", target.kernelOverhead);
  std::vector<std::pair<std::string, int64_t>> flops;
  for (const auto& [dtype, rate] : target.flopsPerSecond)
    flops.emplace_back(ir::dtypeName(dtype), rate);
  std::sort(flops.begin(), flops.end());
  writer.key("flops_per_s").beginObject();
  for (const auto& [dtype, rate] : flops) writer.field(dtype, rate);
  writer.endObject();
  writeLinks(target.links, writer);
}

ir::Target readTarget(FieldReader reader) {
  ir::Target target;
  target.profile = reader.field("profile").text();
  target.device = readDevice(reader.field("device"));
  target.alignBytes = readAlignment(reader.field("align_bytes"));
  target.intraOpThreads = static_cast<int>(reader.field("intra_op_threads").integer(0, INT32_MAX));
  target.deterministic = reader.field("deterministic").flag();
  target.computeCapability =
      static_cast<int>(reader.field("compute_capability").integer(0, INT32_MAX));
  target.cudnnVersion = static_cast<int>(reader.field("cudnn_version").integer(0, INT32_MAX));
  for (const auto& [name, version] : reader.field("libs").members()) {
    target.libraries.emplace_back(name, version.text());
  }
  target.memory = reader.field("memory_bytes").bytes();
  if (reader.has("outside_bytes")) target.outside = reader.field("outside_bytes").bytes();
  target.memoryBandwidth = BytesPerSecond(reader.field("memory_bytes_per_s").integer(1, INT64_MAX));
  target.kernelOverhead =
      Nanoseconds(reader.field("kernel_overhead_ns").integer(0, kLongestLatency));
  for (const auto& [name, rate] : reader.field("flops_per_s").members()) {
    const std::optional<ir::DType> dtype = ir::findDType(name);
    if (!dtype) rate.fail("found dtype '" + name + "', expected one such as bf16 or f32");
    target.flopsPerSecond.emplace_back(dtype.value_or(ir::DType::kF32), rate.integer(1, INT64_MAX));
  }
  target.links = readLinks(reader.field("links"));
  return target;
}

}  // namespace stowage::planner
