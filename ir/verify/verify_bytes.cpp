// SPDX-License-Identifier: Apache-2.0
//
// Each range of bytes on its own: residencies aligned and inside their arena (V16 on the device,
// V19 on host and disk), the host arena within its limit and of a size that can be of use (V19),
// temp regions inside the device arena and large enough (V17), reserved regions as the target asks
// and touched by nothing (V18). Who shares bytes with whom: verify_sharing.cpp.
#include "ir/base/interval.h"
#include "ir/verify/verify_internal.h"

namespace stowage::ir::verifier {

namespace {

std::string text(ByteRange range) {
  return "[" + std::to_string(range.begin) + ", " + std::to_string(range.end) + ")";
}

class PlaceCheck {
 public:
  PlaceCheck(const Facts& facts, Report& report) : facts_(facts), report_(report) {}

  void run() {
    checkReserved();
    checkLimit(Space::kHost, facts_.hostLimit);
    checkLimit(Space::kDisk, facts_.diskLimit);
    checkIsUseful(Space::kHost);
    checkIsUseful(Space::kDisk);
    for (size_t i = 0; i < facts_.schedule.residencies.size(); ++i) checkResidency(ResidencyId(i));
    for (size_t i = 0; i < facts_.schedule.commands.size(); ++i) {
      const Command& command = facts_.schedule.commands[i];
      if (command.kind == CommandKind::kRun) checkTemp(CommandId(i), command);
    }
  }

 private:
  /// What is wrong with a range of a space; "" if nothing is.
  std::string findFault(Space space, int64_t offset, Bytes bytes) const {
    const int64_t align = space == Space::kDisk ? kDiskBlock : facts_.target.alignBytes;
    const Bytes arena = facts_.schedule.arenaBytes(space);
    if (offset == kUnplaced) return "has no offset";
    if (offset < 0) return "begins at " + std::to_string(offset) + ", expected at least 0";
    if (offset % align != 0) {
      return "begins at " + std::to_string(offset) + ", expected a multiple of " +
             std::to_string(align);
    }
    if (offset + bytes.value() > arena.value()) {
      return "ends at " + std::to_string(offset + bytes.value()) + ", expected at most " +
             std::to_string(arena.value()) + ", the " + spaceName(space) + " arena's bytes";
    }
    return "";
  }

  void checkReserved() {
    const std::vector<ReservedRegion>& found = facts_.schedule.reserved;
    const std::vector<ReservedRegion>& expected = facts_.target.reserved;
    bool asTheTarget = found.size() == expected.size();
    for (size_t i = 0; asTheTarget && i < found.size(); ++i) {
      asTheTarget = found[i].what == expected[i].what && found[i].stream == expected[i].stream &&
                    found[i].bytes == expected[i].bytes;
    }
    if (!asTheTarget) report_.add(18, "reserved regions differ from those of the target");
    for (size_t i = 0; i < found.size(); ++i) {
      const std::string name = "reserved region '" + found[i].what + "' ";
      const std::string fault = findFault(Space::kDevice, found[i].offset.value(), found[i].bytes);
      if (!fault.empty()) report_.add(18, name + fault);
      checkUntouched(name, CommandId(), rangeOf(found[i]), i);
    }
  }

  void checkLimit(Space space, std::optional<Bytes> limit) {
    const Bytes arena = facts_.schedule.arenaBytes(space);
    if (!limit || arena <= *limit) return;
    report_.add(19, std::string(spaceName(space)) + " arena has " + std::to_string(arena.value()) +
                        " bytes, expected at most the limit, " + std::to_string(limit->value()));
  }

  /// An arena is taken whole: one far beyond what is ever put there is a slip of the pen. With the
  /// room that a poor placement may waste.
  void checkIsUseful(Space space) {
    constexpr int64_t kAlwaysFine = int64_t{64} << 20;
    const Bytes arena = facts_.schedule.arenaBytes(space);
    Bytes most(kAlwaysFine);
    for (size_t i = 0; i < facts_.schedule.residencies.size() && most < arena; ++i) {
      if (facts_.schedule.residency(ResidencyId(i)).space != space) continue;
      const Bytes bytes = roundUp(facts_.size(ResidencyId(i)), kDiskBlock);
      most += bytes + bytes;
    }
    if (arena <= most) return;
    report_.add(19, std::string(spaceName(space)) + " arena has " + std::to_string(arena.value()) +
                        " bytes, expected at most " + std::to_string(most.value()) +
                        ", twice what is ever put there and 64 MiB");
  }

  static ByteRange rangeOf(const ReservedRegion& region) {
    return {region.offset.value(), (region.offset + region.bytes).value()};
  }

  /// The first `count` reserved regions are untouched by a range.
  void checkUntouched(const std::string& what, CommandId command, ByteRange range, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const ReservedRegion& region = facts_.schedule.reserved[i];
      if (!range.overlaps(rangeOf(region))) continue;
      report_.add(18, command,
                  what + "is at " + text(range) + ", reserved for '" + region.what + "' at " +
                      text(rangeOf(region)));
    }
  }

  void checkResidency(ResidencyId id) {
    const Residency& residency = facts_.schedule.residency(id);
    const Bytes bytes = facts_.size(id);
    const std::string fault = findFault(residency.space, residency.offset, bytes);
    const bool onDevice = residency.space == Space::kDevice;
    if (!fault.empty()) report_.add(onDevice ? 16 : 19, facts_.describe(id) + " " + fault);
    if (!onDevice || residency.offset == kUnplaced) return;
    checkUntouched(facts_.describe(id) + " ", CommandId(),
                   {residency.offset, residency.offset + bytes.value()},
                   facts_.schedule.reserved.size());
  }

  void checkTemp(CommandId id, const Command& run) {
    const Bytes found = run.temp.bytes;
    const std::string name = "temp region of " + facts_.describe(id) + " ";
    if (found.value() > 0) {
      if (run.stream == Stream::kHostCompute) {
        report_.add(17, id, name + "is on the device, expected none for an op on the host");
      }
      const std::string fault = findFault(Space::kDevice, run.temp.offset, found);
      if (!fault.empty()) report_.add(17, id, name + fault);
      checkUntouched(name, id, {run.temp.offset, run.temp.offset + found.value()},
                     facts_.schedule.reserved.size());
    }
    if (facts_.costs == nullptr || run.stream == Stream::kHostCompute) return;
    if (run.node.index() >= facts_.costs->nodes.size()) return;  // V30 reports the table
    const Bytes needed = facts_.costs->nodes[run.node.index()].temporary;
    if (found >= needed) return;
    report_.add(17, id,
                name + "has " + std::to_string(found.value()) + " bytes, expected at least " +
                    std::to_string(needed.value()));
  }

  const Facts& facts_;
  Report& report_;
};

}  // namespace

void checkPlaces(const Facts& facts, Report& report) { PlaceCheck(facts, report).run(); }

}  // namespace stowage::ir::verifier
