// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/device.h"

#include <algorithm>
#include <cassert>

namespace stowage::runtime {

ir::Expected<SegmentMode> Program::beginSegment(const Segment& /*segment*/,
                                                llvm::ArrayRef<ScalarValue> /*scalars*/) {
  return SegmentMode::kEnqueue;
}

ir::Error Program::endSegment(const Segment& /*segment*/) { return ir::success(); }

ir::Error Program::takeTimes(int64_t /*steps*/) { return ir::success(); }

ir::Error Device::fill(ir::Space space, llvm::ArrayRef<uint8_t> pattern) {
  const int64_t all = arenaBytes(space).value();
  const auto period = static_cast<int64_t>(pattern.size());
  for (int64_t at = 0; at < all; at += period) {
    const auto bytes = static_cast<size_t>(std::min(period, all - at));
    if (ir::Error error = write(space, at, pattern.take_front(bytes))) return error;
  }
  return ir::success();
}

ir::Error Device::move(ir::Space from, int64_t fromOffset, ir::Space to, int64_t toOffset,
                       Bytes bytes) {
  constexpr int64_t kPiece = int64_t{16} << 20;
  // A disk knows whole storages: checksums are theirs.
  const bool isDisk = from == ir::Space::kDisk || to == ir::Space::kDisk;
  const int64_t atOnce = isDisk ? bytes.value() : std::min(kPiece, bytes.value());
  std::vector<uint8_t> piece(static_cast<size_t>(atOnce));
  for (int64_t at = 0; at < bytes.value(); at += atOnce) {
    const auto count = static_cast<size_t>(std::min(atOnce, bytes.value() - at));
    const llvm::MutableArrayRef<uint8_t> part(piece.data(), count);
    if (ir::Error error = read(from, fromOffset + at, part)) return error;
    if (ir::Error error = write(to, toOffset + at, part)) return error;
  }
  return ir::success();
}

ir::Error Device::growHost(Bytes bytes) {
  const Bytes has = arenaBytes(ir::Space::kHost);
  if (bytes <= has) return ir::success();
  return ir::makeError(ir::ErrorCode::kOutOfDeviceMemory,
                       "the plan needs " + formatBytes(bytes) +
                           " of host memory, the device has an arena of " + formatBytes(has));
}

ir::Expected<ArenaCopy> Device::release(llvm::ArrayRef<ir::ByteRange> /*kept*/) {
  return ir::makeError(ir::ErrorCode::kUnsupported,
                       "this device cannot give the memory of its arena back");
}

ir::Expected<ArenaCopy> Device::restore(llvm::ArrayRef<uint8_t> /*pattern*/) {
  return ir::makeError(ir::ErrorCode::kUnsupported, "this device cannot restore its arena");
}

Bytes residencyBytes(const ProgramSource& source, ir::ResidencyId residency) {
  const ir::Residency& place = source.schedule.residency(residency);
  const int64_t unit = place.space == ir::Space::kDisk ? ir::kDiskBlock : source.target.alignBytes;
  return roundUp(source.graph.storage(place.storage).bytes, unit);
}

Bytes totalBytes(llvm::ArrayRef<ir::ByteRange> ranges) {
  Bytes total;
  for (const ir::ByteRange& range : ranges) total += Bytes(range.end - range.begin);
  return total;
}

const ir::LinkRate& linkRate(const ir::LinkModel& links, ir::Stream stream) {
  switch (stream) {
    case ir::Stream::kDeviceToHost:
      return links.deviceToHost;
    case ir::Stream::kHostToDevice:
      return links.hostToDevice;
    case ir::Stream::kDiskRead:
      return links.diskRead;
    case ir::Stream::kDiskWrite:
      return links.diskWrite;
    default:
      assert(false && "not a stream of copies");
      return links.deviceToHost;
  }
}

}  // namespace stowage::runtime
