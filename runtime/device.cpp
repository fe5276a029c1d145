// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.h"

#include <cassert>

namespace stowage::runtime {

ir::Expected<SegmentIssue> Program::beginSegment(const Segment& /*segment*/) {
  return SegmentIssue::kIssue;
}

ir::Error Program::endSegment(const Segment& /*segment*/) { return ir::success(); }

Bytes residencyBytes(const ProgramSource& source, ir::ResidencyId residency) {
  const ir::Residency& stay = source.schedule.residency(residency);
  const int64_t unit = stay.space == ir::Space::kDisk ? kDiskBlockBytes : source.target.alignBytes;
  return roundUp(source.graph.storage(stay.storage).bytes, unit);
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
